"""Actions in canonical form, and the one equality of this contract.

An action is built by validation only. Its canonical text decides equality: keys are
sorted, strings are in NFC, declared numbers are doubles, and the calls of a PARALLEL
action stand in the order of their own texts, so that equal multisets have equal
texts. SINGLE, SERIAL and PARALLEL are three modes even where there is one call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from harness.canonical import Json, canonical_json

Decision = Literal["CALL", "CONFIRM", "CLARIFY", "ABSTAIN"]
Mode = Literal["SINGLE", "SERIAL", "PARALLEL"]
DECISIONS: Final = ("CALL", "CONFIRM", "CLARIFY", "ABSTAIN")
MODES: Final = ("SINGLE", "SERIAL", "PARALLEL")


@dataclass(frozen=True, slots=True)
class Call:
    """One call with canonical arguments."""

    tool: str
    args: dict[str, Json]

    def as_json(self) -> dict[str, Json]:
        """Return the call as the contract writes it."""
        return {"args": self.args, "tool": self.tool}


@dataclass(frozen=True, slots=True, eq=False)
class Action:
    """One valid action."""

    decision: Decision
    mode: Mode | None
    """Of CALL and CONFIRM; None otherwise."""
    calls: tuple[Call, ...]
    """In the order that equality sees."""
    missing: tuple[str, ...]
    """What CLARIFY asks for."""
    text: str
    """The canonical text."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Action):
            return NotImplemented
        return self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    @property
    def tools(self) -> frozenset[str]:
        """The tools that the action names."""
        return frozenset(call.tool for call in self.calls)

    def as_json(self) -> dict[str, Json]:
        """Return the action as the contract writes it."""
        return _payload(self.decision, self.mode, self.calls, self.missing)


def abstain() -> Action:
    """Return the action that does nothing."""
    return _action("ABSTAIN", None, (), ())


def clarify(missing: tuple[str, ...]) -> Action:
    """Return the action that asks for what is missing."""
    return _action("CLARIFY", None, (), missing)


def act(decision: Decision, mode: Mode, calls: tuple[Call, ...]) -> Action:
    """Return a CALL or a CONFIRM."""
    if mode == "PARALLEL":
        calls = tuple(sorted(calls, key=lambda call: canonical_json(call.as_json())))
    return _action(decision, mode, calls, ())


def _action(
    decision: Decision,
    mode: Mode | None,
    calls: tuple[Call, ...],
    missing: tuple[str, ...],
) -> Action:
    text = canonical_json(_payload(decision, mode, calls, missing))
    return Action(decision, mode, calls, missing, text)


def _payload(
    decision: Decision,
    mode: Mode | None,
    calls: tuple[Call, ...],
    missing: tuple[str, ...],
) -> dict[str, Json]:
    if mode is not None:
        written = [call.as_json() for call in calls]
        return {"calls": written, "decision": decision, "mode": mode}
    if decision == "CLARIFY":
        return {"decision": decision, "missing": list(missing)}
    return {"decision": decision}
