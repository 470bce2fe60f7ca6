"""The drill: real runs against an endpoint and an oracle that fail on schedule.

Each round is what `fairtrial run` does, whole: gates, driver, evidence, scoring and
artifacts. Only the other parties are the drill's own: an endpoint that is gold but
for its faults, and a real pack with a saboteur inside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.drill.booking import Findings
from harness.drill.rounds import play
from harness.drill.schedule import beyond, plan_rounds, unplaceable
from harness.drill.stage import set_stage
from harness.oracle.contracts import IsolationLevel


@dataclass(frozen=True, slots=True)
class DrillResult:
    """What a whole drill found."""

    findings: Findings
    rounds: int
    tasks: int
    unplaceable: tuple[str, ...]
    """Kinds of faults that no task of the pack has a place for."""
    level: IsolationLevel
    beyond: tuple[str, ...]
    """Kinds of faults that cannot be injected at this containment level."""

    @property
    def is_clean(self) -> bool:
        """Tell whether every entry lies on the diagonal and every fault was met."""
        found = self.findings
        return not found.off_the_diagonal and not found.unreached


async def drill(
    pack: Path,
    folder: Path,
    *,
    seed: int,
    episodes: int,
    level: IsolationLevel = "process",
    watch: Callable[[str], None] = lambda _: None,
) -> DrillResult:
    """Run a drill in an empty folder; `episodes` is rounded up to whole rounds.

    Raises PackError for a pack that is not gold, and UsageError for one that cannot
    be copied or has no Python backend.
    """
    watch("certify and publish a copy of the pack")
    stage = await set_stage(pack, folder, level)
    rounds = plan_rounds(stage.tasks, seed=seed, episodes=episodes, level=level)
    findings = Findings()
    for plan in rounds:
        watch(f"round {plan.number + 1} of {len(rounds)}: {plan.kind}")
        await play(stage, plan, findings)
    return DrillResult(
        findings,
        len(rounds),
        len(stage.tasks),
        unplaceable(stage.tasks),
        level,
        beyond(level),
    )
