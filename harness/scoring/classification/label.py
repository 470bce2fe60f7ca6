"""One answer against one gold label: the comparer of classification.

Both sides are folded: NFKC, runs of Unicode whitespace to one space, trim, casefold.
Nothing else is taken off and nothing is searched for in the text. An answer is valid
when its folded text is a label of the vocabulary, right when it is valid and equals
the folded gold. A gold outside the vocabulary is therefore never met.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from unicodedata import normalize

from harness.canonical import Json

METRIC_VERSION: Final = "1"
COMPARER_VERSION: Final = "label-fold-1"


def fold(text: str) -> str:
    """Return the form under which labels are compared."""
    return " ".join(normalize("NFKC", text).split()).casefold()


class Vocabulary:
    """The labels by their folded form; of two that fold together the later names it."""

    def __init__(self, labels: Iterable[str]) -> None:
        self._canonical = {fold(label): label for label in labels}

    def canonical(self, folded: str) -> str | None:
        """Return the spelling of a folded label, None for one that is not there."""
        return self._canonical.get(folded)


@dataclass(frozen=True, slots=True)
class LabelScore:
    """What one answer is worth and why."""

    failed: bool
    valid: bool
    correct: bool
    pred: str | None
    """The canonical spelling, else the trimmed text, None where there is no text."""
    gold_class: str
    """Folded."""
    predicted_class: str | None
    """Folded; None for an answer that names no label."""

    def as_record(self) -> dict[str, Json]:
        """Return the members that the contract names."""
        return {
            "failed": self.failed,
            "valid": self.valid,
            "correct": self.correct,
            "pred": self.pred,
        }


def score_label(raw: Json, gold: str, vocabulary: Vocabulary) -> LabelScore:
    """Score one answer; there is no input that it refuses.

    `raw` is the output as received, None where there is none. An output that is no
    text names no label.
    """
    gold_class = fold(gold)
    if not isinstance(raw, str):
        return LabelScore(raw is None, False, False, None, gold_class, None)
    folded = fold(raw)
    label = vocabulary.canonical(folded)
    if label is None:
        return LabelScore(False, False, False, raw.strip(), gold_class, None)
    return LabelScore(False, True, folded == gold_class, label, gold_class, folded)
