"""The one table of the demo."""

from harness.report.overview import render_overview
from tests.report.reports import ORACLE_TIMEOUT, candidate, report


def gate(name, failed):
    return {
        "gate": name,
        "passed": 5 - failed,
        "failed": failed,
        "not_applicable": 0,
        "evidence_missing": 0,
    }


def line_of(alias, text):
    (line,) = [line for line in text.splitlines() if line.startswith(alias)]
    return " ".join(line.split())


def test_success_stands_with_its_counts():
    one = candidate("eager", successful=3, gates=[gate("arguments", 2)])

    text = render_overview(report(one))

    assert line_of("eager", text) == "eager 3/5 60.0 % arguments 2 none"


def test_only_gates_that_failed_are_named():
    one = candidate("gold", gates=[gate("arguments", 0), gate("text_turn", 1)])

    text = render_overview(report(one))

    assert line_of("gold", text) == "gold 5/5 100.0 % text_turn 1 none"


def test_stops_are_summed_by_owner():
    one = candidate("gold", successful=4, stops=1, gates=[], ledger=[ORACLE_TIMEOUT])

    text = render_overview(report(one))

    assert line_of("gold", text) == "gold 4/5 80.0 % none oracle 1"
