"""JSON lines as the prediction contracts read and write them.

Read with a plain JSON loader: a repeated key keeps its last value and NaN passes, for
that is what the published figures were read with. Blank lines, broken lines and lines
that hold no object are refused. Written as canonical text; a lone surrogate of a
candidate's text, which UTF-8 cannot hold, is written as its JSON escape.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.canonical import Json, canonical_json
from harness.errors import EvidenceError
from harness.recursion import parse_with_room
from harness.regular_file import open_regular_file
from harness.strict_json import is_past_parser_depth


def read_rows(path: Path) -> Iterator[dict[str, Json]]:
    """Yield the objects of a file, one a line.

    Raises EvidenceError (`eval_predictions_invalid`) at the first line that is none.
    """
    with open_regular_file(path) as stream:
        for number, line in enumerate(stream, 1):
            yield _row(line, f"{path.name}:{number}")


def line_bytes(record: Mapping[str, Json]) -> bytes:
    """Return a record as one line, its newline included."""
    return text_bytes(canonical_json(record) + "\n")


def text_bytes(json_text: str) -> bytes:
    """Return JSON text as UTF-8, a lone surrogate as its escape."""
    return json_text.encode("utf-8", "backslashreplace")


def _row(line: bytes, where: str) -> dict[str, Json]:
    try:
        text = line.decode("utf-8")
        if not text.strip():
            raise _broken(where, "a blank line")
        if is_past_parser_depth(text):
            raise _broken(where, "nested too deep")
        row = parse_with_room(json.loads, text)
    except RecursionError:
        raise _broken(where, "nested too deep") from None
    except ValueError as error:
        raise _broken(where, str(error)) from None
    if not isinstance(row, dict):
        raise _broken(where, f"a JSON {type(row).__name__}")
    return row


def _broken(where: str, seen: str) -> EvidenceError:
    return EvidenceError(
        "eval_predictions_invalid",
        "a line is no JSON object",
        where=where,
        expected="one JSON object on every line, UTF-8, no blank lines",
        actual=seen,
        recovery="bring back an intact copy of the file",
    )
