"""Which rows an evaluation was over, as hashes that do not hang on a file's layout.

`sha256` is over id and gold of every row in order, `inputs_sha256` over what each row
asks, `ids_sha256` over the ids. Numbers in gold keep their type, since contracts differ
in whether 1 is 1.0.
"""

from __future__ import annotations

import json
from hashlib import sha256

from harness.canonical import Json, canonical_json
from harness.evaluations.conditions import UNKNOWN
from harness.predictions.json_lines import text_bytes


class RowsDigest:
    """Takes rows in order; holds three hashes and a count."""

    def __init__(self, *, inputs: bool) -> None:
        """`inputs` tells whether it is known what each row asks."""
        self._rows, self._ids, self._inputs = sha256(), sha256(), sha256()
        self._has_inputs = inputs
        self.count = 0

    def add(self, row_id: Json, gold: Json, asked: Json = None) -> None:
        """Take one row in; `row_id` is a text, or a list of what names the row."""
        self.count += 1
        self._ids.update(_line(row_id))
        self._rows.update(_line([row_id, gold]))
        if self._has_inputs:
            self._inputs.update(_line(asked))

    @property
    def sha256(self) -> str:
        """64 hex digits over ids and gold."""
        return self._rows.hexdigest()

    def as_fields(self) -> dict[str, Json]:
        """Return the `rows` group of a protocol."""
        return {
            "sha256": self.sha256,
            "ids_sha256": self._ids.hexdigest(),
            "inputs_sha256": self._inputs.hexdigest() if self._has_inputs else UNKNOWN,
            "n": self.count,
        }


def _line(value: Json) -> bytes:
    """Return what is hashed of a value, of all that a plain JSON loader lets pass."""
    try:
        text = canonical_json(value)
    except ValueError:
        # NaN and infinity have no canonical text.
        text = json.dumps(
            value, ensure_ascii=False, separators=(",", ":"), sort_keys=True
        )
    return text_bytes(text + "\n")
