"""What two evaluations must share for their scores to be of one thing.

A protocol is nine groups of fields in a fixed order; the name of a group is the reason
code of a difference in it. Models, engines, devices and versions of libraries are in
none of them: those are conditions. Fields decide a comparison, and the fingerprint is
a hash over the same canonical fields, so the two cannot disagree. A field nobody can
tell is `unknown`, which is neither equal to anything nor different from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Final

from harness.canonical import Json, content_hash
from harness.evaluations.numbers import plain_numbers

PROTOCOL_VERSION: Final = "1"


@dataclass(frozen=True, slots=True)
class Protocol:
    """The protocol fields of one evaluation, grouped by what they settle."""

    rows: Mapping[str, Json]
    """Which rows: hashes of ids in order, of gold and of inputs, and their number."""
    prompts: Mapping[str, Json]
    """What a model is shown beside a row's own input, by hashes."""
    decoding: Mapping[str, Json]
    """Every setting as requested."""
    metric: Mapping[str, Json]
    """The primary metric and the versions of what computes it."""
    contract: Mapping[str, Json]
    """The scoring contract: name, declaration or policy by hash, comparer."""
    plan: Mapping[str, Json] = field(default_factory=dict)
    """Repeats, limits, contamination policy: how often and how long is asked."""
    pack: Mapping[str, Json] = field(default_factory=dict)
    """What answers tool calls, by fingerprint."""
    scope: Mapping[str, Json] = field(default_factory=dict)
    """Kind and mode of the evaluation."""
    other: Mapping[str, Json] = field(default_factory=dict)

    def groups(self) -> dict[str, dict[str, Json]]:
        """Return all groups in canonical numbers, in their order."""
        return {
            each.name: plain_numbers(dict(getattr(self, each.name)))
            for each in fields(self)
        }

    def as_payload(self) -> dict[str, Json]:
        """Return the form in a record."""
        groups = self.groups()
        return {
            "version": PROTOCOL_VERSION,
            "fields": groups,
            "fingerprint": fingerprint(groups),
        }


GROUPS: Final = tuple(each.name for each in fields(Protocol))
REASON_CODES: Final = (*GROUPS[:-1], "protocol_version", GROUPS[-1])
"""Codes of an incompatibility in the order in which they are told."""


def fingerprint(groups: Mapping[str, Json], version: str = PROTOCOL_VERSION) -> str:
    """Return the content hash over version and fields, in canonical numbers."""
    return content_hash({"version": version, "fields": plain_numbers(groups)})


def leaves(value: Json, place: str = "") -> Iterator[tuple[str, Json]]:
    """Yield every field of a group with its dotted place; lists are one value."""
    if isinstance(value, Mapping) and value:
        for name, member in value.items():
            yield from leaves(member, f"{place}.{name}" if place else str(name))
    else:
        yield place, value
