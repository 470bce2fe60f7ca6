"""The one comparison kernel: a candidate's turn against the scripted turn.

The driver asks it whether to go on, the scorer asks it again from the evidence
(spec 3.6). Calls are paired as a set: full matches first, then calls of the same
name, both in the order in which the candidate made them. Order is judged on top.

With declared defaults inserted, a top-level parameter that has a default and that
no gold call of this tool in the whole task states is *unconstrained*: it is dropped
from both sides, whatever the candidate wrote. Since that rule depends on the tool
alone, a full match is an equivalence and the greedy pairing is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from harness.canonical import json_equal
from harness.conversation.script import (
    ConversationScript,
    ScriptedCall,
    ScriptedTurn,
)
from harness.conversation.task import ScoringPolicy
from harness.evidence.episode import ToolCall
from harness.evidence.records import Record
from harness.json_schema import ToolCatalog


@dataclass(frozen=True, slots=True)
class CallMatch(Record):
    """One call of the candidate beside the gold call that it was paired with."""

    position_in_turn: int
    gold_call_index: int | None
    name_matched: bool
    arguments_matched: bool
    missing: tuple[str, ...]
    """Top-level names that gold has and the call has not, sorted."""
    unexpected: tuple[str, ...]
    differing: tuple[str, ...]
    schema_failures: tuple[dict[str, Any], ...]
    """What the call violates in its own tool's schema; () under `canonical_only`."""
    detail: str


@dataclass(frozen=True, slots=True)
class TurnMatch(Record):
    """The verdict on one turn; None where a question does not apply."""

    OUTSIDE_IDENTITY: ClassVar[frozenset[str]] = frozenset({"detail", "order_detail"})

    matched: bool
    incomplete_finish: bool
    group_size_matched: bool | None
    """Whether a call turn has as many calls as gold, also with grouping relaxed."""
    text_matched: bool | None
    order_respected: bool | None
    """False only for an order fault; a wrong set of calls is none under `strict`."""
    order_detail: str
    calls: tuple[CallMatch, ...]
    paired_call_indexes: tuple[int | None, ...]
    detail: str


def match_turn(
    turn: ScriptedTurn,
    expected: tuple[ScriptedCall, ...],
    *,
    text: str | None,
    tool_calls: tuple[ToolCall, ...],
    incomplete: bool,
    catalog: ToolCatalog,
    policy: ScoringPolicy,
    script: ConversationScript,
    issued_names: tuple[str, ...],
) -> TurnMatch:
    """Judge one answered turn.

    `expected` is the turn's gold calls with live dependency values put in,
    `incomplete` says that the finish reason reports a cut or withheld generation,
    `issued_names` are the names of the calls of all earlier turns, in order.
    """
    comparer = _Comparer(catalog, policy, script)
    proposed = [comparer.proposal(call) for call in tool_calls]
    if not turn.expects_calls:
        return _match_text(turn, text, proposed, incomplete, policy)
    gold = [comparer.gold(call) for call in expected]
    pairs = _pair(proposed, gold)
    calls = tuple(
        comparer.judge(call, gold, pairs, position)
        for position, call in enumerate(proposed)
    )
    group_size_matched = len(proposed) == len(gold)
    all_matched = group_size_matched and all(call.arguments_matched for call in calls)
    order_respected, order_detail = _order(
        proposed, gold, all_matched, script, policy, issued_names
    )
    return TurnMatch(
        matched=all_matched and order_respected is not False and not incomplete,
        incomplete_finish=incomplete,
        group_size_matched=group_size_matched,
        text_matched=None,
        order_respected=order_respected,
        order_detail=order_detail,
        calls=calls,
        paired_call_indexes=tuple(call.gold_call_index for call in calls),
        detail=_call_turn_detail(len(proposed), len(gold), incomplete),
    )


def has_text(text: str | None) -> bool:
    """Tell whether a message says anything: text that is not blank."""
    return text is not None and bool(text.strip())


@dataclass(slots=True)
class _Proposal:
    """A call of the candidate, made comparable once."""

    call: ToolCall
    name: str | None
    """None for a call that cannot match anything: no name, or another type."""
    schema_failures: tuple[dict[str, Any], ...]
    arguments: dict[str, Any] | None
    """Normalised; None where they are no strict object."""


