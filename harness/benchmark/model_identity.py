"""Whether two claims name the same model, by the strongest evidence that both have.

The rules are those of `spec/executable-evaluator.md` 3.4; the first that decides
wins, and every text is compared without regard to case. `unknown` is an answer of
its own: nothing is guessed either way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from harness.evidence.records import Record

Verdict = Literal["match", "different", "unknown"]
Axis = Literal[
    "nothing_named",
    "weights_digest",
    "label",
    "served_model",
    "weight_source",
    "revision",
    "name",
]
"""What decided a comparison."""

BROAD_SCHEMES: Final = frozenset({"bfcl-weight-manifest-v1"})
"""Digests over more than weights: two of them differ for the same weights too."""
_NOT_A_NAME = re.compile(r"[^0-9a-z]")


@dataclass(frozen=True, slots=True)
class IdentityClaim(Record):
    """What one party says about the model behind a name; None where it is silent."""

    provider: str | None
    served_model: str | None
    weight_source: str | None
    weight_model: str | None
    revision: str | None
    weights_digest: str | None
    label: str | None
    """The identity as one text, `source:model@pin`."""

    @property
    def names_something(self) -> bool:
        """Tell whether any axis but the provider is stated."""
        return any(
            (
                self.served_model,
                self.weight_model,
                self.revision,
                self.weights_digest,
                self.label,
            )
        )

    @property
    def shown(self) -> str:
        """The claim's most telling text."""
        return self.label or self.served_model or self.weight_model or "(no name)"

    def names(self) -> frozenset[str]:
        """Return the normalised model names of the claim."""
        named = [self.served_model, self.weight_model, _model_of_label(self.label)]
        return frozenset(filter(None, (_normal(name) for name in named if name)))


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answer for one pair of claims."""

    verdict: Verdict
    axis: Axis
    reason: str
    settled_by: str | None = None
    """For `unknown`: what has to be stated for an answer."""


def compare(candidate: IdentityClaim, exposed: IdentityClaim) -> Comparison:
    """Compare a candidate with a model that read benchmark rows."""
    if not candidate.names_something or not exposed.names_something:
        side = "the candidate" if exposed.names_something else "the exposed model"
        return Comparison(
            "unknown",
            "nothing_named",
            f"{side} names no model",
            f"state provider, model and a revision or weights_digest of {side}",
        )
    return (
        _by_digest(candidate, exposed)
        or _by_equal(candidate, exposed, "label")
        or _by_served_model(candidate, exposed)
        or _by_names(candidate, exposed)
    )


def _by_digest(candidate: IdentityClaim, exposed: IdentityClaim) -> Comparison | None:
    if not candidate.weights_digest or not exposed.weights_digest:
        return None
    scheme, body = _digest(candidate.weights_digest)
    other_scheme, other_body = _digest(exposed.weights_digest)
    if body == other_body:
        return Comparison("match", "weights_digest", "the weights digests are equal")
    comparable = not _conflict(scheme, other_scheme) and len(body) == len(other_body)
    if comparable and not BROAD_SCHEMES & {scheme, other_scheme}:
        return Comparison("different", "weights_digest", "the weights digests differ")
    return None


def _by_equal(
    candidate: IdentityClaim, exposed: IdentityClaim, axis: Literal["label"]
) -> Comparison | None:
    if _same(candidate.label, exposed.label):
        return Comparison("match", axis, "the identities are equal as texts")
    return None


def _by_served_model(
    candidate: IdentityClaim, exposed: IdentityClaim
) -> Comparison | None:
    same = _same(candidate.served_model, exposed.served_model)
    if same and not _conflict(candidate.provider, exposed.provider):
        return Comparison(
            "match", "served_model", "one provider serves one model under this name"
        )
    return None


def _by_names(candidate: IdentityClaim, exposed: IdentityClaim) -> Comparison:
    ours, theirs = candidate.names(), exposed.names()
    if not ours & theirs:
        if ours and theirs:
            return Comparison("different", "name", "the models have different names")
        return Comparison(
            "unknown", "name", "one side names no model", _missing(candidate, exposed)
        )
    if _conflict(candidate.weight_source, exposed.weight_source):
        return Comparison(
            "unknown",
            "weight_source",
            "one name, and weights from different sources",
            _missing(candidate, exposed, revision=False),
        )
    if candidate.revision and exposed.revision:
        if _same(candidate.revision, exposed.revision):
            return Comparison("match", "revision", "one name and one revision")
        return Comparison("different", "revision", "one name, different revisions")
    return Comparison(
        "unknown",
        "name",
        "one name, and nothing that pins the weights on both sides",
        _missing(candidate, exposed),
    )


def _missing(
    candidate: IdentityClaim, exposed: IdentityClaim, *, revision: bool = True
) -> str:
    """Say which statements would decide."""
    sides = (("the candidate", candidate), ("the exposed model", exposed))
    digest = [side for side, claim in sides if not claim.weights_digest]
    ways = []
    if digest:
        ways.append(f"a weights_digest of {' and of '.join(digest)}")
    else:
        ways.append("weights digests of both under one scheme over the weights alone")
    pins = [side for side, claim in sides if not claim.revision]
    if revision and pins:
        ways.append(f"a revision of {' and of '.join(pins)}")
    return "state " + ", or ".join(ways)


def _digest(text: str) -> tuple[str | None, str]:
    scheme, colon, body = text.casefold().rpartition(":")
    return (scheme if colon else None), body


def _same(left: str | None, right: str | None) -> bool:
    return bool(left and right) and _folded(left) == _folded(right)


def _conflict(left: str | None, right: str | None) -> bool:
    return bool(left and right) and _folded(left) != _folded(right)


def _folded(text: str | None) -> str:
    return (text or "").casefold()


def _normal(name: str) -> str:
    return _NOT_A_NAME.sub("", name.rstrip("/").rpartition("/")[2].casefold())


def _model_of_label(label: str | None) -> str | None:
    if not label:
        return None
    named = label.rpartition("@")[0] or label
    return named.partition(":")[2] or named
