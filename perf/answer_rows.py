"""Made-up rows for JSON records and classification, and the plain way to score them.

The plain way is what one would write in an afternoon over a public library: Python's
decoder, one `jsonschema` validator for all rows, a recursive comparison, `json.dumps`
for every line. It knows the easy part of each contract and is what the measure of
speed is a multiple of. Both ways read, score and write the same files.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path

PROPERTIES = {
    "vendor": {"type": "string"},
    "currency": {"type": "string", "enum": ["EUR", "USD", "GBP"]},
    "total": {"type": "number", "minimum": 0},
    "count": {"type": "integer"},
    "paid": {"type": "boolean"},
    "due": {"type": ["string", "null"]},
    "tags": {"type": "array", "items": {"type": "string"}, "x-unordered": True},
    "lines": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"sku": {"type": "string"}, "quantity": {"type": "integer"}},
            "required": ["sku", "quantity"],
            "additionalProperties": False,
        },
    },
}
SCHEMA = {
    "type": "object",
    "properties": PROPERTIES,
    "required": ["vendor", "currency", "total"],
    "additionalProperties": False,
}
FULL_SCHEMA = {
    **SCHEMA,
    "properties": {
        **PROPERTIES,
        "due": {"anyOf": [{"$ref": "#/$defs/day"}, {"type": "null"}]},
    },
    "$defs": {"day": {"type": "string", "minLength": 10}},
}
"""The same with keywords that have no way but the library's."""
LABELS = [f"intent {number:02}" for number in range(77)]


def _record(row: int) -> dict[str, object]:
    return {
        "vendor": f"Café number {row}",
        "currency": ("EUR", "USD", "GBP")[row % 3],
        "total": row * 1.25,
        "count": row % 9,
        "paid": row % 2 == 0,
        "due": None if row % 4 else f"2026-08-{row % 28 + 1:02}",
        "tags": [f"tag {(row + step) % 7}" for step in range(3)],
        "lines": [
            {"sku": f"X-{row % 50}-{step}", "quantity": step + 1}
            for step in range(1 + row % 3)
        ],
    }


def _record_answer(row: int) -> str | None:
    record = _record(row)
    record["tags"] = [f"tag {(row + step) % 7} " for step in (2, 0, 1)]
    if row % 10 == 3:
        record["vendor"] = "another"
    if row % 25 == 7:
        record["currency"] = " EUR "
    text = json.dumps(record, ensure_ascii=row % 2 == 0)
    if row % 50 == 11:
        return text[: len(text) // 2]
    if row % 100 == 13:
        return None
    return f"```json\n{text}\n```" if row % 3 == 0 else text


def _label_answer(row: int) -> str | None:
    if row % 50 == 11:
        return None
    if row % 10 == 3:
        return f"The intent is {LABELS[row % 77]}"
    return f" {LABELS[(row + (row % 7 == 0)) % 77].upper()}\n"


def _write(
    folder: Path,
    rows: int,
    declared: object,
    gold: Callable[[int], object],
    answer: Callable[[int], str | None],
) -> None:
    (folder / "declared.json").write_text(json.dumps(declared), encoding="utf-8")
    with (folder / "rows.jsonl").open("w", encoding="utf-8") as stream:
        for row in range(rows):
            raw = answer(row)
            line = {
                "id": f"made-up-{row:06}",
                "gold": gold(row),
                "raw": raw,
                "finish_reason": None if raw is None else "stop",
            }
            print(json.dumps(line), file=stream)


def write_records(folder: Path, rows: int) -> None:
    """Write rows under a schema of types, members and bounds."""
    _write(folder, rows, SCHEMA, _record, _record_answer)


def write_full_records(folder: Path, rows: int) -> None:
    """Write the same rows under a schema that needs the library."""
    _write(folder, rows, FULL_SCHEMA, _record, _record_answer)


def write_labels(folder: Path, rows: int) -> None:
    """Write rows of 77 labels."""
    _write(folder, rows, LABELS, lambda row: LABELS[row % 77], _label_answer)


def score_records(folder: Path, output: Path) -> None:
    """Score the files as `fairtrial score json-records` does."""
    from harness.predictions.answers import score_json_records

    score_json_records(folder / "declared.json", folder / "rows.jsonl", output)


def score_labels(folder: Path, output: Path) -> None:
    """Score the files as `fairtrial score classification` does."""
    from harness.predictions.answers import score_classification

    score_classification(folder / "declared.json", folder / "rows.jsonl", output)


def _plain(
    folder: Path, output: Path, score: Callable[[dict[str, object]], dict[str, object]]
) -> None:
    output.mkdir()
    with (
        (folder / "rows.jsonl").open(encoding="utf-8") as rows,
        (output / "sample_scores.jsonl").open("w", encoding="utf-8") as scores,
    ):
        right = total = 0
        for line in rows:
            row = json.loads(line)
            scored = score(row)
            print(json.dumps({"id": row["id"], **scored}, sort_keys=True), file=scores)
            total += 1
            right += bool(scored["right"])
    text = json.dumps({"rows": total, "accuracy": right / total})
    (output / "aggregate.json").write_text(text, encoding="utf-8")


def plain_records(folder: Path, output: Path) -> None:
    """Score records with one library validator and a recursive comparison."""
    from jsonschema import Draft202012Validator

    schema = json.loads((folder / "declared.json").read_text(encoding="utf-8"))
    validator = Draft202012Validator(schema)

    def score(row: dict[str, object]) -> dict[str, object]:
        raw = row["raw"]
        if raw is None:
            return {"parseable": False, "valid": False, "right": False}
        text = str(raw).strip()
        if text.startswith("```") and text.endswith("```"):
            text = text[3:-3].removeprefix("json").strip()
        try:
            value = json.loads(text)
        except ValueError:
            return {"parseable": False, "valid": False, "right": False}
        valid = validator.is_valid(value)
        fields = {
            name: valid and _same(row["gold"].get(name), value.get(name), node)
            for name, node in schema["properties"].items()
        }
        right = valid and all(fields.values())
        return {"parseable": True, "valid": valid, "fields": fields, "right": right}

    _plain(folder, output, score)


def plain_labels(folder: Path, output: Path) -> None:
    """Score labels with a folded set."""
    labels = json.loads((folder / "declared.json").read_text(encoding="utf-8"))
    known = {_folded(label) for label in labels}

    def score(row: dict[str, object]) -> dict[str, object]:
        if row["raw"] is None:
            return {"valid": False, "right": False}
        folded = _folded(str(row["raw"]))
        valid = folded in known
        return {"valid": valid, "right": valid and folded == _folded(str(row["gold"]))}

    _plain(folder, output, score)


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).split()).casefold()


def _same(gold: object, value: object, node: dict[str, object]) -> bool:
    if isinstance(gold, bool) or isinstance(value, bool):
        return gold is value
    if isinstance(gold, str) and isinstance(value, str):
        one, two = (unicodedata.normalize("NFC", t).strip() for t in (gold, value))
        return one == two
    if isinstance(gold, dict) and isinstance(value, dict):
        members = node.get("properties", {})
        return gold.keys() == value.keys() and all(
            _same(gold[name], value[name], members.get(name, {})) for name in gold
        )
    if isinstance(gold, list) and isinstance(value, list):
        items = node.get("items", {})
        if not node.get("x-unordered"):
            return len(gold) == len(value) and all(
                _same(one, two, items) for one, two in zip(gold, value, strict=True)
            )
        left = list(value)
        for one in gold:
            found = next((t for t in left if _same(one, t, items)), None)
            if found is None:
                return False
            left.remove(found)
        return not left
    return gold == value