@dataclass(slots=True)
class _Gold:
    """A gold call with its arguments normalised."""

    call: ScriptedCall
    arguments: dict[str, Any]


class _Comparer:
    """Normalises and compares arguments under one catalog, policy and script."""

    def __init__(
        self, catalog: ToolCatalog, policy: ScoringPolicy, script: ConversationScript
    ) -> None:
        self._catalog = catalog
        self._script = script
        self._check_schema = policy.argument_matching == "schema_then_canonical"
        self._insert_defaults = policy.insert_declared_defaults

    def proposal(self, call: ToolCall) -> _Proposal:
        """Prepare a call of the candidate."""
        name = call.function_name if call.type in (None, "function") else None
        arguments = None
        if call.arguments_status == "valid_object":
            arguments = call.parsed_arguments
        return _Proposal(
            call,
            name,
            self._schema_failures(call, arguments) if self._check_schema else (),
            None if arguments is None else self._normalise(name, arguments),
        )

    def gold(self, call: ScriptedCall) -> _Gold:
        """Prepare a gold call."""
        return _Gold(call, self._normalise(call.function_name, call.arguments))

    def judge(
        self,
        proposal: _Proposal,
        gold: Sequence[_Gold],
        pairs: Sequence[int | None],
        position: int,
    ) -> CallMatch:
        """Describe a call beside its pair, or beside the first gold call left."""
        paired = pairs[position]
        if paired is None:
            return CallMatch(
                position_in_turn=position,
                gold_call_index=None,
                name_matched=False,
                arguments_matched=False,
                missing=(),
                unexpected=(),
                differing=(),
                schema_failures=proposal.schema_failures,
                detail=_unpaired_detail(proposal, gold, pairs),
            )
        other = gold[paired]
        matched = _full_match(proposal, other)
        missing, unexpected, differing = _diff(proposal.arguments, other.arguments)
        return CallMatch(
            position_in_turn=position,
            gold_call_index=other.call.call_index,
            name_matched=True,
            arguments_matched=matched,
            missing=missing,
            unexpected=unexpected,
            differing=differing,
            schema_failures=proposal.schema_failures,
            detail="" if matched else _paired_detail(proposal),
        )

    def _schema_failures(
        self, call: ToolCall, arguments: dict[str, Any] | None
    ) -> tuple[dict[str, Any], ...]:
        if call.function_name not in self._catalog.names:
            return self._catalog.failures(call.function_name or "", {})
        return self._catalog.failures(call.function_name, arguments)

    def _normalise(self, name: str | None, arguments: dict[str, Any]) -> dict[str, Any]:
        if not self._insert_defaults or name is None:
            return arguments
        schema = self._catalog.schema(name)
        if schema is None:
            return arguments
        filled = schema.with_defaults(arguments)
        if schema.defaulted:
            for free in schema.defaulted - self._stated(name):
                filled.pop(free, None)
        return filled

    def _stated(self, name: str) -> frozenset[str]:
        return frozenset(
            argument
            for turn in self._script.turns
            for call in turn.calls
            if call.function_name == name
            for argument in call.arguments
        )


def _full_match(proposal: _Proposal, gold: _Gold) -> bool:
    return (
        proposal.name == gold.call.function_name
        and not proposal.schema_failures
        and proposal.arguments is not None
        and json_equal(proposal.arguments, gold.arguments)
    )


def _same_name(proposal: _Proposal, gold: _Gold) -> bool:
    return proposal.name == gold.call.function_name


def _pair(proposed: Sequence[_Proposal], gold: Sequence[_Gold]) -> list[int | None]:
    """Return for each proposed call the position of its gold call."""
    pairs: list[int | None] = [None] * len(proposed)
    left = list(range(len(gold)))
    for agrees in (_full_match, _same_name):
        for position, proposal in enumerate(proposed):
            if pairs[position] is not None or not left:
                continue
            found = next((i for i in left if agrees(proposal, gold[i])), None)
            if found is not None:
                pairs[position] = found
                left.remove(found)
    return pairs


