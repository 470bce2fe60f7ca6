"""Whatever a record holds, it is refused with all reasons or can be compared."""

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.evaluations.comparison import compare
from harness.evaluations.entry import candidates_of
from harness.evaluations.form import problems_of
from harness.evaluations.record import (
    RECORD_FILE,
    Holdout,
    Parent,
    build_record,
)
from harness.evaluations.rescoring import Obstacle
from harness.evaluations.selection import Selected
from harness.evaluations.stored import StoredRecord
from harness.report.compare import comparison_payload, pair_rows, render_comparison
from tests.evaluations.records import inputs, subject

JUNK = st.sampled_from(
    [None, True, 0, -1, 1.5, float("inf"), float("nan"), "", "x", [], {}]
) | st.sampled_from(
    [[1], [None], {"a": 1}, {"stated": "unknown"}, {"values": 3}, {"value": "x"}]
)


def whole():
    """Return a record with every member that there can be."""
    measured = {"name": "rate", "value": 2.0, "unit": "1/s", "boundary": "all of it"}
    base = subject(correct=1, name="base", role="comparator")
    return build_record(
        inputs(
            subject(measurements=[measured], samples="s.jsonl", withheld=None),
            base,
            parent=Parent("original", "sha256:" + "0" * 64, {"more": 1}),
            holdout=Holdout("r" * 64, 1),
            obstacles=[Obstacle("gold_missing")],
        )
    )


def places_in(value, place=()):
    yield place
    items = value.items() if isinstance(value, dict) else enumerate(value)
    if isinstance(value, dict | list):
        for key, member in items:
            yield from (
                places_in(member, (*place, key))
                if isinstance(member, dict | list)
                else [(*place, key)]
            )


PLACES = [place for place in places_in(whole()) if place]


def changed(record, place, junk):
    """Return a copy with a value replaced, or with a member left out."""
    record = copy.deepcopy(record)
    holder = record
    for key in place[:-1]:
        holder = holder[key]
    if junk is ...:
        del holder[place[-1]]
    else:
        holder[place[-1]] = junk
    return record


def compared(record):
    """Compare a record with a sound one, and show it in both ways."""
    runs = {"a": whole(), "b": record}
    selected = [
        Selected(name, StoredRecord(Path("nowhere"), payload, "sha256:0"), False, ())
        for name, payload in runs.items()
    ]
    entries = [e for each in selected for e in candidates_of(each.run, each.record)]
    if len({e.run for e in entries}) < 2:
        return
    comparison = compare(entries)
    paired = pair_rows(comparison)
    json.dumps(comparison_payload(selected, comparison, paired))
    assert render_comparison(selected, comparison, paired)


def test_built_record_is_sound():
    assert problems_of(whole()) == []


def test_failed_record_without_subjects_is_sound():
    assert problems_of({**whole(), "status": "failed", "subjects": []}) == []


@given(st.sampled_from(PLACES), JUNK | st.just(...))
def test_changed_record_is_refused_or_can_be_compared(place, junk):
    record = changed(whole(), place, junk)

    if problems_of(record) == []:
        compared(record)


@given(JUNK)
def test_no_value_crashes_the_check(junk):
    assert problems_of(junk) != []


@pytest.mark.parametrize("name", sorted(whole()))
def test_every_member_has_to_be_there(name):
    record = whole()
    del record[name]

    wheres = [each.where for each in problems_of(record)]
    assert wheres == [f"{RECORD_FILE}, {name}"]


def test_all_problems_are_told_at_once():
    record = {**whole(), "kind": 3, "subjects": "none"}
    del record["status"]

    assert {each.where for each in problems_of(record)} == {
        f"{RECORD_FILE}, {name}" for name in ("kind", "subjects", "status")
    }


def test_record_of_another_version_is_refused():
    (problem,) = problems_of({**whole(), "record_version": "0"})

    assert problem.where == f"{RECORD_FILE}, record_version"


@pytest.mark.parametrize("value", [True, "1", float("nan"), [1]])
def test_value_of_a_metric_is_a_number_or_null(value):
    record = whole()
    record["subjects"][0]["metrics"]["accuracy"]["value"] = value

    (problem,) = problems_of(record)
    assert problem.where.endswith("subjects[0].metrics.accuracy.value")


def test_forged_field_does_not_fit_the_fingerprint():
    record = whole()
    record["protocol"]["fields"]["decoding"]["max_tokens"] = 17

    (problem,) = problems_of(record)
    assert problem.where.endswith("protocol.fingerprint")


def test_two_subjects_of_one_name_are_refused():
    record = whole()
    record["subjects"][1]["name"] = "candidate"

    (problem,) = problems_of(record)
    assert problem.where.endswith("subjects")


@pytest.mark.parametrize("value", [7, -1, 0.7499, 10**400])
def test_rate_that_is_not_that_of_its_counts_is_refused(value):
    record = whole()
    record["subjects"][0]["metrics"]["accuracy"]["value"] = value

    wheres = {each.where.split(", ")[1] for each in problems_of(record)}
    assert "subjects[0].metrics.accuracy" in wheres


@pytest.mark.parametrize("counts", [(7, 1, 7.0), (-1, 1, -1.0), (-1, -1, 1.0)])
def test_rate_of_counts_that_cannot_be_is_refused(counts):
    record = whole()
    metric = dict(zip(("numerator", "denominator", "value"), counts, strict=True))
    record["subjects"][0]["metrics"]["accuracy"] = metric

    (problem,) = problems_of(record)
    assert problem.where.endswith("subjects[0].metrics.accuracy")


def test_value_beyond_every_double_is_refused():
    record = whole()
    metric = {"value": 10**400, "numerator": None, "denominator": None}
    record["subjects"][0]["metrics"]["other"] = metric

    (problem,) = problems_of(record)
    assert problem.where.endswith("subjects[0]")


def test_completed_record_without_a_candidate_is_refused():
    record = whole()
    del record["subjects"][0]

    (problem,) = problems_of(record)
    assert problem.where.endswith("subjects")
    assert problem.actual == "comparator"


@pytest.mark.parametrize("value", ["\ud800", float("nan")])
def test_member_that_no_file_can_hold_is_refused(value):
    assert problems_of({**whole(), "more": value}) != []
