"""Which tasks a mistake touches, and which gates fail there: written by hand."""

import pytest

from harness.candidates.control import ControlCandidate
from harness.candidates.control_policies import CONTROL_NAMES, MIXTURE, mixed_control
from tests.candidates.control_rows import ROWS

LETTERS = {
    "S": "tool_selection",
    "A": "arguments",
    "V": "schema_valid",
    "G": "call_grouping",
    "O": "call_ordering",
    "T": "text_turn",
    "X": "oracle_execution",
}
EXECUTABLE_ONLY = {"oracle_execution", "executable_completion"}

# Row by row, for each control that touches it, the gates that fail beside the
# completion gates. "-" is a touched row on which only the completion gates fail.
FAILS = {
    "gold": {},
    "silent": {
        **dict.fromkeys(("single", "bare", "group", "free-group", "prefix"), "SAG"),
        **dict.fromkeys(("missing-slot", "confirmation"), "SAT"),
        **dict.fromkeys(("probed-confirmation", "correction"), "SAG"),
        **dict.fromkeys(("dependent", "negative"), "SAG"),
        **dict.fromkeys(("clarify", "irrelevant"), "T"),
        "named-confirmation": "SAT",
    },
    "words": {
        row["task_id"]: "SAG"
        for row in ROWS
        if row["task_id"] not in ("clarify", "irrelevant")
    },
    "eager": {
        "missing-slot": "SAT",
        "confirmation": "SATX",
        "probed-confirmation": "SATX",
        "named-confirmation": "SATX",
        "correction": "SAT",
    },
    "wrong-argument": {
        **dict.fromkeys(("single", "group", "free-group", "missing-slot"), "A"),
        **dict.fromkeys(("prefix", "correction", "dependent"), "SA"),
        **dict.fromkeys(("confirmation", "named-confirmation"), "AX"),
        "probed-confirmation": "SA",
        "negative": "A",
    },
    "wrong-type": {
        **dict.fromkeys(("single", "group", "free-group", "missing-slot"), "AVX"),
        **dict.fromkeys(("prefix", "correction", "dependent"), "SAVX"),
        **dict.fromkeys(("confirmation", "named-confirmation"), "AVX"),
        "probed-confirmation": "SAVX",
        "negative": "AVX",
    },
    "extra-call": {
        **dict.fromkeys(("single", "bare", "group", "free-group", "negative"), "SG"),
        **dict.fromkeys(("prefix", "correction", "dependent"), "SAG"),
        **dict.fromkeys(("confirmation", "named-confirmation"), "SGX"),
        "probed-confirmation": "SAG",
        "missing-slot": "SG",
    },
    "missing-call": dict.fromkeys(("group", "free-group", "prefix"), "SAG"),
    "swapped-order": {
        "group": "O",
        "probed-confirmation": "SAX",
        "correction": "SA",
        "dependent": "SA",
    },
    "split-group": dict.fromkeys(("group", "free-group", "prefix"), "SAG"),
    "early-confirm": {
        "confirmation": "SATX",
        "probed-confirmation": "SAX",
        "named-confirmation": "SATX",
    },
    "broken-json": {
        **dict.fromkeys(("single", "bare", "group", "free-group"), "AVX"),
        **dict.fromkeys(("missing-slot", "confirmation", "negative"), "AVX"),
        **dict.fromkeys(("prefix", "correction", "dependent"), "SAVX"),
        "probed-confirmation": "SAVX",
        "named-confirmation": "AVX",
    },
    "truncated": {
        **dict.fromkeys(("single", "bare", "group", "free-group", "negative"), "X"),
        **dict.fromkeys(("prefix", "correction", "dependent"), "SAX"),
        **dict.fromkeys(("missing-slot", "confirmation"), "SAT"),
        **dict.fromkeys(("clarify", "irrelevant"), "T"),
        "probed-confirmation": "SAX",
        "named-confirmation": "SAT",
    },
    "duplicate-ids": dict.fromkeys(("group", "free-group", "prefix"), "X"),
}


@pytest.fixture(scope="module")
def candidate():
    return ControlCandidate(ROWS)


def test_table_holds_every_control_but_the_mixture():
    assert (*FAILS, MIXTURE) == CONTROL_NAMES


@pytest.mark.parametrize("model", FAILS)
def test_control_touches_the_tasks_that_its_mistake_needs(candidate, model):
    touched = {
        task_id
        for task_id in candidate.tasks
        if candidate.expectation(model, task_id, "trace").touched
    }

    assert touched == FAILS[model].keys()


@pytest.mark.parametrize("model", FAILS)
def test_trace_gates_that_fail(candidate, model):
    expected = {
        task_id: {LETTERS[letter] for letter in letters} - EXECUTABLE_ONLY
        | {"trace_completion"}
        for task_id, letters in FAILS[model].items()
    }

    declared = {
        task_id: set(candidate.expectation(model, task_id, "trace").failed)
        for task_id in FAILS[model]
    }

    assert declared == expected


@pytest.mark.parametrize("model", FAILS)
def test_executable_gates_that_fail(candidate, model):
    expected = {
        task_id: {LETTERS[letter] for letter in letters}
        | {"trace_completion", "executable_completion"}
        for task_id, letters in FAILS[model].items()
    }

    declared = {
        task_id: set(candidate.expectation(model, task_id, "executable").failed)
        for task_id in FAILS[model]
    }

    assert declared == expected


def test_untouched_task_fails_nothing(candidate):
    expectation = candidate.expectation("eager", "single", "executable")

    assert (expectation.failed, expectation.open) == (frozenset(), frozenset())


def test_assertions_stay_open_where_calls_ran_live(candidate):
    assert candidate.expectation("eager", "missing-slot", "executable").open == {
        "assertions"
    }


def test_assertions_are_not_open_in_trace_mode(candidate):
    assert candidate.expectation("eager", "missing-slot", "trace").open == frozenset()


def test_mixture_fails_as_the_control_that_it_draws():
    candidate = ControlCandidate(ROWS, seed=3)

    drawn = {
        task_id: candidate.expectation(
            mixed_control(task, candidate.seed), task_id, "executable"
        )
        for task_id, task in candidate.tasks.items()
    }

    assert drawn == {
        task_id: candidate.expectation(MIXTURE, task_id, "executable")
        for task_id in candidate.tasks
    }


def test_mixture_of_another_seed_draws_otherwise():
    tasks = ControlCandidate(ROWS).tasks.values()

    assert [mixed_control(t, 1) for t in tasks] != [mixed_control(t, 2) for t in tasks]


def test_mixture_is_gold_for_about_half_of_its_draws():
    task = ControlCandidate(ROWS).tasks["single"]
    drawn = [mixed_control(task, seed) for seed in range(400)]

    assert 150 < drawn.count("gold") < 250
    assert set(drawn) == set(CONTROL_NAMES) - {MIXTURE}