def _diff(
    arguments: dict[str, Any] | None, gold: dict[str, Any]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return top-level names: missing, unexpected, differing."""
    if arguments is None:
        return (), (), ()
    return (
        tuple(sorted(gold.keys() - arguments.keys())),
        tuple(sorted(arguments.keys() - gold.keys())),
        tuple(
            sorted(
                name
                for name in gold.keys() & arguments.keys()
                if not json_equal(arguments[name], gold[name])
            )
        ),
    )


def _order(
    proposed: Sequence[_Proposal],
    gold: Sequence[_Gold],
    all_matched: bool,
    script: ConversationScript,
    policy: ScoringPolicy,
    issued_names: tuple[str, ...],
) -> tuple[bool | None, str]:
    if not policy.respect_call_order or script.call_order == "any":
        return None, ""
    if script.call_order == "prefix":
        made = (call.name for call in proposed if call.name is not None)
        seen = _first_appearances([*issued_names, *made], script.required_tools)
        wanted = script.required_tools[: script.call_order_prefix]
        begun = seen[: len(wanted)]
        if begun == wanted[: len(begun)]:
            return True, ""
        return False, f"tools first appear as {begun}, the script asks for {wanted}"
    if not all_matched:
        return True, ""
    for position, (proposal, gold_call) in enumerate(zip(proposed, gold, strict=True)):
        if not _full_match(proposal, gold_call):
            return False, (
                f"the calls are right as a set, but call {position} should be "
                f"{gold_call.call.function_name} of gold call "
                f"{gold_call.call.call_index}"
            )
    return True, ""


def _first_appearances(
    names: Iterable[str], required: tuple[str, ...]
) -> tuple[str, ...]:
    wanted = frozenset(required)
    return tuple(dict.fromkeys(name for name in names if name in wanted))


def _match_text(
    turn: ScriptedTurn,
    text: str | None,
    proposed: Sequence[_Proposal],
    incomplete: bool,
    policy: ScoringPolicy,
) -> TurnMatch:
    problem = _text_problem(turn, text, bool(proposed), incomplete, policy)
    return TurnMatch(
        matched=not problem,
        incomplete_finish=incomplete,
        group_size_matched=None,
        text_matched=not problem,
        order_respected=None,
        order_detail="",
        calls=tuple(
            CallMatch(
                position_in_turn=position,
                gold_call_index=None,
                name_matched=False,
                arguments_matched=False,
                missing=(),
                unexpected=(),
                differing=(),
                schema_failures=call.schema_failures,
                detail="the script expects text here, no call",
            )
            for position, call in enumerate(proposed)
        ),
        paired_call_indexes=(None,) * len(proposed),
        detail=problem,
    )


def _text_problem(
    turn: ScriptedTurn,
    text: str | None,
    has_calls: bool,
    incomplete: bool,
    policy: ScoringPolicy,
) -> str:
    if incomplete:
        return "the finish reason reports an incomplete answer"
    if has_calls:
        return "the script expects text here, the candidate made a call"
    if not has_text(text):
        return "the script expects text here, the candidate said nothing"
    if (
        policy.intermediate_text_matching == "verbatim"
        and not turn.is_terminal
        and text != turn.expected_assistant_content
    ):
        return "the text differs from the script's"
    return ""


def _call_turn_detail(proposed: int, gold: int, incomplete: bool) -> str:
    if incomplete:
        return "the finish reason reports an incomplete answer"
    if not proposed:
        return f"the script expects {gold} call(s), the candidate made none"
    if proposed != gold:
        return f"the script expects {gold} call(s), the candidate made {proposed}"
    return ""


def _unpaired_detail(
    proposal: _Proposal, gold: Sequence[_Gold], pairs: Sequence[int | None]
) -> str:
    made = proposal.call.function_name
    if proposal.name is None:
        return f"a call of type {proposal.call.type!r} to {made!r} is no function call"
    left = next((g for i, g in enumerate(gold) if i not in pairs), None)
    if left is None:
        return f"an extra call of {made}; every gold call is taken"
    return f"a call of {made}; the gold call left is {left.call.function_name}"


def _paired_detail(proposal: _Proposal) -> str:
    if proposal.arguments is None:
        return f"the arguments are {proposal.call.arguments_status}"
    if proposal.schema_failures:
        return "the arguments violate the tool's schema"
    return "the arguments differ from gold"
