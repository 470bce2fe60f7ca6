"""What a published score needs to be (`spec/executable-evaluator.md` 3.1, locks).

The same table answers twice: as violations when publication is requested, and as
`non_publication_reasons` of a run that goes ahead without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

from harness.config.contract import is_bundled_contract
from harness.config.violations import UNSOUND
from harness.strict_yaml import YamlPath

LOCKS: Final[tuple[tuple[str, str, Any], ...]] = (
    ("scoring", "argument_matching", "schema_then_canonical"),
    ("scoring", "respect_call_order", True),
    ("scoring", "respect_call_group", True),
    ("scoring", "allow_llm_repair", False),
    ("scoring", "task_success", "all_applicable_gates"),
    ("scoring", "intermediate_text_matching", "structural"),
    ("contamination", "enforce", True),
    ("contamination", "on_violation", "fail_run"),
    ("contamination", "comparison_set", "common_intersection"),
    ("outputs", "write_task_results", True),
    ("outputs", "write_eval_manifest", True),
    ("outputs", "cache_candidate_responses", True),
    ("outputs", "cache_tool_results", True),
)


@dataclass(frozen=True, slots=True)
class UnmetLock:
    """One reason why a score of this config cannot be published."""

    path: YamlPath
    reason: str
    expected: Any
    actual: Any
    recovery: str = "write the expected value, or set publication.requested: false"


class Values(Protocol):
    """Reads one value of a document by its key path; UNSOUND where it is refused."""

    def __call__(self, *path: str | int) -> Any:
        """Return the value."""


def values_of(payload: dict[str, Any]) -> Values:
    """Return the reader of a complete semantic payload."""

    def value(*path: str | int) -> Any:
        found: Any = payload
        for part in path:
            found = found[part]
        return found

    return value


def unmet_locks(
    value: Values,
    *,
    candidates: int,
    contract_hash: str | None,
    gold_eligible: bool | None,
) -> Iterator[UnmetLock]:
    """Yield what a config lacks for publication; None means not to be told."""
    for section, field, locked in LOCKS:
        actual = value(section, field)
        if actual is not UNSOUND and actual != locked:
            yield UnmetLock((section, field), f"{section}.{field}", locked, actual)
    for index in range(candidates):
        yield from _identity_lock(value, index)
    if contract_hash is not None and not is_bundled_contract(contract_hash):
        yield UnmetLock(
            ("scoring", "contract"),
            "scoring.contract",
            "the scoring contract as it comes with fairtrial, unchanged",
            "another document",
            "copy it again with `fairtrial config init`",
        )
    modes = value("eval", "mode")
    if modes is not UNSOUND and "executable" in modes and gold_eligible is False:
        yield UnmetLock(
            ("source_run_manifest",),
            "source_run_manifest.gold_eligible",
            "a gold-eligible publication for executable mode",
            "gold_eligible: false",
            "publish a pack that certification finds gold",
        )


def _identity_lock(value: Values, index: int) -> Iterator[UnmetLock]:
    identity = value("candidates", index, "model_identity")
    if identity is UNSOUND:
        return
    if not identity.get("revision") and not identity.get("weights_digest"):
        alias = value("candidates", index, "alias")
        yield UnmetLock(
            ("candidates", index, "model_identity"),
            f"candidates[{alias}].model_identity",
            "a revision or weights_digest that pins the weights",
            "neither",
        )
