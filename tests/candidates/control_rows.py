"""Published rows built by hand: one library desk, all nine turn policies."""

import copy

from harness.canonical import canonical_json


def _tool(name, properties, required):
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": f"{name} of the library desk",
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": False,
            },
        },
    }


BOOK = {"type": "string", "pattern": "^BK-[0-9]{3}$"}
TOOLS = [
    _tool("get_book", {"book_id": BOOK}, ["book_id"]),
    _tool(
        "find_books",
        {
            "shelf": {"$ref": "#/$defs/shelf"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 5, "default": 5},
        },
        ["shelf"],
    ),
    _tool(
        "lend_book",
        {"book_id": BOOK, "reader": {"type": "string"}, "days": {"type": "integer"}},
        ["book_id", "reader"],
    ),
    _tool(
        "remove_book",
        {"book_id": BOOK, "confirm": {"type": "boolean"}},
        ["book_id", "confirm"],
    ),
    _tool(
        "close_account",
        {"reader": {"type": "string"}, "approved": {"type": "boolean"}},
        ["reader"],
    ),
    _tool("opening_hours", {}, []),
]
TOOLS[1]["function"]["parameters"]["$defs"] = {
    "shelf": {"type": "string", "enum": ["history", "poetry", "travel"]}
}


def user(text):
    return ("user", text)


def say(text):
    return ("say", text)


def calls(*made):
    """Each of `made` is a name, its arguments and its recorded result."""
    return ("calls", made)


def row(task_id, policy, *steps, call_order="strict", prefix=None, system="Desk."):
    messages = [{"role": "system", "content": system}]
    expected = []
    turn_index = group = 0
    for kind, content in steps:
        if kind == "user":
            messages.append({"role": "user", "content": content})
            continue
        if kind == "say":
            messages.append({"role": "assistant", "content": content})
            turn_index += 1
            continue
        ids = [f"gold_{turn_index}_{i}" for i in range(len(content))]
        messages.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": call_id,
                        "type": "function",
                        "function": {
                            "name": name,
                            "arguments": canonical_json(arguments),
                        },
                    }
                    for call_id, (name, arguments, _) in zip(ids, content, strict=True)
                ],
            }
        )
        for position, (name, arguments, result) in enumerate(content):
            messages.append(
                {
                    "role": "tool",
                    "tool_call_id": ids[position],
                    "content": canonical_json(result),
                }
            )
            expected.append(
                {
                    "turn_index": turn_index,
                    "call_group": group,
                    "position_in_group": position,
                    "function_name": name,
                    "arguments": {k: canonical_json(v) for k, v in arguments.items()},
                }
            )
        turn_index += 1
        group += 1
    return {
        "task_id": task_id,
        "messages": messages,
        "tools": TOOLS,
        "expected_tool_calls": expected,
        "required_tools": list(dict.fromkeys(c["function_name"] for c in expected)),
        "call_order": call_order,
        "call_order_prefix": prefix,
        "turn_policy": policy,
        "success_assertions": ["assert_done"],
    }


