"""What one task gives a reason to watch for, and up to which turn.

All of it follows from the task, from the plan's decoys and from what a live oracle has
released, so it is worked out once for the episodes of a task that share the last.
A value is known from the first scripted turn on before which it was told or in which
the script states it; what is known once stays known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from harness.canonical import canonical_json
from harness.conversation.task import TaskSpec
from harness.evidence.episode import Episode
from harness.scoring.withheld import (
    DecoyPool,
    Kind,
    WithheldValue,
    recorded_scalars,
    scalars,
    withheld_values,
    written,
)
from harness.strict_json import decode

LiveResults = Mapping[int, Sequence[str]]
"""The scalars of the results that each turn released."""


@dataclass(frozen=True, slots=True)
class WatchedValue:
    """A withheld value with its decoys."""

    kind: Kind
    source: str
    text: str
    known_from: int
    """The first turn that may hold it; the number of turns if there is none."""
    decoys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WatchedClaim:
    """A confirmation that a call may claim once the user has given it."""

    tool: str
    parameter: str
    known_from: int
    decoys: tuple[tuple[str, str], ...]
    """Other tools of the task that want a confirmation and never get one."""


@dataclass(frozen=True, slots=True)
class Watchlist:
    """All that is watched for in one task."""

    values: tuple[WatchedValue, ...]
    claims: tuple[WatchedClaim, ...]

    @classmethod
    def of(cls, spec: TaskSpec, live: LiveResults, pool: DecoyPool) -> Watchlist:
        """Work out what is withheld how long."""
        return cls(_values(spec, live, pool), _claims(spec))


def live_results(episode: Episode) -> LiveResults:
    """Return what an executed episode released; {} for a trace."""
    results: dict[int, list[str]] = {}
    for each in episode.execution.executions if episode.execution else ():
        if each.released_to_model:
            texts = [written(value) for _, value in scalars(each.result)]
            results.setdefault(each.turn_index, []).extend(texts)
    return results


def _values(
    spec: TaskSpec, live: LiveResults, pool: DecoyPool
) -> tuple[WatchedValue, ...]:
    recorded = recorded_scalars(spec)
    withheld = withheld_values(spec, recorded)
    if not withheld:
        return ()
    results = [[written(value) for _, value in result] for result in recorded]
    known = _known(spec, live, results)
    shown = "\n".join((known[-1], _rest_of(spec, withheld, results)))
    found = []
    for value in withheld:
        known_from = _first_with(known, value.text.casefold())
        # What the first turn may hold is never early, so nobody watches for it.
        if known_from:
            decoys = tuple(pool.decoys(spec, value, shown))
            found.append(
                WatchedValue(value.kind, value.source, value.text, known_from, decoys)
            )
    return tuple(found)


def _first_with(known: Sequence[str], text: str) -> int:
    for turn_index, told in enumerate(known):
        if text in told:
            return turn_index
    return len(known)


def _known(
    spec: TaskSpec, live: LiveResults, results: Sequence[Sequence[str]]
) -> list[str]:
    """Return, for each scripted turn, all that is told before it or stated by it.

    `results` are the texts of the gold results. Case is folded, part by part: the tools
    alone are longer than all the rest.
    """
    told = _opening(spec)
    results_left = iter(results)
    known = []
    said: list[str] = []
    for turn in spec.script.turns:
        for call in turn.calls:
            said += (written(value) for _, value in scalars(call.arguments))
        said.append(turn.expected_assistant_content or "")
        told = "\n".join((told, *map(str.casefold, said)))
        known.append(told)
        said = [turn.releases_user_message or ""]
        for _ in turn.calls:
            said += next(results_left)
        said += live.get(turn.turn_index, ())
    return known


def _opening(spec: TaskSpec) -> str:
    """Return what stands in the first request, messages and tools, folded."""
    messages = [str(m.get("content", "")).casefold() for m in spec.script.seed_messages]
    return "\n".join((*messages, _words_of(canonical_json(list(spec.script.tools)))))


@lru_cache(maxsize=64)
def _words_of(tools: str) -> str:
    words = (written(value) for _, value in scalars(decode(tools)))
    return "\n".join((tools, *words)).casefold()


def _rest_of(
    spec: TaskSpec,
    withheld: Sequence[WithheldValue],
    results: Sequence[Sequence[str]],
) -> str:
    """Return what the script says after the last turn that was known."""
    turns = spec.script.turns
    messages = [turn.releases_user_message or "" for turn in turns]
    texts = [value.text for value in withheld]
    return "\n".join((*messages, *chain(*results), *texts)).casefold()


def _claims(spec: TaskSpec) -> tuple[WatchedClaim, ...]:
    if spec.executable is None:
        return ()
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
    others = tuple((n, p) for n, p in parameters.items() if n not in given)
    return tuple(
        WatchedClaim(tool, parameters[tool], turn_index, others)
        for tool, turn_index in given.items()
    )
