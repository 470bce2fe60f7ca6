"""An evaluation record as people read it."""

from harness.report.prediction_summary import render_predictions

RECORD = {
    "record_id": "eval-0123456789ab",
    "status": "completed",
    "primary_metric": {"name": "macro_f1"},
    "subjects": [
        {
            "name": "candidate",
            "role": "candidate",
            "metrics": {
                "accuracy": {"value": 0.5, "numerator": 2, "denominator": 4},
                "macro_f1": {"value": 0.25},
            },
            "measurements": [
                {
                    "name": "load_s",
                    "value": None,
                    "unit": "s",
                    "boundary": "not measured",
                }
            ],
        },
        {
            "name": "nearest",
            "role": "comparator",
            "metrics": {"accuracy": {"value": None}},
            "measurements": [],
        },
    ],
    "parent": {"statement": "The parent says what came before."},
    "holdout": None,
}


def lines(record=RECORD):
    return render_predictions(record, "out").splitlines()


def test_primary_metric_stands_first_with_its_mark():
    assert lines()[4].split("  ")[0] == "macro_f1 (primary)"


def test_rates_have_their_counts_and_absent_figures_are_said_to_be():
    (row,) = [line for line in lines() if line.startswith("accuracy")]

    assert "0.5000  2/4" in row
    assert row.endswith("not measured")


def test_measurements_carry_their_words():
    assert any("load_s" in line and "not measured" in line for line in lines())


def test_lineage_is_said_wherever_there_is_a_parent():
    assert "The parent says what came before." in lines()


def test_uses_of_a_holdout_are_told():
    holdout = {"uses_before": 2, "statement": "Those beside it."}

    text = render_predictions({**RECORD, "holdout": holdout}, "out")

    assert "Holdout, uses before this one: 2. Those beside it." in text


def test_control_characters_of_names_are_shown():
    hostile = {**RECORD, "record_id": "\x1b[2J"}

    assert "\x1b" not in render_predictions(hostile, "out\x1b")
