"""The join of issues and answers, whatever their order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.scoring.mlperf_agentic.aggregate import score_rows
from tests.scoring.mlperf_agentic.events_of_runs import (
    empty,
    event,
    failed,
    issued,
    ran,
    recorded,
    said,
    scored,
)

TRUTH = recorded(a=["ls", "cat x"], sim_1=[["I001"], ["I002"]])


def figures(run):
    return {
        (row["conversation_id"], row["repeat"], row["turn"]): (
            "missing" if "missing" in row else row["score"]
        )
        for row in score_rows(run)
    }


def test_completion_may_come_before_its_issue():
    run = scored(TRUTH, ran("u", "a", 1, "ls"), issued("u", "a", 1))

    assert figures(run) == {("a", 1, 2): 1.0}


def test_issue_says_which_turn_it_is():
    run = scored(TRUTH, issued("u", "a", 3), ran("u", "a", 1, "cat y"))

    assert figures(run) == {("a", 1, 4): 1.0}


def test_answer_that_is_issued_under_the_other_rule_is_read_again():
    answer = ran("u", "a", 1, "ls", text="intent: I001")
    first, second = issued("u", "a", 1), issued("u", "sim_1", 1)

    for events in ((answer, second), (first, answer, second), (second, answer, first)):
        (score,) = figures(scored(TRUTH, *events)).values()

        assert score == 1.0


def test_rereading_takes_the_latest_output():
    run = scored(
        TRUTH,
        issued("u", "a", 1),
        said("u", "a", 1, "I009"),
        said("u", "a", 1, "I001"),
        empty("u", "a", 1),
        issued("u", "sim_1", 1),
    )

    assert figures(run) == {("sim_1", 1, 2): 1.0}


@pytest.mark.parametrize(
    ("completions", "score"),
    [
        ([], "missing"),
        ([None], "missing"),
        (["ls", None], 1.0),
        ([None, "ls"], 1.0),
        (["ls", "cat"], 0.0),
        (["cat", "ls", None], 1.0),
    ],
)
def test_latest_real_output_of_a_uuid_stands(completions, score):
    events = [
        empty("u", "a", 1) if command is None else ran("u", "a", 1, command)
        for command in completions
    ]

    run = scored(TRUTH, issued("u", "a", 1), *events)

    assert figures(run) == {("a", 1, 2): score}


def test_two_uuids_of_one_turn_count_once():
    run = scored(
        TRUTH,
        issued("u", "a", 1),
        issued("v", "a__repeat_1", 1),
        ran("v", "a", 1, "cat"),
        ran("u", "a", 1, "ls"),
        empty("v", "a", 1),
    )

    assert (run.issued, figures(run)) == (1, {("a", 1, 2): 1.0})


def test_records_of_no_expected_turn_are_ignored():
    run = scored(
        TRUTH,
        issued("u", "a", 2),
        issued("v", "b", 1),
        issued("w", "", 1),
        event("sample.issued", "x", "a", None),
        ran("y", "a", 9, "ls"),
        issued("z", "a__repeat_2__repeat_3", 1),
    )

    assert (run.issued, run.log.ignored) == (0, 6)


def test_output_that_was_never_issued_counts_for_nothing():
    assert scored(TRUTH, ran("u", "a", 1, "ls")).issued == 0


def test_error_record_without_a_type_or_a_uuid_tells_nothing():
    loose = event("error.session", "", "", None, ["ErrorData", "X"])
    untyped = event("error.client", "u", "a", 1, ["ErrorData"])

    run = scored(TRUTH, issued("u", "a", 1), loose, untyped)

    assert [turn.error_type for turn in run.log.issued()] == [None]


def test_rows_are_ordered_by_id_repeat_and_turn():
    places = [("sim_1", 3), ("a__repeat_10", 1), ("a__repeat_2", 3), ("a", 3), ("a", 1)]
    run = scored(TRUTH, *(issued(f"{p}", *p) for p in places))

    assert list(figures(run)) == [
        ("a", 1, 2),
        ("a", 1, 4),
        ("a", 2, 4),
        ("a", 10, 2),
        ("sim_1", 1, 4),
    ]


def test_ids_that_are_all_numbers_match_without_leading_zeros():
    numbers = recorded(**{"001": ["ls"], "020": ["cat"]})

    run = scored(
        numbers, issued("u", "1", 1), issued("v", "020", 1), issued("w", "2", 1)
    )

    assert list(figures(run)) == [("001", 1, 2), ("020", 1, 2)]


def test_one_id_that_is_no_number_keeps_all_ids_apart():
    mixed = recorded(**{"001": ["ls"], "b": ["cat"]})

    assert scored(mixed, issued("u", "1", 1)).issued == 0


places = st.tuples(
    st.sampled_from(["a", "a__repeat_2", "sim_1", "sim_1__repeat_7", "b"]),
    st.sampled_from([1, 2, 3]),
)
turns = st.lists(
    st.tuples(places, st.sampled_from(["ls", "cat", "cat; ls", "I001", None, "never"])),
    max_size=8,
)


@given(turns, st.randoms())
def test_order_of_the_log_does_not_matter(played, order):
    """For one completion a uuid, and one uuid a turn."""
    events, seen = [], set()
    for number, ((name, turn), said_or_run) in enumerate(played):
        if (name, turn) in seen:
            continue
        seen.add((name, turn))
        uuid = f"u{number}"
        events.append(issued(uuid, name, turn))
        if said_or_run is None:
            events += [failed(uuid, "TurnTimeout"), empty(uuid, name, turn)]
        elif said_or_run != "never":
            events.append(ran(uuid, name, turn, said_or_run, text=said_or_run))
    in_order = scored(TRUTH, *events)
    order.shuffle(events)
    shuffled = scored(TRUTH, *events)

    assert list(score_rows(in_order)) == list(score_rows(shuffled))
    assert (in_order.issued, in_order.repeats) == (shuffled.issued, shuffled.repeats)
