"""The desk of a library, with a bell; moods make it misbehave (see README)."""

import copy

import moods

_state = {}
_seen = []


def list_tools():
    return ["find_book", "shelf_of", "quote_fine", "ring_bell", "lend_book"]


def reset(*, ctx, fixtures=None):
    _state.clear()
    _state.update(copy.deepcopy(fixtures))
    _state.update(bells=0, loans=[], verdict="calm")


def call_tool(name, arguments, *, ctx):
    _seen.append(name)
    mood, detail = moods.of(arguments)
    instead = moods.act(mood, detail)
    if instead is not None:
        return instead
    return _TOOLS[name](arguments, mood, detail)


def get_state():
    return copy.deepcopy(_state)


def _find_book(arguments, mood, detail):
    book = next((b for b in _state["books"] if b["title"] == arguments["title"]), None)
    if book is None:
        return {"error": {"code": "book_not_found", "field": "title"}}
    found = {**book, "calls_seen": len(_seen)}
    if mood == "other_id":
        found["book_id"] = detail
    if mood == "no_id":
        del found["book_id"]
    return found


def _shelf_of(arguments, mood, detail):
    for book in _state["books"]:
        if book["book_id"] == arguments["book_id"]:
            return {"shelf": book["shelf"]}
    return {"error": {"code": "book_not_found", "field": "book_id"}}


def _quote_fine(arguments, mood, detail):
    if arguments["amount"] < 0:
        return {"error": {"code": "negative_amount"}}
    return {"fine": arguments["amount"], "reference": arguments["reference"]}


def _ring_bell(arguments, mood, detail):
    if arguments.get("times", 1) < 1:
        return {"error": {"code": "silent_bell"}}
    _state["bells"] += arguments.get("times", 1)
    if mood == "verdict":
        _state["verdict"] = detail
    return {"bells": _state["bells"]}


def _lend_book(arguments, mood, detail):
    if arguments["book_id"] not in [book["book_id"] for book in _state["books"]]:
        return {"error": {"code": "book_not_found", "field": "book_id"}}
    if not arguments.get("confirm", False):
        return {"status": "awaiting_confirmation"}
    _state["loans"].append([arguments["book_id"], arguments["days"]])
    return {"status": "lent", "days": arguments["days"]}


_TOOLS = {
    "find_book": _find_book,
    "shelf_of": _shelf_of,
    "quote_fine": _quote_fine,
    "ring_bell": _ring_bell,
    "lend_book": _lend_book,
}
