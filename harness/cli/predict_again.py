"""A predict run worked out again from its folder alone, for `replay` and `verify`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from harness.causes import EXIT_ANSWER_IS_NO, EXIT_DONE


def predict_again(verb: str, run: Path, *, as_json: bool) -> int:
    """Show what comes out; 0 if it is what the folder states, 1 if it is not.

    Predictions, receipts, scores and record are all worked out and compared, so both
    commands do the same and differ in their first word.
    """
    from harness.predict.folder import PredictFolder
    from harness.predict.frozen import plan_of_folder
    from harness.predict.run import work_out_again

    folder = PredictFolder(run)
    again = work_out_again(plan_of_folder(folder), folder)
    found = again.differences
    rows = again.record["protocol"]["fields"]["rows"]["n"]
    subjects = [subject["name"] for subject in again.record["subjects"]]
    if as_json:
        payload = {
            "equal": not found,
            "rows": rows,
            "subjects": subjects,
            "differences": [each.as_report() for each in found],
        }
        print(json.dumps(payload, indent=2, sort_keys=True))
    else:
        print(
            f"{verb} {rows} rows of {run} for {', '.join(subjects)}: predictions, "
            "receipts, scores and record\n"
            f"result: {'NOT EQUAL' if found else 'equal'}"
        )
    for difference in found:
        print(difference.as_text(), file=sys.stderr)
    return EXIT_ANSWER_IS_NO if found else EXIT_DONE
