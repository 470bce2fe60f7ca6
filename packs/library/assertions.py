"""What must be true at the end of a task.

`state` is the library's state, `trace` the calls that were made, `task` the task
with its slots.
"""

ASSERTION_CAPABILITIES = {
    "assert_titles_looked_up": {"trace": True, "category": "path"},
    "assert_lent_to_member": {"category": "state"},
    "assert_nothing_lent": {"category": "state"},
    "assert_book_refused": {"category": "result"},
}


def assert_titles_looked_up(*, state, trace, task, ctx):
    asked = set(task["slots"].values())
    found = {
        call["result"]["title"]
        for call in trace
        if call["tool"] == "get_book_status" and "error" not in call["result"]
    }
    assert found == asked, f"looked up {sorted(found)}, not {sorted(asked)}"


def assert_lent_to_member(*, state, trace, task, ctx):
    slots = task["slots"]
    wanted = slots.get("book_id") or _id_of(state, slots["title"])
    loans = [(loan["book_id"], loan["member_id"]) for loan in state["loans"]]
    assert loans == [(wanted, slots["member_id"])], f"loans are {loans}"


def assert_nothing_lent(*, state, trace, task, ctx):
    assert state["loans"] == [], f"loans are {state['loans']}"


def assert_book_refused(*, state, trace, task, ctx):
    codes = [call["result"].get("error", {}).get("code") for call in trace]
    assert codes == ["book_not_found"], f"error codes are {codes}"


def _id_of(state, title):
    return next(b["book_id"] for b in state["books"] if b["title"] == title)
