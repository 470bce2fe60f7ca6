"""A run of kind `mlperf-agentic` worked out again, for `replay` and `verify`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.causes import EXIT_ANSWER_IS_NO, EXIT_DONE
from harness.errors import Violation


def again(verb: str, run: Path, *, as_json: bool) -> int:
    """Show what comes out; 0 if it is what the folder states, 1 if it is not.

    Every record, request, answer, file and the manifest are worked out and compared,
    so both commands do the same and differ in their first word.
    """
    from harness.run.finished import require_finished
    from harness.run.teacher_forced.evaluate import replay_turns
    from harness.run.teacher_forced.publish import lost_files

    folder = require_finished(run)
    lost = lost_files(folder)
    if lost:
        return _told_lost(lost, as_json=as_json)
    result = replay_turns(folder)
    turns, scores = result.report["asked"]["turns"], result.report["scores"]
    if as_json:
        payload = {
            "equal": not result.differences,
            "turns": turns,
            "scores": scores,
            "differences": [each.as_report() for each in result.differences],
        }
        print(json.dumps(payload, indent=2, sort_keys=True))
    else:
        score = scores["score"]
        print(
            f"{verb} {turns['planned']} turns of {run}; each request follows from "
            "config and data set, each answer from its bytes\n"
            f"  score {'not measured' if score is None else f'{score:.4f}'}\n"
            f"result: {'NOT EQUAL' if result.differences else 'equal'}"
        )
    for difference in result.differences:
        print(difference.as_text(), file=sys.stderr)
    return EXIT_ANSWER_IS_NO if result.differences else EXIT_DONE


def _told_lost(lost: Sequence[Violation], *, as_json: bool) -> int:
    if as_json:
        found = [each.as_report() for each in lost]
        payload = {"equal": False, "turns": None, "scores": None, "differences": found}
        print(json.dumps(payload, indent=2, sort_keys=True))
    else:
        print("result: NOT EQUAL")
    for difference in lost:
        print(difference.as_text(), file=sys.stderr)
    return EXIT_ANSWER_IS_NO
