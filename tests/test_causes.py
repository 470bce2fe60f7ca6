"""The cause table is closed: every end has a row, every code in use is a row."""

import ast
import typing
from pathlib import Path

import pytest

from harness import causes, errors
from harness.causes import (
    CAUSES,
    NON_CANDIDATE_STOPS,
    Attribution,
    Cause,
    Owner,
    episode_cause,
    exit_status,
    is_non_candidate_stop,
)
from harness.evidence.episode import EpisodeStatus

ROOT = Path(__file__).parent.parent
ROWS = tuple(CAUSES.values())
EPISODE_ROWS = tuple(row for row in ROWS if row.level == "episode")
RUN_ROWS = tuple(row for row in ROWS if row.level == "run")
STATUSES = typing.get_args(EpisodeStatus)
EXIT_STATUSES = {
    getattr(causes, name) for name in vars(causes) if name.startswith("EXIT_")
}
ERROR_CLASSES = {
    name
    for name, member in vars(errors).items()
    if isinstance(member, type) and issubclass(member, errors.FairtrialError)
}


def test_exit_statuses_are_the_published_ones():
    assert {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 130} == EXIT_STATUSES


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.code)
def test_row_stays_in_its_closed_sets(row):
    assert row.level in ("episode", "run")
    assert isinstance(row.owner, Owner)
    assert isinstance(row.attribution, Attribution)
    assert row.retried in ("never", "request", "resume")
    assert row.exit_status in EXIT_STATUSES
    assert CAUSES[row.code] is row


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.code)
def test_summary_is_one_sentence(row):
    assert (
        row.summary[0].isupper() or not row.summary[0].isalpha() or "." in row.summary
    )
    assert row.summary.endswith(".")
    assert "\n" not in row.summary


@pytest.mark.parametrize("row", EPISODE_ROWS, ids=lambda row: row.code)
def test_episode_is_judged_exactly_when_the_candidate_owns_its_end(row):
    assert row.scored == (row.owner is Owner.CANDIDATE)
    assert (row.attribution is Attribution.INFRASTRUCTURE) == (not row.scored)
    assert row.exit_status == causes.EXIT_DONE


@pytest.mark.parametrize("row", EPISODE_ROWS, ids=lambda row: row.code)
def test_only_an_unanswered_request_is_retried(row):
    if row.retried != "never":
        assert row.code.startswith("episode.candidate_call_failed.")


@pytest.mark.parametrize("row", RUN_ROWS, ids=lambda row: row.code)
def test_run_row_ends_the_run_without_a_score(row):
    assert row.exit_status != causes.EXIT_DONE
    assert row.attribution is Attribution.FATAL_SETUP
    assert not row.scored
    assert not row.publishable


def test_owners_of_episode_ends_leave_no_party_but_the_operator_out():
    assert {row.owner for row in EPISODE_ROWS} == set(Owner) - {Owner.OPERATOR}


@pytest.mark.parametrize("status", STATUSES)
def test_every_episode_status_has_a_row(status):
    details = (
        [code.split(".")[2] for code in CAUSES if f".{status}." in code]
        if status == "candidate_call_failed"
        else [None]
    )

    assert details
    for detail in details:
        row = episode_cause(status, f"episode.{status}", detail)
        assert row.code.split(".")[1] == status


def test_every_episode_row_belongs_to_a_status():
    named = {row.code.split(".")[1] for row in EPISODE_ROWS}

    assert named - {"incomplete_finish"} == set(STATUSES)


def test_incomplete_finish_is_the_candidates():
    row = episode_cause("candidate_mismatch", "episode.incomplete_finish", None)

    assert (row.code, row.owner) == ("episode.incomplete_finish", Owner.CANDIDATE)


@pytest.mark.parametrize(
    ("status", "detail"),
    [
        ("candidate_call_failed", None),
        ("candidate_call_failed", "no_such_detail"),
        ("no_such_status", None),
    ],
)
def test_an_end_outside_the_table_is_a_key_error(status, detail):
    with pytest.raises(KeyError):
        episode_cause(status, f"episode.{status}", detail)


def test_unknown_code_has_no_exit_status():
    with pytest.raises(KeyError):
        exit_status("eval_no_such_thing")


@pytest.mark.parametrize("status", STATUSES)
def test_stops_are_the_statuses_that_others_own(status):
    candidate_owned = {
        "completed",
        "candidate_mismatch",
        "malformed_response",
        "unusable_tool_call_ids",
        "confirmation_not_earned",
    }

    assert is_non_candidate_stop(status) == (status not in candidate_owned)


def test_stops_are_statuses():
    assert set(STATUSES) > NON_CANDIDATE_STOPS


def _constants(tree):
    """Return the module-level names that hold one text."""
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }


def _codes_in_use():
    """Yield (place, code) for every code that a source file gives to an error."""
    for path in sorted((ROOT / "harness").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        constants = _constants(tree)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            function = node.func
            name = getattr(function, "id", getattr(function, "attr", ""))
            if name not in ERROR_CLASSES | {"Violation", "exit_status"}:
                continue
            given = [*node.args[:1]] + [
                k.value for k in node.keywords if k.arg == "code"
            ]
            for value in given:
                code = (
                    value.value
                    if isinstance(value, ast.Constant)
                    else constants.get(getattr(value, "id", ""))
                )
                if isinstance(code, str):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", code


def test_walk_over_the_sources_finds_codes():
    assert "eval_evidence_invalid" in {code for _, code in _codes_in_use()}


def test_every_code_in_use_is_a_row():
    strange = [(place, code) for place, code in _codes_in_use() if code not in CAUSES]

    assert strange == []


def test_rows_are_frozen():
    with pytest.raises(AttributeError):
        ROWS[0].owner = Owner.PACK

    assert isinstance(ROWS[0], Cause)
