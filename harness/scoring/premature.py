"""Premature knowledge: withheld values that a candidate wrote before it was told.

A turn is judged against everything said before it and against what its own script
states up to there, so a candidate that follows the script never counts. The chance
baseline are decoys of the same source, looked for in the same turns. Values are
counted, not rated: the counts with their denominators are the evidence, and neither a
gate nor a score reads them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal

from harness.canonical import canonical_json
from harness.conversation.task import TaskSpec
from harness.evidence.episode import Episode, ObservedTurn
from harness.evidence.records import Record
from harness.scoring.withheld import (
    KINDS,
    RULE,
    DecoyPool,
    Kind,
    result_of,
    scalars,
    withheld_values,
    written,
)
from harness.strict_json import decode

MOST_SIGHTINGS: Final = 20
"""Sightings that a report names one by one; all are counted."""
Place = Literal["call", "text"]
Look = Callable[[ObservedTurn], Place | None]


@dataclass(frozen=True, slots=True)
class Sighting(Record):
    """A withheld value in a candidate's output, before its release."""

    task_id: str
    trial: int
    turn_index: int
    kind: Kind
    source: str
    place: Place


@dataclass(frozen=True, slots=True)
class Watched:
    """One withheld value over one episode, with its decoys."""

    kind: Kind
    sighting: Sighting | None
    decoys: int
    decoys_seen: int


@dataclass(frozen=True, slots=True)
class TemplateCount(Record):
    """Counts of one template and kind of value; each counts once an episode."""

    template_id: str
    kind: Kind
    values: int
    """Withheld values that were due at one answered turn at least."""
    appeared: int
    decoys: int
    decoys_appeared: int


@dataclass(frozen=True, slots=True)
class KindCount(Record):
    """Counts of one kind over all templates."""

    kind: Kind
    values: int
    appeared: int
    decoys: int
    decoys_appeared: int


@dataclass(frozen=True, slots=True)
class PrematureKnowledge(Record):
    """What one candidate knew too early.

    Totals and sightings are of values alone. A confirmation that was claimed early is
    haste more often than knowledge, so it is counted by its kind and template only.
    """

    rule: str
    episodes: int
    """Episodes in which at least one withheld value was watched for."""
    episodes_with_sightings: int
    values: int
    appeared: int
    decoys: int
    decoys_appeared: int
    by_kind: tuple[KindCount, ...]
    by_template: tuple[TemplateCount, ...]
    sightings: tuple[Sighting, ...]
    """The first of them in plan order."""


@dataclass(slots=True)
class PrematureTally:
    """Takes one candidate's episodes; memory grows with templates."""

    pool: DecoyPool
    _episodes: int = 0
    _with_sightings: int = 0
    _counts: dict[tuple[str, Kind], list[int]] = field(default_factory=dict)
    _sightings: list[Sighting] = field(default_factory=list)

    def add(self, spec: TaskSpec, episode: Episode) -> None:
        """Look through one episode."""
        watched = watch(spec, episode, self.pool)
        values = [each for each in watched if each.kind != "confirmation"]
        seen = [each.sighting for each in values if each.sighting is not None]
        self._episodes += bool(values)
        self._with_sightings += bool(seen)
        self._sightings += seen[: MOST_SIGHTINGS - len(self._sightings)]
        for each in watched:
            count = self._counts.setdefault((spec.template_id, each.kind), [0] * 4)
            count[0] += 1
            count[1] += each.sighting is not None
            count[2] += each.decoys
            count[3] += each.decoys_seen

    def result(self) -> PrematureKnowledge:
        """Return all counts, sorted by template and kind."""
        by_kind = {kind: self._sum(kind) for kind in KINDS}
        by_template = tuple(
            TemplateCount(template_id, kind, *counts)
            for (template_id, kind), counts in sorted(self._counts.items())
        )
        return PrematureKnowledge(
            RULE,
            self._episodes,
            self._with_sightings,
            *self._sum(*(kind for kind in KINDS if kind != "confirmation")),
            tuple(KindCount(kind, *counts) for kind, counts in by_kind.items()),
            by_template,
            tuple(self._sightings),
        )

    def _sum(self, *kinds: Kind) -> tuple[int, int, int, int]:
        counts = [c for (_, kind), c in self._counts.items() if kind in kinds]
        values, appeared, decoys, decoys_appeared = (
            sum(count[place] for count in counts) for place in range(4)
        )
        return values, appeared, decoys, decoys_appeared


def watch(spec: TaskSpec, episode: Episode, pool: DecoyPool) -> tuple[Watched, ...]:
    """Look for every withheld value in the turns before its release."""
    answered = [t for t in episode.turns if t.tool_calls or t.text is not None]
    if not answered:
        return ()
    search = _Search(spec, episode)
    return (*_values(search, answered, pool), *_confirmations(search, answered))


@dataclass(frozen=True, slots=True)
class _Search:
    """One episode that is looked through."""

    spec: TaskSpec
    episode: Episode

    def watched(
        self,
        kind: Kind,
        source: str,
        due: Sequence[ObservedTurn],
        look: Look,
        decoys: Sequence[Look],
    ) -> Watched:
        """Return the first sighting in the turns that are due, and those of decoys."""
        sighting = None
        for turn in due:
            place = look(turn)
            if place is not None:
                task_id, trial = self.episode.task_id, self.episode.trial
                sighting = Sighting(
                    task_id, trial, turn.turn_index, kind, source, place
                )
                break
        seen = sum(any(decoy(turn) for turn in due) for decoy in decoys)
        return Watched(kind, sighting, len(decoys), seen)


