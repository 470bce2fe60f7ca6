"""Scores a finished MLPerf-agentic run again, from its files to our own two.

`scores.json` has the original's text. What that file hides goes into
`diagnostics.json`, so that the two are never mixed. Rows are written as they are
made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from harness.canonical import Json, hash_file
from harness.errors import ScoringError, UsageError
from harness.predictions.indented_json import document
from harness.predictions.mlperf_dataset import read_dataset
from harness.predictions.mlperf_index_map import IndexMapError, index_map_keys
from harness.predictions.mlperf_log import read_log
from harness.predictions.output_folder import new_folder, require_absent
from harness.predictions.watch import ScoringWatch
from harness.regular_file import require_file
from harness.scoring.mlperf_agentic.aggregate import (
    RunScore,
    excluded_rows,
    score_file_head,
    score_rows,
    score_run,
)
from harness.scoring.mlperf_agentic.diagnostics import diagnostics, unanswered_rows

EVENTS: Final = "events.jsonl"
INDEX_MAP: Final = "sample_idx_map.json"
SCORES: Final = "scores.json"
DIAGNOSTICS: Final = "diagnostics.json"
DATASET_NAME: Final = "performance"
"""Key of the index map under which the original keeps its one data set."""


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """The result of one scoring."""

    score: float | None
    """Rounded to four places; None where nothing is scorable."""
    n_repeats: int
    head: dict[str, Json]
    """`score`, `turns` and `domains` of the score file."""
    diagnostics: dict[str, Json]


def score_report(
    dataset: Path,
    report: Path,
    output: Path,
    *,
    dataset_name: str = DATASET_NAME,
    watch: ScoringWatch[ScoredRun] | None = None,
) -> ScoredRun:
    """Score a report folder and write both files into a new folder.

    `watch` sees every expected turn and the folder. Raises UsageError for paths that
    cannot be used and ScoringError for a data set or an index map that the original
    would refuse. Nothing is left behind then.
    """
    require_file(dataset, "--dataset")
    if not report.is_dir():
        raise UsageError(
            "eval_cli_invalid",
            "--report-dir names no folder",
            where=str(report),
            expected=f"a folder with {EVENTS} and {INDEX_MAP}",
            recovery="give --report-dir the folder of a finished run",
        )
    require_absent(output)
    events = _member(report, EVENTS)
    _check_index_map(_member(report, INDEX_MAP), dataset_name)
    scored = score_events(dataset, events)
    with new_folder(output) as folder:
        for name, pieces in scored.files().items():
            with (folder / name).open("xb") as stream:
                stream.writelines(pieces)
        if watch is not None:
            for turn in scored.run.log.recorded.turns:
                watch.take([turn.source_id, turn.client_turn], list(turn.truth.names))
            watch.finish(folder, scored.summary())
    return scored.summary()


@dataclass(frozen=True, slots=True)
class ScoredEvents:
    """A data set and an event log, joined and scored."""

    run: RunScore
    details: dict[str, Json]
    """The diagnostics without the rows of unanswered turns."""

    def files(self) -> dict[str, Iterator[bytes]]:
        """Return both files by name, each in pieces that are made as they are read."""
        unanswered = {"unanswered_turns": unanswered_rows(self.run)}
        rows = chain(document(self.details, unanswered), ("\n",))
        return {SCORES: _encoded(_score_file(self.run)), DIAGNOSTICS: _encoded(rows)}

    def summary(self) -> ScoredRun:
        """Return the figures without rows."""
        run = self.run
        return ScoredRun(
            run.score, len(run.repeats), score_file_head(run), self.details
        )


def score_events(dataset: Path, events: Path) -> ScoredEvents:
    """Score an event log; raises ScoringError as `score_report`."""
    recorded = read_dataset(dataset)
    log, lines = read_log(events, recorded)
    run = score_run(log)
    inputs = {"dataset": hash_file(dataset), "events": hash_file(events)}
    return ScoredEvents(run, {"inputs": inputs, **diagnostics(run, lines)})


def _encoded(pieces: Iterable[str]) -> Iterator[bytes]:
    return (piece.encode("ascii") for piece in pieces)


def _score_file(run: RunScore) -> Iterator[str]:
    lists: dict[str, Iterable[Json]] = {"per_turn": score_rows(run)}
    if any(True for _ in run.log.recorded.excluded()):
        lists["excluded_turns"] = excluded_rows(run)
    return document(score_file_head(run), lists)


def _member(report: Path, name: str) -> Path:
    path = report / name
    if not path.is_file():
        raise _refused(path, f"the report folder has no {name}", "no such file")
    return path


def _check_index_map(path: Path, dataset_name: str) -> None:
    try:
        names = index_map_keys(path)
    except IndexMapError as error:
        raise _refused(path, f"{INDEX_MAP} is no JSON", str(error)) from None
    if dataset_name not in names:
        listed = ", ".join(names) or "none"
        raise _refused(
            path, f"{INDEX_MAP} does not know the data set", listed, dataset_name
        )


def _refused(path: Path, problem: str, seen: str, expected: str = "") -> ScoringError:
    return ScoringError(
        "eval_predictions_invalid",
        problem,
        where=str(path),
        expected=expected or "the report folder of a finished run, whole",
        actual=seen,
        recovery="bring back an intact copy of the report folder",
    )
