"""Premature knowledge: withheld values that a candidate wrote before it was told.

A turn is judged against everything said before it and against what its own script
states up to there, so a candidate that follows the script never counts. The chance
baseline are decoys of the same source, looked for in the same turns. Values are
counted, not rated: the counts with their denominators are the evidence, and neither a
gate nor a score reads them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from harness.conversation.task import TaskSpec
from harness.evidence.episode import Episode, ObservedTurn
from harness.evidence.records import Record
from harness.scoring.watchlist import (
    LiveResults,
    WatchedClaim,
    WatchedValue,
    Watchlist,
    live_results,
)
from harness.scoring.withheld import KINDS, RULE, DecoyPool, Kind, scalars, written

MOST_SIGHTINGS: Final = 20
"""Sightings that a report names one by one; all are counted."""
Place = Literal["call", "text"]


@dataclass(frozen=True, slots=True)
class Sighting(Record):
    """A withheld value in a candidate's output, before its release."""

    task_id: str
    trial: int
    turn_index: int
    kind: Kind
    source: str
    place: Place


class Watched(NamedTuple):
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
    _last: tuple[TaskSpec, LiveResults, Watchlist] | None = None
    """The task of the last episode: trials of a task follow each other."""

    def add(self, spec: TaskSpec, episode: Episode) -> None:
        """Look through one episode."""
        watched = watch(self._watchlist(spec, episode), episode)
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

    def _watchlist(self, spec: TaskSpec, episode: Episode) -> Watchlist:
        live = live_results(episode)
        last = self._last
        if last is None or last[0] is not spec or last[1] != live:
            self._last = last = (spec, live, Watchlist.of(spec, live, self.pool))
        return last[2]

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


def watch(watchlist: Watchlist, episode: Episode) -> tuple[Watched, ...]:
    """Look for every withheld value in the turns before its release."""
    outputs = [
        _Output.of(turn)
        for turn in episode.turns
        if turn.tool_calls or turn.text is not None
    ]
    if not outputs:
        return ()
    search = _Search(episode, outputs)
    found = [search.value(value) for value in watchlist.values]
    found += [search.claim(claim) for claim in watchlist.claims]
    return tuple([each for each in found if each is not None])


class _Output(NamedTuple):
    """What a candidate wrote in one turn."""

    turn: ObservedTurn
    text: str
    arguments: str
    """Every scalar of its calls on a line; the raw text of a broken call."""

    @classmethod
    def of(cls, turn: ObservedTurn) -> _Output:
        lines: list[str] = []
        for call in turn.tool_calls:
            if call.parsed_arguments is not None:
                lines += [written(v) for _, v in scalars(call.parsed_arguments)]
            elif isinstance(call.raw_arguments, str):
                lines.append(call.raw_arguments)
        return cls(turn, turn.text or "", "\n".join(lines))

    def place_of(self, value: str) -> Place | None:
        if _holds(self.arguments, value):
            return "call"
        return "text" if _holds(self.text, value) else None

    def claims(self, tool: str, parameter: str) -> bool:
        return any(
            call.function_name == tool
            and (call.parsed_arguments or {}).get(parameter) is True
            for call in self.turn.tool_calls
        )


@dataclass(slots=True)
class _Search:
    """One episode that is looked through."""

    episode: Episode
    outputs: list[_Output]
    _due: dict[int, tuple[list[_Output], str]] = field(default_factory=dict)

    def due(self, known_from: int) -> tuple[list[_Output], str]:
        """Return the outputs before a turn, and all that they hold as one text."""
        due = self._due.get(known_from)
        if due is None:
            before = [o for o in self.outputs if o.turn.turn_index < known_from]
            whole = "\n".join([text for o in before for text in (o.arguments, o.text)])
            due = self._due[known_from] = before, whole
        return due

    def value(self, value: WatchedValue) -> Watched | None:
        """Return the first sighting of a value, and how many decoys are seen."""
        due, whole = self.due(value.known_from)
        if not due:
            return None
        sighting = None
        for output in due if value.text in whole else ():
            place = output.place_of(value.text)
            if place is not None:
                sighting = self._sighting(output, value.kind, value.source, place)
                break
        # Hardly any decoy is anywhere, so that most are looked for only once.
        hits = [decoy for decoy in value.decoys if decoy in whole]
        seen = 0
        for decoy in hits:
            seen += any(each.place_of(decoy) for each in due)
        return Watched(value.kind, sighting, len(value.decoys), seen)

    def claim(self, claim: WatchedClaim) -> Watched | None:
        """Watch for calls that claim a confirmation the user has not given yet."""
        due, _ = self.due(claim.known_from)
        if not due:
            return None
        sighting = None
        for output in due:
            if output.claims(claim.tool, claim.parameter):
                source = f"confirmation of {claim.tool}"
                sighting = self._sighting(output, "confirmation", source, "call")
                break
        seen = sum(any(each.claims(*decoy) for each in due) for decoy in claim.decoys)
        return Watched("confirmation", sighting, len(claim.decoys), seen)

    def _sighting(
        self, output: _Output, kind: Kind, source: str, place: Place
    ) -> Sighting:
        task_id, trial = self.episode.task_id, self.episode.trial
        index = output.turn.turn_index
        return Sighting(task_id, trial, index, kind, source, place)


def _holds(text: str, value: str) -> bool:
    """Tell whether the value stands in the text as a whole token."""
    if value not in text:
        return False
    token = rf"(?<![\w-])(?<!\d[.,]){re.escape(value)}(?![\w-])(?![.,]\d)"
    return re.search(token, text) is not None