def _values(
    search: _Search, answered: Sequence[ObservedTurn], pool: DecoyPool
) -> Iterator[Watched]:
    spec = search.spec
    values = withheld_values(spec)
    if not values:
        return
    known = _known(spec, search.episode)
    shown = "\n".join((known[-1], _rest_of(spec)))
    outputs = {turn.turn_index: _Output.of(turn) for turn in answered}

    def look_for(text: str) -> Look:
        return lambda turn: outputs[turn.turn_index].place_of(text)

    for value in values:
        folded = value.text.casefold()
        due = [turn for turn in answered if folded not in known[turn.turn_index]]
        if due:
            decoys = pool.decoys(spec, value, shown)
            yield search.watched(
                value.kind,
                value.source,
                due,
                look_for(value.text),
                [look_for(decoy) for decoy in decoys],
            )


@dataclass(frozen=True, slots=True)
class _Output:
    """What a candidate wrote in one turn."""

    text: str
    arguments: str
    """Every scalar of its calls on a line; the raw text of a broken call."""

    @classmethod
    def of(cls, turn: ObservedTurn) -> _Output:
        lines: list[str] = []
        for call in turn.tool_calls:
            if call.parsed_arguments is not None:
                lines += (written(v) for _, v in scalars(call.parsed_arguments))
            elif isinstance(call.raw_arguments, str):
                lines.append(call.raw_arguments)
        return cls(turn.text or "", "\n".join(lines))

    def place_of(self, value: str) -> Place | None:
        if _holds(self.arguments, value):
            return "call"
        return "text" if _holds(self.text, value) else None


def _holds(text: str, value: str) -> bool:
    """Tell whether the value stands in the text as a whole token."""
    if value not in text:
        return False
    token = rf"(?<![\w-])(?<!\d[.,]){re.escape(value)}(?![\w-])(?![.,]\d)"
    return re.search(token, text) is not None


def _known(spec: TaskSpec, episode: Episode) -> list[str]:
    """Return, for each scripted turn, all that is told before it or stated by it."""
    said = [_opening(spec)]
    live = _live_results(episode)
    known = []
    for turn in spec.script.turns:
        for call in turn.calls:
            said += (written(value) for _, value in scalars(call.arguments))
        said.append(turn.expected_assistant_content or "")
        known.append("\n".join(said).casefold())
        said.append(turn.releases_user_message or "")
        for call in turn.calls:
            result = result_of(call.recorded_result)
            said += (written(value) for _, value in scalars(result))
        said += live.get(turn.turn_index, ())
    return known


def _live_results(episode: Episode) -> dict[int, list[str]]:
    results: dict[int, list[str]] = {}
    for each in episode.execution.executions if episode.execution else ():
        if each.released_to_model:
            texts = [written(value) for _, value in scalars(each.result)]
            results.setdefault(each.turn_index, []).extend(texts)
    return results


def _opening(spec: TaskSpec) -> str:
    """Return what stands in the first request: messages and tools."""
    messages = (str(m.get("content", "")) for m in spec.script.seed_messages)
    return "\n".join((*messages, _words_of(canonical_json(list(spec.script.tools)))))


@lru_cache(maxsize=64)
def _words_of(tools: str) -> str:
    return "\n".join((tools, *(written(value) for _, value in scalars(decode(tools)))))


def _rest_of(spec: TaskSpec) -> str:
    """Return what the script says after the last turn that was known."""
    turns = spec.script.turns
    messages = [turn.releases_user_message or "" for turn in turns]
    results = [
        written(value)
        for call in spec.script.gold_calls
        for _, value in scalars(result_of(call.recorded_result))
    ]
    withheld = [value.text for value in withheld_values(spec)]
    return "\n".join((*messages, *results, *withheld)).casefold()


def _confirmations(
    search: _Search, answered: Sequence[ObservedTurn]
) -> Iterator[Watched]:
    """Watch for calls that claim a confirmation which the user has not given yet.

    A decoy is another tool of the task that wants a confirmation and never gets one.
    """
    spec = search.spec
    if spec.executable is None:
        return
    parameters = {
        policy.function_name: policy.confirmation_parameter
        for policy in spec.executable.tool_policies
        if policy.requires_confirmation and policy.confirmation_parameter
    }
    given: dict[str, int] = {}
    for turn in spec.script.turns:
        for call in turn.calls:
            parameter = parameters.get(call.function_name)
            if parameter is not None and call.arguments.get(parameter) is True:
                given.setdefault(call.function_name, turn.turn_index)
    for tool, release in given.items():
        due = [turn for turn in answered if turn.turn_index < release]
        if due:
            yield search.watched(
                "confirmation",
                f"confirmation of {tool}",
                due,
                _claim_of(tool, parameters[tool]),
                [_claim_of(n, p) for n, p in parameters.items() if n not in given],
            )


def _claim_of(tool: str, parameter: str) -> Look:
    def look(turn: ObservedTurn) -> Place | None:
        claims = any(
            call.function_name == tool
            and (call.parsed_arguments or {}).get(parameter) is True
            for call in turn.tool_calls
        )
        return "call" if claims else None

    return look
