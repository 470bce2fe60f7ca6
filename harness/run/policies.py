"""Scoring policies that a rescoring can be asked for: by name, or from a file.

A name changes one rule of the run's own policy. A file has one section, `scoring`,
with the keys of a config's section that are to change; the contract document stays
the one that the run was recorded under.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.canonical import Json
from harness.conversation.task import ScoringPolicy
from harness.errors import EvidenceError, UsageError

DECLARED: Final = "declared"
CHANGES: Final[dict[str, dict[str, Json]]] = {
    DECLARED: {},
    "typed": {},
    "canonical-only": {"argument_matching": "canonical_only"},
    "defaults-inserted": {"insert_declared_defaults": True},
    "defaults-ignored": {"insert_declared_defaults": False},
    "order-free": {"respect_call_order": False},
    "assertions-only": {"task_success": "assertions_only"},
    "structural-text": {"intermediate_text_matching": "structural"},
    "verbatim-text": {"intermediate_text_matching": "verbatim"},
    "wire-1": {"attribution": "wire-1"},
    "strict-002": {"attribution": "strict-002"},
}
"""What each name changes; `declared` is the run's own policy, scored as of now."""
DIAGNOSTIC: Final = (
    "int-equals-float",
    "extra-arguments",
    "strings-folded",
    "groups-free",
)
"""Rules that no contract states: `sensitivity` shows them, no record is made."""


@dataclass(frozen=True, slots=True)
class NamedPolicy:
    """A policy and how it was asked for."""

    name: str
    """One of `CHANGES`, or `file`."""
    policy: ScoringPolicy


def named_policy(text: str | None, recorded: ScoringPolicy) -> NamedPolicy:
    """Return the policy that a command line asks for.

    Raises UsageError for an unknown name, a diagnostic rule or a file that is none.
    """
    name = DECLARED if text is None else text
    if name in CHANGES:
        return NamedPolicy(name, _changed(recorded, CHANGES[name], name))
    if name in DIAGNOSTIC:
        raise _refusal(
            name,
            "diagnostic_only: this rule belongs to no scoring contract",
            "a policy that a contract states",
            f"`fairtrial sensitivity RUN` shows what {name} would change",
        )
    path = Path(name)
    if not path.is_file():
        raise _refusal(
            name,
            "there is no such policy, and no such file",
            f"a file, or one of {', '.join(CHANGES)}",
            "name a policy, or write its keys under `scoring:` in a YAML file",
        )
    return NamedPolicy("file", _changed(recorded, _section(path), path.name))


def _section(path: Path) -> dict[str, Any]:
    from harness.strict_yaml import StrictYamlError, load_yaml

    try:
        document = load_yaml(path).value
    except StrictYamlError as error:
        raise _refusal(
            path.name, str(error), "one strict YAML document", "mend the file"
        ) from None
    section = document.get("scoring") if isinstance(document, dict) else None
    if not isinstance(section, dict) or document.keys() != {"scoring"}:
        raise _refusal(
            path.name,
            "a policy file has one section",
            "`scoring:` with the keys to change, and nothing else",
            "copy the keys from the `scoring` section of a config",
        )
    return section


def _changed(
    recorded: ScoringPolicy, changes: dict[str, Json], where: str
) -> ScoringPolicy:
    payload = recorded.semantic_payload()
    unknown = sorted(changes.keys() - (payload.keys() - {"contract_hash"}))
    if unknown:
        raise _refusal(
            where,
            f"a policy cannot change {', '.join(map(repr, unknown))}",
            f"some of {', '.join(sorted(payload.keys() - {'contract_hash'}))}",
            "take the other keys out; a new contract needs a new run",
        )
    try:
        return ScoringPolicy.from_payload({**payload, **changes}, where)
    except EvidenceError as error:
        first = error.violations[0]
        raise _refusal(first.where, first.problem, first.expected, "") from None


def _refusal(where: str, problem: str, expected: str, recovery: str) -> UsageError:
    return UsageError(
        "eval_cli_invalid",
        problem,
        where=f"--policy {where}",
        expected=expected,
        recovery=recovery or "write a value that a config may have",
    )
