"""One answer against one gold record, in one order of evidence.

There is an output, it parses, it satisfies the schema; only then are fields compared.
The fields of a row are the schema's properties in their order and then gold's other
keys. A field that neither side has is right. An answer that does not satisfy the
schema gets no field, whatever trimming could make of it. Extra fields are keys that
gold lacks, also of an answer that breaks the schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Protocol

from harness.canonical import Json
from harness.scoring.json_record.equality import member_node, values_equal
from harness.scoring.json_record.parse import UnparseableError, parse_answer

METRIC_VERSION: Final = "2"

SchemaVerdict = Literal["valid", "invalid", "undecided"]
"""`undecided`: the schema itself cannot be followed to an end; it counts as invalid."""


class RecordSchema(Protocol):
    """A compiled schema: its document, for field names and marks, and its judgement."""

    @property
    def document(self) -> Json:
        """The schema as it was declared."""

    def judge(self, value: Json) -> SchemaVerdict:
        """Say whether a decoded value satisfies the schema; never raises."""


@dataclass(frozen=True, slots=True)
class RecordScore:
    """What one answer is worth and why."""

    failed: bool
    parseable: bool
    schema: SchemaVerdict | None
    """None where there was nothing to judge."""
    fields: dict[str, bool]
    """Credit by field; empty for an answer that does not parse."""
    record: bool
    """Whether the whole record is right."""
    extra_fields: tuple[str, ...]
    """Sorted by code point."""

    @property
    def schema_valid(self) -> bool:
        """Tell whether the answer was shown to satisfy the schema."""
        return self.schema == "valid"

    def as_record(self) -> dict[str, Json]:
        """Return the members that the contract names."""
        return {
            "failed": self.failed,
            "parseable": self.parseable,
            "schema_valid": self.schema_valid,
            "fields": self.fields,
            "record": self.record,
            "extra_fields": list(self.extra_fields),
        }


def score_record(raw: Json, gold: dict[str, Json], schema: RecordSchema) -> RecordScore:
    """Score one answer; there is no input that it refuses.

    `raw` is the output as received, None where there is none. An output that is no
    text does not parse.
    """
    if not isinstance(raw, str):
        return _nothing(failed=raw is None)
    try:
        value = parse_answer(raw)
    except UnparseableError:
        return _nothing(failed=False)
    verdict = schema.judge(value)
    names = field_names(schema.document, gold)
    answer = value if isinstance(value, dict) else None
    extra = () if answer is None else tuple(sorted(answer.keys() - gold.keys()))
    if answer is None or verdict != "valid":
        wrong = dict.fromkeys(names, False)
        return RecordScore(False, True, verdict, wrong, False, extra)
    fields = {name: _is_right(name, answer, gold, schema.document) for name in names}
    # Without extra keys, every key of either side is a field: the two are equal as
    # a whole when all fields are right.
    whole = not extra and all(fields.values())
    return RecordScore(False, True, verdict, fields, whole, extra)


def field_names(document: Json, gold: dict[str, Json]) -> list[str]:
    """Return the fields of a row: declared properties, then gold's other keys."""
    declared = document.get("properties") if isinstance(document, dict) else None
    return list(dict.fromkeys((*(declared or ()), *gold)))


def _nothing(*, failed: bool) -> RecordScore:
    return RecordScore(failed, False, None, {}, False, ())


def _is_right(
    name: str, answer: dict[str, Json], gold: dict[str, Json], document: Json
) -> bool:
    if name not in answer or name not in gold:
        return (name in answer) == (name in gold)
    return values_equal(gold[name], answer[name], member_node(document, name))
