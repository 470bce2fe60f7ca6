"""`fairtrial score json-records`: recorded JSON answers, JSON records v2."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from harness.causes import EXIT_DONE
from harness.cli.score_answers import add_answer_arguments, show_answers
from harness.cli.score_figures import add_file

_SHARES: Final = {
    "parseable_rate": "parseable",
    "schema_valid_rate": "schema_valid",
    "whole_record_accuracy": "record",
    "mean_field_accuracy": "",
}
_SHOWN_IDS: Final = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    add_file(parser, "--schema", "S", "JSON Schema draft 2020-12 of a record")
    add_answer_arguments(parser, "json")
    parser.add_argument(
        "--check-gold",
        action="store_true",
        help="also say which rows have gold that does not satisfy the schema",
    )


def run(arguments: argparse.Namespace) -> int:
    """Score the rows and show the figures."""
    from importlib.metadata import version

    from harness.evaluations.of_files import AnswersRecorder
    from harness.predictions.answers import score_json_records

    schema, rows = arguments.schema, arguments.rows
    scored = score_json_records(
        schema,
        rows,
        arguments.output,
        metric=arguments.metric,
        watch=AnswersRecorder("json-records", schema, rows),
    )
    undecided = scored.aggregate["companions"]["schema_undecided"]
    if undecided:
        print(
            f"warning: the schema cannot be followed to an end on {undecided} rows "
            "(a reference to nowhere, or endless); they count as invalid",
            file=sys.stderr,
        )
    more: dict[str, object] = {"validator": f"jsonschema {version('jsonschema')}"}
    if arguments.check_gold:
        more["gold_violations"] = _gold(schema, rows)
    show_answers(scored, arguments, _SHARES, more)
    return EXIT_DONE


def _gold(schema: Path, rows: Path) -> list[str]:
    from harness.predictions.answers import gold_violations, read_answers, read_schema

    found = list(gold_violations(read_answers(rows, dict), read_schema(schema)))
    if found:
        shown = ", ".join(found[:_SHOWN_IDS])
        rest = len(found) - _SHOWN_IDS
        print(
            f"warning: gold of {len(found)} rows does not satisfy the schema: {shown}"
            + (f" and {rest} more" if rest > 0 else ""),
            file=sys.stderr,
        )
    return found
