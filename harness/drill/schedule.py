"""The seeded plan of a drill: which task of which round meets which fault.

A round is one whole run over all tasks of the benchmark. A kind is dealt from a
shuffled deck that is dealt out before a kind comes up again, to a random task that
has a place for it; a share of the tasks stays undisturbed as the control. Pure: the
same tasks, seed and size give the same plan.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from harness.drill.layout import OraclePlace, TaskLayout
from harness.drill.oracle_faults import OracleFaultKind, oracle_faults
from harness.drill.serving_faults import ServingFault, serving_faults
from harness.oracle.contracts import IsolationLevel

UNDISTURBED_SHARE: Final = 0.15
MIN_ROUNDS: Final = 1
BEYOND: Final[dict[IsolationLevel, frozenset[str]]] = {
    "process": frozenset(),
    "confined": frozenset(),
    "namespaces": frozenset({"kill itself", "freeze"}),
}
"""What a worker cannot do to itself: the first process of a namespace is immune."""
SPECIAL_EVERY: Final = 12
"""After the first of each, one round of this many breaks runs, one breaks imports."""
IMPORT_ACTIONS: Final = ("exit", "raise", "hang")
IMPORT_FAULTS: Final = 12

Fault = ServingFault | OracleFaultKind
RoundKind = Literal["episodes", "imports", "run"]


@dataclass(frozen=True, slots=True)
class ServingHit:
    """One fault at the endpoint, placed."""

    task_id: str
    fault: ServingFault
    turn_index: int | None
    """None: every request of the task."""


@dataclass(frozen=True, slots=True)
class OracleHit:
    """One fault in pack code, placed."""

    task_id: str
    fault: OracleFaultKind
    place: OraclePlace


@dataclass(frozen=True, slots=True)
class Round:
    """What one run meets."""

    number: int
    kind: RoundKind
    serving: tuple[ServingHit, ...] = ()
    oracle: tuple[OracleHit, ...] = ()
    imports: tuple[tuple[int, str], ...] = ()
    """Which import of the pack, counted from 1, misbehaves how."""
    seed: int = 0
    """For what is drawn while the round goes on."""


def plan_rounds(
    tasks: Sequence[TaskLayout],
    *,
    seed: int,
    episodes: int,
    level: IsolationLevel = "process",
) -> tuple[Round, ...]:
    """Return the rounds that drive at least `episodes` episodes.

    Imports are counted over processes, which only level `process` allows.
    """
    draw = random.Random(seed)  # noqa: S311 - a plan, no secret
    count = max(MIN_ROUNDS, -(-episodes // len(tasks)))
    deck = _deck(draw, level)
    rounds = []
    for number in range(count):
        kind = _kind_of(number)
        if kind == "imports" and level != "process":
            kind = "episodes"
        if kind == "episodes":
            rounds.append(_episodes_round(number, tasks, deck, draw))
        else:
            imports = _imports(len(tasks), draw) if kind == "imports" else ()
            rounds.append(
                Round(number, kind, imports=imports, seed=draw.randrange(1 << 32))
            )
    return tuple(rounds)


def beyond(level: IsolationLevel) -> tuple[str, ...]:
    """Return the kinds that cannot be injected at a containment level."""
    names = [fault.name for fault in oracle_faults() if fault.do in BEYOND[level]]
    return (*names, *([] if level == "process" else ["import: all kinds"]))


def unplaceable(tasks: Sequence[TaskLayout]) -> tuple[str, ...]:
    """Return the kinds that no task of the benchmark has a place for."""
    kinds: list[Fault] = [*serving_faults(), *oracle_faults()]
    return tuple(
        fault.name for fault in kinds if not any(_places(task, fault) for task in tasks)
    )


def _kind_of(number: int) -> RoundKind:
    kinds: dict[int, RoundKind] = {1: "run", 2: "imports"}
    return kinds.get(number % SPECIAL_EVERY, "episodes")


def _deck(draw: random.Random, level: IsolationLevel) -> Callable[[], Fault]:
    """Return a way to draw kinds so that all come up equally often."""
    oracle = [fault for fault in oracle_faults() if fault.do not in BEYOND[level]]

    def cards() -> Iterator[Fault]:
        while True:
            deck: list[Fault] = [*serving_faults(), *oracle]
            draw.shuffle(deck)
            yield from deck

    return cards().__next__


def _episodes_round(
    number: int,
    tasks: Sequence[TaskLayout],
    deal: Callable[[], Fault],
    draw: random.Random,
) -> Round:
    free = list(tasks)
    draw.shuffle(free)
    kept = max(1, round(len(free) * UNDISTURBED_SHARE))
    serving: list[ServingHit] = []
    oracle: list[OracleHit] = []
    misses = 0
    while len(free) > kept and misses < len(tasks):
        fault = deal()
        task = next((task for task in free if _places(task, fault)), None)
        if task is None:
            misses += 1
            continue
        free.remove(task)
        if isinstance(fault, ServingFault):
            turn = draw.choice(task.turns_for(fault.place))
            serving.append(ServingHit(task.task_id, fault, turn))
        else:
            place = draw.choice(task.places_for(fault.place))
            oracle.append(OracleHit(task.task_id, fault, place))
    return Round(number, "episodes", tuple(serving), tuple(oracle))


def _places(task: TaskLayout, fault: Fault) -> tuple[object, ...]:
    if isinstance(fault, ServingFault):
        return task.turns_for(fault.place)
    return task.places_for(fault.place)


def _imports(task_count: int, draw: random.Random) -> tuple[tuple[int, str], ...]:
    """Spoil some imports; the first one is the probe's and stays whole."""
    count = min(IMPORT_FAULTS, max(1, task_count // 4))
    numbers = sorted(draw.sample(range(2, task_count + 2), count))
    return tuple(
        (number, IMPORT_ACTIONS[index % len(IMPORT_ACTIONS)])
        for index, number in enumerate(numbers)
    )
