"""The library itself: two tools over one shelf of books."""

import copy
from datetime import timedelta

LOAN_DAYS = 21

_state = {}


def list_tools():
    return ["get_book_status", "checkout_book"]


def reset(*, ctx, fixtures=None):
    _state.clear()
    _state.update(copy.deepcopy(fixtures))
    _state["loans"] = []


def call_tool(name, arguments, *, ctx):
    if name == "get_book_status":
        return _get_book_status(**arguments)
    return _checkout_book(**arguments, ctx=ctx)


def get_state():
    return copy.deepcopy(_state)


def _get_book_status(title):
    book = _find("books", "title", title)
    if book is None:
        return _error("book_not_found", "title")
    return {name: book[name] for name in ("book_id", "title", "status")}


def _checkout_book(book_id, member_id, confirm=False, *, ctx):
    book = _find("books", "book_id", book_id)
    if book is None:
        return _error("book_not_found", "book_id")
    if _find("members", "member_id", member_id) is None:
        return _error("member_not_found", "member_id")
    if book["status"] != "available":
        return _error("already_on_loan", "book_id")
    if not confirm:
        return {"status": "awaiting_confirmation", "book_id": book_id}
    due = (ctx.clock + timedelta(days=LOAN_DAYS)).date().isoformat()
    book["status"] = "on_loan"
    loan = {"book_id": book_id, "member_id": member_id, "due": due}
    _state["loans"].append(loan)
    return {"status": "checked_out", **loan}


def _find(collection, field, value):
    rows = _state[collection]
    return next((row for row in rows if row[field] == value), None)


def _error(code, field):
    return {"error": {"code": code, "field": field}}
