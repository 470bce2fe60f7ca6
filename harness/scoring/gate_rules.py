"""What each gate asks, in words: one row a gate, for reports and reference pages.

The verdicts are made in `trace` and `executable`; a test holds this table to the
closed set of gate names, in its order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from harness.scoring.records import GateName


@dataclass(frozen=True, slots=True)
class GateRule:
    """One gate in words."""

    scope: Literal["trace", "executable"]
    """`trace` gates are judged in both modes."""
    question: str
    passes_when: str
    not_applicable_when: str


GATE_RULES: Final[dict[GateName, GateRule]] = {
    "tool_selection": GateRule(
        "trace",
        "Did the candidate ask for the right tools?",
        "every gold call is named by a call paired with it, and no call is left over; "
        "a row without calls passes when no call was made",
        "never",
    ),
    "arguments": GateRule(
        "trace",
        "Did every call carry the right arguments?",
        "every gold call is matched in full",
        "the row expects no call",
    ),
    "schema_valid": GateRule(
        "trace",
        "Does every call that was made fit its own tool's schema?",
        "every made call satisfies its schema, with no default filled in",
        "no call was made, or `argument_matching` is `canonical_only`",
    ),
    "call_grouping": GateRule(
        "trace",
        "Were calls grouped into turns as the script groups them?",
        "every asked call turn has as many calls as its gold group",
        "`respect_call_group` is false, or the row has no call turn",
    ),
    "call_ordering": GateRule(
        "trace",
        "Did calls come in the order that the row asks for?",
        "every asked turn respects the row's `call_order`",
        "`respect_call_order` is false, the row's order is `any`, or fewer than two "
        "calls are expected",
    ),
    "text_turn": GateRule(
        "trace",
        "Did the candidate speak where the script speaks?",
        "every asked text turn is answered in words and without a call",
        "the row has no text turn",
    ),
    "trace_completion": GateRule(
        "trace",
        "Was the conversation walked to its end?",
        "the end of the script was reached with complete answers",
        "never",
    ),
    "oracle_execution": GateRule(
        "executable",
        "Did every call that was made run?",
        "every execution completed; a business rejection is a completed exchange",
        "no call was made",
    ),
    "dependency_resolution": GateRule(
        "executable",
        "Was every value there that the script takes from a live result?",
        "every dependency that was reached has been resolved",
        "the row declares none, or none was reached",
    ),
    "commit_state_known": GateRule(
        "executable",
        "Is it known for every mutating call whether it changed the state?",
        "no mutating call has an unknown outcome",
        "no mutating call ran",
    ),
    "assertions": GateRule(
        "executable",
        "Do the pack's own success assertions hold?",
        "every declared assertion passed or did not apply, and not all of them did "
        "not apply",
        "none is declared, none applies, or a stop kept them from running",
    ),
    "executable_completion": GateRule(
        "executable",
        "Did the episode end as completed?",
        "the episode's status is `completed`",
        "never",
    ),
}
"""Every gate in the order in which scores list them."""
