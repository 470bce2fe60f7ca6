"""What must hold at the end of a task; a verdict in the state replaces the check."""

import time

ASSERTION_CAPABILITIES = {
    "nothing_lent": {"category": "state"},
    "book_lent": {"category": "state"},
    "bell_rang": {"category": "state"},
    "bell_was_asked_for": {"trace": True, "category": "path"},
    "fine_is_right": {"category": "result"},
    "ticket_is_known": {"category": "result"},
}


def _nothing_lent(*, state, trace, task, ctx):
    assert state["loans"] == [], state["loans"]


def _book_lent(*, state, trace, task, ctx):
    assert state["loans"] == [["BK-100", 14]], state["loans"]


_VERDICTS = {
    "true": True,
    "word": {"status": "fine"},
    "skip": {"status": "not_applicable", "detail": "nobody listened"},
}


def _bell_rang(*, state, trace, task, ctx):
    verdict = state["verdict"]
    if verdict == "import":
        import no_such_module  # noqa: F401
    if verdict == "sleep":
        time.sleep(3600)
    assert state["bells"] == 1, state["bells"]
    return _VERDICTS.get(verdict)


def _bell_was_asked_for(*, state, trace, task, ctx):
    assert [call["tool"] for call in trace] == ["ring_bell"], trace
    return _VERDICTS["skip"] if state["verdict"] == "skip" else None


def _fine_is_right(*, state, trace, task, ctx):
    assert trace[-1]["result"]["fine"] == 33, trace


def _ticket_is_known(*, state, trace, task, ctx):
    assert task["slots"]["ticket"].startswith("ticketed-")


ASSERTIONS = {
    "nothing_lent": _nothing_lent,
    "book_lent": _book_lent,
    "bell_rang": _bell_rang,
    "bell_was_asked_for": _bell_was_asked_for,
    "fine_is_right": _fine_is_right,
    "ticket_is_known": _ticket_is_known,
}
