"""A run's prompt: two texts, the contract written into one, an input into the other.

`{contract}` in the system text stands for the schema or the labels, `{input}` in the
user template for a row's input. Each is replaced once from left to right, and what was
put in is not searched again, so no input can pull the contract or another input in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from harness.canonical import Json, canonical_json
from harness.predictions.questions import Question

CONTRACT_MARK: Final = "{contract}"
INPUT_MARK: Final = "{input}"
PROMPT_VERSION: Final = "fairtrial-prompt-v1"


@dataclass(frozen=True, slots=True)
class Prompt:
    """What every row of one subject is turned into."""

    system: str | None
    """As written, before the contract is put in; None: no system message."""
    user: str | None
    """None: the input as it stands."""
    contract: str | None
    """The schema or the labels as text; None where the rows carry their own."""

    @property
    def system_message(self) -> str | None:
        """The system text as it is sent."""
        if self.system is None or self.contract is None:
            return self.system
        return self.system.replace(CONTRACT_MARK, self.contract)

    def messages(self, question: Question) -> tuple[dict[str, str], ...]:
        """Return the messages of one row."""
        text = question.input_text
        if self.user is not None:
            text = self.user.replace(INPUT_MARK, text)
        asked = {"role": "user", "content": text}
        system = self.system_message
        if system is None:
            return (asked,)
        return {"role": "system", "content": system}, asked

    def problems(self) -> Iterator[tuple[str, str, str]]:
        """Yield (which text, what is wrong, what was expected)."""
        if self.user is not None and INPUT_MARK not in self.user:
            yield (
                "user",
                "a template that puts no input in asks every row the same",
                f"{INPUT_MARK} in the text",
            )
        if self.contract is None and CONTRACT_MARK in (self.system or ""):
            yield (
                "system",
                "the rows carry their own tools, so there is nothing to put in",
                f"no {CONTRACT_MARK} in the text",
            )

    def as_record(self) -> dict[str, Json]:
        """Return every text with its hash (64 hex digits)."""
        texts = {
            "system": self.system,
            "user": self.user,
            "contract": self.contract,
            "system_message": self.system_message,
        }
        return {name: _hashed(text) for name, text in texts.items()}

    @classmethod
    def from_record(cls, record: dict[str, Json]) -> Prompt:
        """Rebuild a prompt; raises LookupError, TypeError or ValueError."""
        found = {}
        for name in ("system", "user", "contract"):
            entry = record[name]
            found[name] = None if entry is None else str(entry["text"])
        prompt = cls(**found)
        if prompt.as_record() != record:
            raise ValueError("a hash is not that of its text")
        return prompt


def contract_of_labels(labels: Sequence[str]) -> str:
    """Return labels as a prompt lists them: one a line, or JSON where one has lines."""
    if any(len(label.splitlines()) > 1 for label in labels):
        return canonical_json(list(labels))
    return "\n".join(labels)


def contract_of_schema(document: bytes) -> str:
    """Return a schema as a prompt shows it: the file's own text without its ends."""
    return document.decode("utf-8").strip()


def _hashed(text: str | None) -> dict[str, Json] | None:
    if text is None:
        return None
    return {"sha256": sha256(text.encode("utf-8")).hexdigest(), "text": text}
