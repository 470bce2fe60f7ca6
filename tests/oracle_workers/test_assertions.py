"""Verdicts, and slots that nobody may look at."""

import copy
import datetime
import json
import pickle
import pprint

import pytest

from oracle_workers.assertions import judge
from oracle_workers.python_backend import RunContext

CONTEXT = RunContext(
    datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC), 1, 5.0, "t", None
)
TASK = {
    "task_id": "t",
    "slots": {"branch": "north"},
    "slots_initial": {"branch": "north"},
    "unresolved_slots": ["reader"],
    "unresolved_slots_initial": [],
    "slot_updates": [
        {"entry_index": 2, "values": {"branch": "south"}, "aliases": {}},
        {"entry_index": 4, "values": {}, "aliases": {}},
    ],
    "unresolved_slot_updates": [
        {"update_index": 1, "entry_index": 4, "slots": ["reader"]}
    ],
}


def verdict(function, task=None):
    return judge(
        function, state={}, trace=[], task=task or copy.deepcopy(TASK), context=CONTEXT
    )


def of_task(read):
    """Judge an assertion that only evaluates `read(task)`."""

    def assertion(*, state, trace, task, ctx):
        read(task)

    return verdict(assertion)


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (None, "passed"),
        (True, "infrastructure_error"),
        (False, "infrastructure_error"),
        ({}, "infrastructure_error"),
        ({"status": "passed", "detail": "x"}, "infrastructure_error"),
        ({"status": "not_applicable", "detail": ""}, "infrastructure_error"),
        ({"status": "not_applicable", "detail": "  "}, "infrastructure_error"),
        ({"status": "not_applicable"}, "infrastructure_error"),
        ({"status": "not_applicable", "detail": "x", "n": 1}, "infrastructure_error"),
        ({"status": "not_applicable", "detail": 1}, "infrastructure_error"),
        ({"status": "not_applicable", "detail": "no loan"}, "not_applicable"),
    ],
)
def test_return_value_decides(outcome, status):
    assert verdict(lambda **_: outcome)["status"] == status


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (AssertionError("wrong"), "failed"),
        (AssertionError(), "failed"),
        (ValueError("broken"), "infrastructure_error"),
        (KeyboardInterrupt(), "infrastructure_error"),
        (SystemExit(0), "infrastructure_error"),
    ],
)
def test_exception_decides(error, status):
    def assertion(**_):
        raise error

    assert verdict(assertion)["status"] == status


def test_assertion_that_cannot_take_the_four_arguments_is_at_fault():
    assert verdict(lambda state: None)["reason_code"] == "assertion.exception"


def _keywords(**given):
    return given


READS = {
    "subscript": lambda s: s["reader"],
    "get": lambda s: s.get("reader"),
    "get with a default": lambda s: s.get("reader", 1),
    "in": lambda s: "reader" in s,
    "pop": lambda s: s.pop("reader", None),
    "setdefault": lambda s: s.setdefault("reader", 1),
    "iteration": list,
    "keys": lambda s: s.keys(),
    "values": lambda s: s.values(),
    "items": lambda s: s.items(),
    "reversed": lambda s: list(reversed(s)),
    "len": len,
    "truth": bool,
    "equality": lambda s: s == {},
    "equality from the left": lambda s: {} == s,  # noqa: SIM300 - the order is the point
    "inequality": lambda s: s != {},
    "copy": lambda s: s.copy(),
    "copy.copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "dict": dict,
    "unpacking": lambda s: {**s},
    "keyword arguments": lambda s: _keywords(**s),
    "union": lambda s: s | {},
    "union from the left": lambda s: {} | s,
    "update from it": {}.update,
    "repr": repr,
    "str": str,
    "format": lambda s: f"{s}",
    "format_map": "{reader}".format_map,
    "json": json.dumps,
    "pickle": pickle.dumps,
    "pprint": pprint.pformat,
    "sorted": sorted,
    "unbound get, compared": lambda s: dict.get(s, "reader") == "x",
    "unbound get, printed": lambda s: str(dict.get(s, "reader")),
    "unbound values, tested": lambda s: all(dict.values(s)),
}


@pytest.mark.parametrize("how", READS)
def test_reading_an_unresolved_slot_by_any_means_is_infrastructure(how):
    def passes(*, state, trace, task, ctx):
        try:
            READS[how](task["slots"])
        except (LookupError, TypeError, ValueError):
            return

    assert verdict(passes) == {
        "status": "infrastructure_error",
        "reason_code": "assertion.unresolved_slot",
        "detail": "read unresolved slots: reader",
    }


def test_match_statement_is_a_read():
    def assertion(*, state, trace, task, ctx):
        match task["slots"]:
            case {"reader": _}:
                raise AssertionError

    assert verdict(assertion)["reason_code"] == "assertion.unresolved_slot"


def test_copy_of_the_whole_task_is_a_read():
    assert of_task(copy.deepcopy)["reason_code"] == "assertion.unresolved_slot"


def test_update_that_is_unresolved_is_watched_too():
    read = of_task(lambda task: task["slot_updates"][1]["values"].get("reader"))

    assert read["reason_code"] == "assertion.unresolved_slot"


@pytest.mark.parametrize(
    "read",
    [
        lambda task: task["slots"]["branch"],
        lambda task: task["slots"].get("branch"),
        lambda task: "branch" in task["slots"],
        lambda task: dict(task["slots_initial"]),
        lambda task: len(task["slot_updates"][0]["values"]),
        lambda task: task["unresolved_slots"],
        list,
        lambda task: isinstance(task["slots"], dict),
    ],
)
def test_resolved_slots_may_be_read(read):
    assert of_task(read)["status"] == "passed"


def test_failed_verdict_turns_into_infrastructure_as_well():
    def assertion(*, state, trace, task, ctx):
        assert task["slots"].get("reader") == "x"

    assert verdict(assertion)["status"] == "infrastructure_error"


def test_task_of_the_caller_is_not_changed():
    task = copy.deepcopy(TASK)
    verdict(lambda **_: None, task)

    assert task == TASK
    assert type(task["slots"]) is dict
