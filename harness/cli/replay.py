"""`fairtrial replay RUN`: recompute a finished run from its folder alone."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.evidence.log_reader import RecordUse
    from harness.run.replay import Replayed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("run", type=Path, metavar="RUN", help="a finished run folder")
    parser.add_argument("--json", action="store_true", help="JSON on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Replay; 0 if everything came out equal, 1 if something did not."""
    from harness.causes import EXIT_ANSWER_IS_NO, EXIT_DONE
    from harness.cli.predict_again import predict_again
    from harness.cli.turns_again import again
    from harness.predict.folder import is_predict_run
    from harness.run.replay import replay_run
    from harness.run.rescored_folder import is_rescored, replay_rescored
    from harness.run.seclusion import secluded
    from harness.run.teacher_forced.frozen import is_turns_run

    if is_predict_run(arguments.run):
        return predict_again("replayed", arguments.run, as_json=arguments.json)
    if is_turns_run(arguments.run):
        return again("replayed", arguments.run, as_json=arguments.json)
    with secluded():
        if is_rescored(arguments.run):
            replayed = replay_rescored(arguments.run).replayed
        else:
            replayed = replay_run(arguments.run)
    if arguments.json:
        print(json.dumps(_payload(replayed), indent=2, sort_keys=True))
    else:
        print(_text(replayed, arguments.run))
    for difference in replayed.differences:
        print(difference.as_text(), file=sys.stderr)
    return EXIT_DONE if replayed.is_equal else EXIT_ANSWER_IS_NO


def _payload(replayed: Replayed) -> dict[str, object]:
    return {
        "equal": replayed.is_equal,
        "aggregate_hashes": replayed.aggregate_hashes,
        "episodes": replayed.episodes,
        "requests": replayed.requests,
        "records": {
            name: {kind: use._asdict() for kind, use in uses.items()}
            for name, uses in replayed.records.items()
        },
        "differences": [each.as_report() for each in replayed.differences],
    }


def _text(replayed: Replayed, folder: Path) -> str:
    from harness.evidence.folder import ARTIFACT_FILES

    verdict = "equal" if replayed.is_equal else "NOT EQUAL"
    lines = [
        f"replayed {replayed.episodes} episodes of {folder}; each of their "
        f"{replayed.requests} requests follows from script and evidence",
        *(
            f"  {alias}  {aggregate}"
            for alias, aggregate in sorted(replayed.aggregate_hashes.items())
        ),
        "records used",
        *(
            f"  {ARTIFACT_FILES[name]}  " + ", ".join(_use_texts(uses))
            for name, uses in replayed.records.items()
        ),
        f"result: {verdict}",
    ]
    return "\n".join(lines)


def _use_texts(uses: Mapping[str, RecordUse]) -> Iterator[str]:
    for kind, use in uses.items():
        if use.present:
            yield f"{kind} {use.used} of {use.present}"
