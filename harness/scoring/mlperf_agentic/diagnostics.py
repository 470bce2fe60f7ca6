"""What the one number hides, beside the score file and never mixed into it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from math import fsum
from typing import Final, TypeVar

from harness.canonical import Json, content_hash
from harness.scoring.mlperf_agentic.aggregate import PLACES, RunScore, rounded_mean
from harness.scoring.mlperf_agentic.aliases import ALIASES, WRAPPERS
from harness.scoring.mlperf_agentic.baselines import baselines
from harness.scoring.mlperf_agentic.conversation_ids import Domain, domain_of
from harness.scoring.mlperf_agentic.skips import LineSkip
from harness.scoring.mlperf_agentic.tally import Group, Tally, tally_of
from harness.scoring.mlperf_agentic.unanswered import cause_of

CONTRACT: Final = "mlperf-agentic-1"
UPSTREAM: Final = "mlcommons/endpoints@7935df4bc529b54e39d50bde26b5a353b3818eb4"
NOTHING_SCORABLE: Final = "nothing_scorable"
TURNS_MISSING: Final = "turns_missing"
_Name = TypeVar("_Name", bound=str)


@dataclass(slots=True)
class LineCounts:
    """What became of the lines of a log, blank ones apart."""

    read: int = 0
    skipped: Counter[LineSkip] = field(default_factory=Counter)


def table_hash() -> str:
    """Return the content hash of the alias table and the wrappers."""
    return content_hash({"aliases": dict(ALIASES), "wrappers": sorted(WRAPPERS)})


def diagnostics(run: RunScore, lines: LineCounts) -> dict[str, Json]:
    """Return everything but the rows of unanswered turns."""
    tally = tally_of(run)
    recorded = run.log.recorded
    weights = {
        position: tally.times_scored[turn.source_id, turn.client_turn]
        for position, turn in enumerate(recorded.turns)
        if (turn.source_id, turn.client_turn) in tally.times_scored
    }
    return {
        "contract": {
            "name": CONTRACT,
            "upstream": UPSTREAM,
            "table_hash": table_hash(),
        },
        "headline": _headline(run),
        "n_repeats": len(run.repeats),
        "answered_only": _answered_only(tally),
        "unanswered": {
            "turns": run.missing,
            "causes": _counts(tally.causes),
            "error_types": _counts(tally.error_types),
        },
        "never_issued": _never_issued(run, tally),
        "command_stages": _command_stages(run, tally),
        "calls_skipped": _counts(tally.calls_skipped),
        "lines": {
            "read": lines.read,
            "skipped": _counts(lines.skipped),
            "of_no_expected_turn": run.log.ignored,
        },
        "baselines": baselines(recorded, weights),
        "repeats": {
            "mean_of_means": _mean_of_means(tally.by_repeat),
            "rows": [
                {"repeat": repeat, **group.figures()}
                for repeat, group in sorted(tally.by_repeat.items())
            ],
        },
        "conversations": {
            "mean_of_means": _mean_of_means(tally.by_conversation),
            "rows": [
                {
                    "conversation_id": source_id,
                    "domain": domain_of(source_id).value,
                    "repeats": run.passes[source_id],
                    **group.figures(),
                }
                for source_id, group in tally.by_conversation.items()
            ],
        },
    }


def unanswered_rows(run: RunScore) -> Iterator[dict[str, Json]]:
    """Yield one row for each scored turn without an output, in reporting order."""
    if not run.missing:
        return
    for turn, _ in run.scored_turns():
        if turn.answer is None:
            yield {
                "conversation_id": turn.expected.source_id,
                "repeat": turn.repeat,
                "turn": turn.expected.assistant_turn,
                "cause": cause_of(turn).value,
                "error_type": turn.error_type,
            }


def _headline(run: RunScore) -> dict[str, Json]:
    """Show no headline for a number that is none, or that an outage lowered."""
    refused = []
    if not run.scored:
        refused.append(NOTHING_SCORABLE)
    if run.missing:
        refused.append(TURNS_MISSING)
    return {"score": None if refused else run.score, "refused": refused}


def _answered_only(tally: Tally) -> dict[str, Json]:
    parts = {domain: group.scores for domain, group in tally.answered.items()}
    return {
        "score": rounded_mean(chain.from_iterable(parts.values())),
        "scored": sum(map(len, parts.values())),
        "domains": {
            domain.value: {"score": rounded_mean(scores), "scored": len(scores)}
            for domain, scores in parts.items()
            if scores
        },
    }


def _never_issued(run: RunScore, tally: Tally) -> dict[str, Json]:
    scorable = Counter(
        turn.source_id for turn in run.log.recorded.turns if turn.truth.names
    )
    scored = {name: len(g.scores) for name, g in tally.by_conversation.items()}
    return {
        "in_started_conversations": sum(
            turns * run.passes[source_id] - scored.get(source_id, 0)
            for source_id, turns in scorable.items()
            if source_id in run.passes
        ),
        "in_conversations_never_started": sum(
            turns
            for source_id, turns in scorable.items()
            if source_id not in run.passes
        ),
    }


def _command_stages(run: RunScore, tally: Tally) -> dict[str, Json]:
    coding = [
        turn.truth
        for turn in run.log.recorded.turns
        if turn.truth.domain is Domain.CODING
    ]
    recorded_stages = sum(truth.stages for truth in coding)
    return {
        "recorded": _coverage(recorded_stages, sum(len(t.names) for t in coding)),
        "model": _coverage(tally.stages, tally.mapped),
    }


def _coverage(stages: int, mapped: int) -> dict[str, Json]:
    share = round(mapped / stages, PLACES) if stages else None
    return {"stages": stages, "mapped_to_an_action": mapped, "share": share}


def _mean_of_means(groups: Mapping[str, Group] | Mapping[int, Group]) -> float | None:
    means = [fsum(group.scores) / len(group.scores) for group in groups.values()]
    return rounded_mean(means)


def _counts(counter: Counter[_Name]) -> dict[str, Json]:
    return {str(name): counter[name] for name in sorted(counter)}
