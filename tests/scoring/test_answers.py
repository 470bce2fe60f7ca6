"""Rows, shares and the choice of a metric, as two contracts share them."""

import pytest

from harness.errors import UsageError
from harness.scoring.answers import (
    SELECTABLE,
    AnswerRow,
    AnswerRowError,
    RowIds,
    answer_row,
    primary_metric,
    share,
)

ROW = {"id": "a", "gold": {}, "raw": "{}", "finish_reason": "stop"}


def read(**members):
    return answer_row(ROW | members, dict, where="rows.jsonl:1")


def test_row_is_read_and_more_members_are_ignored():
    assert read(latency=5) == AnswerRow("a", {}, "{}", "stop")


def test_finish_reason_may_be_absent():
    payload = {name: ROW[name] for name in ("id", "gold", "raw")}

    assert answer_row(payload, dict, where="").finish_reason is None


@pytest.mark.parametrize("name", ["id", "gold", "raw"])
def test_row_without_a_member_is_refused(name):
    payload = {key: value for key, value in ROW.items() if key != name}

    with pytest.raises(AnswerRowError, match=f"without {name}"):
        answer_row(payload, dict, where="")


@pytest.mark.parametrize(
    "members",
    [{"id": 5}, {"id": None}, {"gold": []}, {"gold": "x"}, {"finish_reason": 1}],
)
def test_member_of_another_form_is_refused(members):
    with pytest.raises(AnswerRowError, match="another form"):
        read(**members)


@pytest.mark.parametrize("raw", [None, "", 5, [], {}])
def test_any_output_is_read(raw):
    assert read(raw=raw).raw == raw


def test_id_that_repeats_is_refused():
    ids = RowIds()
    ids.add(read(), where="")

    with pytest.raises(AnswerRowError):
        ids.add(read(), where="")


def test_empty_id_is_refused():
    with pytest.raises(AnswerRowError):
        RowIds().add(read(id=""), where="")


def test_length_is_the_one_reason_of_a_cut():
    assert read(finish_reason="length").is_truncated
    assert not read(finish_reason="content_filter").is_truncated


def test_share_of_nothing_is_none():
    assert share(0, 0) is None
    assert share(1, 4) == 0.25


def test_first_metric_of_a_task_is_the_default():
    assert primary_metric("classification") == "accuracy"
    assert primary_metric("json") == "whole_record_accuracy"


@pytest.mark.parametrize("task", SELECTABLE)
def test_every_metric_of_the_table_can_be_chosen(task):
    assert [primary_metric(task, name) for name in SELECTABLE[task]] == list(
        SELECTABLE[task]
    )


def test_refusal_quotes_the_metric_and_names_the_choices():
    with pytest.raises(UsageError) as refused:
        primary_metric("json", "f1")

    text = str(refused.value)
    assert "'f1' is not supported for the json task" in text
    assert f"choose from {', '.join(SELECTABLE['json'])}" in text


def test_unknown_task_has_no_metric():
    with pytest.raises(UsageError, match="not supported for the ranking task"):
        primary_metric("ranking", "accuracy")