SINGLE = row(
    "single",
    "single_turn",
    user("Is BK-100 in?"),
    calls(("get_book", {"book_id": "BK-100"}, {"status": "in"})),
    say("Yes, it is in."),
)
BARE = row(
    "bare",
    "single_turn",
    user("When are you open?"),
    calls(("opening_hours", {}, {"from": 9, "to": 17})),
)
GROUP = row(
    "group",
    "multi_tool",
    user("Are BK-101 and poetry there?"),
    calls(
        ("get_book", {"book_id": "BK-101"}, {"status": "out"}),
        ("find_books", {"shelf": "poetry"}, {"books": []}),
    ),
    say("One is out, the shelf is empty."),
)
FREE_GROUP = row(
    "free-group",
    "multi_tool",
    user("Show BK-102 and BK-103 in any order."),
    calls(
        ("get_book", {"book_id": "BK-102"}, {"status": "in"}),
        ("get_book", {"book_id": "BK-103"}, {"status": "in"}),
    ),
    say("Both are in."),
    call_order="any",
)
PREFIX = row(
    "prefix",
    "multi_tool",
    user("First look at BK-104, then at history, then at travel."),
    calls(("get_book", {"book_id": "BK-104"}, {"status": "in"})),
    calls(
        ("find_books", {"shelf": "history"}, {"books": []}),
        ("find_books", {"shelf": "travel"}, {"books": []}),
    ),
    say("All done."),
    call_order="prefix",
    prefix=1,
)
MISSING_SLOT = row(
    "missing-slot",
    "missing_slot",
    user("Please look a book up."),
    say("Which one?"),
    user("BK-105"),
    calls(("get_book", {"book_id": "BK-105"}, {"status": "in"})),
    say("It is in."),
)
CONFIRMATION = row(
    "confirmation",
    "confirmation",
    user("Remove BK-106."),
    say("Shall I really?"),
    user("Yes."),
    calls(
        ("remove_book", {"book_id": "BK-106", "confirm": True}, {"status": "removed"})
    ),
    say("It is gone."),
)
PROBED_CONFIRMATION = row(
    "probed-confirmation",
    "confirmation",
    user("Remove BK-107."),
    calls(
        (
            "remove_book",
            {"book_id": "BK-107", "confirm": False},
            {"status": "awaiting_confirmation"},
        )
    ),
    say("Shall I really?"),
    user("Yes."),
    calls(
        ("remove_book", {"book_id": "BK-107", "confirm": True}, {"status": "removed"})
    ),
    say("It is gone."),
)
NAMED_CONFIRMATION = row(
    "named-confirmation",
    "confirmation",
    user("Close the account of Ann."),
    say("Shall I really?"),
    user("Yes."),
    calls(("close_account", {"reader": "Ann", "approved": True}, {"status": "closed"})),
    say("It is closed."),
)
CORRECTION = row(
    "correction",
    "correction",
    user("Lend BK-108 to Bob."),
    calls(("get_book", {"book_id": "BK-108"}, {"status": "in"})),
    say("It is in. For how long?"),
    user("Sorry, to Cyd, 7 days."),
    calls(
        (
            "lend_book",
            {"book_id": "BK-108", "reader": "Cyd", "days": 7},
            {"status": "lent"},
        )
    ),
    say("Lent to Cyd."),
)
DEPENDENT = row(
    "dependent",
    "dependent_call",
    user("Lend the first poetry book to Dan."),
    calls(
        (
            "find_books",
            {"shelf": "poetry", "limit": 1},
            {"books": [{"book_id": "BK-109"}]},
        )
    ),
    calls(("lend_book", {"book_id": "BK-109", "reader": "Dan"}, {"status": "lent"})),
    say("Lent to Dan."),
)
NEGATIVE = row(
    "negative",
    "negative_path",
    user("Is BK-999 in?"),
    calls(("get_book", {"book_id": "BK-999"}, {"error": {"code": "not_found"}})),
    say("There is no such book."),
)
CLARIFY = row(
    "clarify", "clarify_only", user("Help me with a thing."), say("With what?")
)
IRRELEVANT = row(
    "irrelevant", "irrelevant", user("Fly me to the moon."), say("I cannot do that.")
)

ROWS = [
    SINGLE,
    BARE,
    GROUP,
    FREE_GROUP,
    PREFIX,
    MISSING_SLOT,
    CONFIRMATION,
    PROBED_CONFIRMATION,
    NAMED_CONFIRMATION,
    CORRECTION,
    DEPENDENT,
    NEGATIVE,
    CLARIFY,
    IRRELEVANT,
]


def request_at(published, turn_index, *, model="gold", results=None):
    """The body that a gold conversation of a row sends at one turn."""
    messages = []
    answered = 0
    for message in copy.deepcopy(published["messages"]):
        if message["role"] == "assistant":
            if answered == turn_index:
                break
            answered += 1
        if message["role"] == "tool" and results:
            message["content"] = results[answered - 1]
        messages.append(message)
    return {"model": model, "messages": messages, "tools": published["tools"]}
