"""Why a score may not be published, in words beside the reason's key."""

from __future__ import annotations

from typing import Final

_MEANINGS: Final = {
    "publication.requested": "the config does not ask for publication",
    "source.lineage_policy": "the benchmark was made outside strict separation",
    "source_run_manifest.gold_eligible": "certification did not find the pack gold",
    "scoring.contract": "the scoring contract is not the one that ships",
    "rescore.policy": "scored again under another policy than the run's own",
    "stops.share_over_cap": "too many episodes stopped for a score to stand",
}
_OF_ONE_CANDIDATE: Final = {
    "model_identity": "no revision or digest pins the weights",
    "contamination.exposed": "the model read benchmark rows while they were made",
    "contamination.unresolved": "nobody can tell whether the model read the rows",
}
_LOCKED: Final = "differs from the value that publication locks"


def reason_in_words(reason: str) -> str:
    """Return a reason key with its meaning; an unknown key stands alone."""
    if reason in _MEANINGS:
        return f"{reason}: {_MEANINGS[reason]}"
    head, bracket, rest = reason.partition("[")
    alias, _, field = rest.partition("]")
    meaning = _OF_ONE_CANDIDATE.get(field.removeprefix(".") or head)
    if bracket and alias and meaning is not None:
        return f"{reason}: {meaning}"
    if head.split(".")[0] in ("scoring", "contamination", "outputs"):
        return f"{reason}: {_LOCKED}"
    return reason
