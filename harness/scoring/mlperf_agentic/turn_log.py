"""Joins what was issued with what was answered, in little memory.

Issues and completions meet by `sample_uuid`, in any order; the issue says which turn
it is. Several completions of one uuid: the latest real output stands. Several uuids
of one turn: likewise. Only what an answer contributes to a score is kept, as numbers
in flat arrays, so that a turn costs its uuid and some forty bytes, whatever the model
wrote.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterator
from itertools import groupby
from typing import Final, Generic, NamedTuple, TypeVar

from harness.scoring.mlperf_agentic.actions import Actions, bash_actions
from harness.scoring.mlperf_agentic.conversation_ids import Domain, conversation_of
from harness.scoring.mlperf_agentic.events import Event, EventKind
from harness.scoring.mlperf_agentic.model_output import ModelOutput, finished_calls
from harness.scoring.mlperf_agentic.recorded import ExpectedTurn, Recorded
from harness.scoring.mlperf_agentic.skips import CallSkip
from harness.scoring.mlperf_agentic.turns import Answer
from harness.scoring.mlperf_agentic.workflow import model_intent

_ABSENT: Final = -1
_UNANSWERED: Final = 0
_ANSWERED_NULL: Final = 1
_ANSWERED: Final = 2
_Value = TypeVar("_Value", bound=Hashable)


class IssuedTurn(NamedTuple):
    """One expected turn of one repeat that was issued, and what came of it."""

    expected: ExpectedTurn
    repeat: int
    answer: Answer | None
    """None where the model gave no output."""
    completed: bool
    """Whether any completion was recorded, with or without an output."""
    error_type: str | None
    """The last error that was recorded for it."""


class TurnLog:
    """Takes the events of a log, then yields the issued turns in reporting order.

    Call `add` for each event; if `unresolved` is not empty then, `resolve` for each
    event of a second reading; then `close`; then `issued` as often as needed.
    """

    def __init__(self, recorded: Recorded) -> None:
        self.recorded = recorded
        self.unresolved: set[str] = set()
        """Issued under the other rule after they were answered: to be read again."""
        self.ignored = 0
        """Issues and completions that name no expected turn."""
        self._slots: dict[str, int] = {}
        self._keys = array("q")
        self._states = array("b")
        self._order = array("q")
        self._names = array("i")
        self._stages = array("I")
        self._intents = array("i")
        self._errors = array("i")
        self._skips: dict[int, tuple[CallSkip, ...]] = {}
        self._repeats: _Numbering[int] = _Numbering()
        self._known_names: _Numbering[tuple[str, ...]] = _Numbering()
        self._known_intents: _Numbering[str | None] = _Numbering()
        self._known_errors: _Numbering[str] = _Numbering()
        self._outputs = 0
        self._reported = array("q")

    def add(self, event: Event) -> None:
        """Take one event of the log."""
        kind = event.kind
        if kind is EventKind.OTHER:
            return
        if kind is EventKind.ERROR:
            if event.sample_uuid and event.error_type is not None:
                error = self._known_errors.number(event.error_type)
                self._errors[self._slot(event.sample_uuid)] = error
            return
        key = self._key(event)
        if key is None:
            self.ignored += 1
        elif kind is EventKind.ISSUED:
            self._issue(event.sample_uuid, key)
        else:
            self._complete(self._slot(event.sample_uuid), event.output)

    def resolve(self, event: Event) -> None:
        """Take one event of a second reading, after every event was added."""
        if (
            event.kind is EventKind.COMPLETE
            and event.output is not None
            and event.sample_uuid in self.unresolved
            and self._key(event) is not None
        ):
            self._keep(self._slots[event.sample_uuid], event.output, None)

    def close(self) -> None:
        """Put the issued turns into reporting order, one for each turn and repeat."""
        self._slots = {}
        keys = self._keys
        slots = [slot for slot, key in enumerate(keys) if key != _ABSENT]
        place = self._places()
        slots.sort(key=lambda slot: place(keys[slot]))
        self._reported = array(
            "q",
            (
                max(same, key=self._standing)
                for _, same in groupby(slots, key=keys.__getitem__)
            ),
        )

    def issued(self) -> Iterator[IssuedTurn]:
        """Yield by source id, repeat and client turn; `close` comes first."""
        turns = self.recorded.turns
        for slot in self._reported:
            repeat, position = divmod(self._keys[slot], len(turns))
            state, error = self._states[slot], self._errors[slot]
            yield IssuedTurn(
                turns[position],
                self._repeats.values[repeat],
                self._answer(slot) if state == _ANSWERED else None,
                state != _UNANSWERED,
                None if error == _ABSENT else self._known_errors.values[error],
            )

    def _key(self, event: Event) -> int | None:
        if event.turn is None or not event.conversation_id:
            return None
        source_id, repeat = conversation_of(event.conversation_id)
        position = self.recorded.position_of(source_id, event.turn)
        if position is None:
            return None
        return self._repeats.number(repeat) * len(self.recorded.turns) + position

    def _slot(self, uuid: str) -> int:
        slot = self._slots.get(uuid)
        if slot is None:
            slot = self._slots[uuid] = len(self._keys)
            self._keys.append(_ABSENT)
            self._states.append(_UNANSWERED)
            self._order.append(_ABSENT)
            self._names.append(_ABSENT)
            self._stages.append(0)
            self._intents.append(_ABSENT)
            self._errors.append(_ABSENT)
        return slot

    def _domain(self, key: int) -> Domain:
        turns = self.recorded.turns
        return turns[key % len(turns)].truth.domain

    def _issue(self, uuid: str, key: int) -> None:
        slot = self._slot(uuid)
        self._keys[slot] = key
        if self._states[slot] == _ANSWERED:
            is_workflow = self._domain(key) is Domain.WORKFLOW
            kept = self._intents if is_workflow else self._names
            if kept[slot] == _ABSENT:
                self.unresolved.add(uuid)

    def _complete(self, slot: int, output: ModelOutput | None) -> None:
        if output is None:
            self._states[slot] = max(self._states[slot], _ANSWERED_NULL)
            return
        self._states[slot] = _ANSWERED
        self._order[slot] = self._outputs
        self._outputs += 1
        key = self._keys[slot]
        self._keep(slot, output, None if key == _ABSENT else self._domain(key))

    def _keep(self, slot: int, output: ModelOutput, domain: Domain | None) -> None:
        """Keep what the output contributes to one rule, or to both for None."""
        names, intent = _ABSENT, _ABSENT
        self._skips.pop(slot, None)
        if domain is not Domain.WORKFLOW:
            merged = finished_calls(output.tool_calls)
            actions = bash_actions(merged.calls)
            names = self._known_names.number(actions.names)
            self._stages[slot] = actions.stages
            if merged.skips or actions.skips:
                self._skips[slot] = merged.skips + actions.skips
        if domain is not Domain.CODING:
            found = model_intent(output.reasoning, output.content)
            intent = self._known_intents.number(found)
        self._names[slot] = names
        self._intents[slot] = intent

    def _answer(self, slot: int) -> Answer:
        if self._domain(self._keys[slot]) is Domain.WORKFLOW:
            return Answer(intent=self._known_intents.values[self._intents[slot]])
        names = self._known_names.values[self._names[slot]]
        return Answer(Actions(names, self._stages[slot], self._skips.get(slot, ())))

    def _standing(self, slot: int) -> tuple[int, int, int]:
        """Of several uuids of one turn the greatest stands for it."""
        return self._states[slot], self._order[slot], self._errors[slot]

    def _places(self) -> _Places:
        return _Places(self.recorded, self._repeats.values)


class _Places:
    """Turns a key into its place in the report, one whole number."""

    def __init__(self, recorded: Recorded, repeats: list[int]) -> None:
        self._turns = len(recorded.turns)
        ranks = {source_id: rank for rank, source_id in enumerate(recorded.positions)}
        self._sources = array("q", (ranks[turn.source_id] for turn in recorded.turns))
        by_repeat = sorted(range(len(repeats)), key=repeats.__getitem__)
        self._repeats = array("q", bytes(8 * len(repeats)))
        for rank, number in enumerate(by_repeat):
            self._repeats[number] = rank

    def __call__(self, key: int) -> int:
        repeat, position = divmod(key, self._turns)
        place = self._sources[position] * len(self._repeats) + self._repeats[repeat]
        return place * self._turns + position


class _Numbering(Generic[_Value]):
    """Gives equal values one number, so that each is kept once."""

    def __init__(self) -> None:
        self.values: list[_Value] = []
        self._numbers: dict[_Value, int] = {}

    def number(self, value: _Value) -> int:
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.values)
            self.values.append(value)
        return number
