"""A small pack that tests bend: a shop with three items and two tools."""

import copy
import json

import anyio
import yaml

from harness.benchmark.pack import load_pack
from harness.benchmark.publication import publish
from harness.benchmark.templates import expand
from harness.errors import PackError
from harness.oracle.certifying import CertifyingOracle
from harness.oracle.contracts import WorkerDeadlines

MANIFEST = {
    "pack_id": "shop",
    "version": "1.0",
    "absent_ids": {"items": ["I-9", "I-8"]},
    "system_prompt": "You run a shop.",
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_item",
            "parameters": {
                "type": "object",
                "properties": {
                    "item_id": {"type": "string"},
                    "unit": {"enum": ["piece", "box"]},
                },
                "required": ["item_id"],
            },
        },
    },
    {
        "type": "function",
        "x-mutates": True,
        "x-requires-confirmation": True,
        "function": {
            "name": "buy_item",
            "parameters": {
                "type": "object",
                "properties": {
                    "item_id": {"type": "string"},
                    "quantity": {"type": "integer"},
                    "confirm": {"type": "boolean"},
                },
                "required": ["item_id", "quantity"],
            },
        },
    },
]
FIXTURES = {
    "items": [
        {"item_id": "I-1", "name": "Lamp", "price": 30, "kind": "light"},
        {"item_id": "I-2", "name": "Rug", "price": 80, "kind": "floor"},
        {"item_id": "I-3", "name": "Torch", "price": 12, "kind": "light", "new": True},
    ]
}
BACKEND = """
import copy

STATE = {}


def list_tools():
    return ["get_item", "buy_item"]


def reset(*, ctx, fixtures=None):
    STATE.clear()
    STATE.update(copy.deepcopy(fixtures))
    STATE["sold"] = []


def call_tool(name, arguments, *, ctx):
    found = [i for i in STATE["items"] if i["item_id"] == arguments["item_id"]]
    if not found:
        return {"error": {"code": "unknown_item"}}
    if name == "get_item":
        return {"item": found[0], "similar": [{"item_id": "I-3"}]}
    if not arguments.get("confirm"):
        return {"status": "awaiting_confirmation"}
    STATE["sold"].append([arguments["item_id"], arguments["quantity"]])
    return {"status": "sold"}


def get_state():
    return copy.deepcopy(STATE)
"""
ASSERTIONS = """
ASSERTION_CAPABILITIES = {"assert_sold": {"category": "state"}}


def assert_sold(*, state, trace, task, ctx):
    bought = [c for c in task["expected_tool_calls"] if c["arguments"].get("confirm")]
    wanted = [[c["arguments"]["item_id"], c["arguments"]["quantity"]] for c in bought]
    assert state["sold"] == wanted, state["sold"]


def assert_slot(*, state, trace, task, ctx):
    assert task["slots"]["item_id"] == trace[-1]["arguments"]["item_id"]
"""
CASES = [
    {
        "id": "get",
        "tool": "get_item",
        "arguments": {"item_id": "I-1"},
        "expect": {"result_class": "success", "state_unchanged": True},
    },
    {
        "id": "get_unknown",
        "tool": "get_item",
        "arguments": {"item_id": "I-9"},
        "coverage": "negative",
        "expect": {"result_class": "structured_error", "error_code": "unknown_item"},
    },
    {
        "id": "buy",
        "tool": "buy_item",
        "arguments": {"item_id": "I-1", "quantity": 2, "confirm": True},
        "expect": {"result_class": "success", "status": "sold"},
    },
    {
        "id": "buy_unknown",
        "tool": "buy_item",
        "arguments": {"item_id": "I-9", "quantity": 2, "confirm": True},
        "reset_before": False,
        "coverage": "negative",
        "expect": {"result_class": "structured_error", "state_unchanged": True},
    },
]
GET = {"type": "tool_call", "tool": "get_item"}
BUY = {"type": "tool_call", "tool": "buy_item", "args": {"confirm": True}}
DONE = {"type": "final_answer"}
ITEM = {"source": "fixture:items.item_id", "visible_in_first_turn": True}
HIDDEN = {**ITEM, "visible_in_first_turn": False}
TWO = {"source": "literal:2", "visible_in_first_turn": True}


def template(**changes):
    """Return a single-turn template with the changes; None removes a key."""
    made = {
        "template_id": "look",
        "turn_policy": "single_turn",
        "slots": {"item_id": ITEM},
        "user_turn_templates": {"en": "Show me {item_id}."},
        "assistant_milestones": [GET, DONE],
        "success_assertions": ["assert_sold"],
        **changes,
    }
    return {key: value for key, value in made.items() if value is not None}


def answer(after, words, **changes):
    return {"after": after, "content_template": {"en": words}, **changes}


def purchase(**changes):
    """Return a confirmed purchase with the changes."""
    made = {
        "template_id": "buy",
        "turn_policy": "confirmation",
        "slots": {"item_id": ITEM, "quantity": TWO},
        "user_turn_templates": {"en": "Sell me {quantity} of {item_id}."},
        "assistant_milestones": [{"type": "ask_confirm"}, BUY, DONE],
        "user_simulator_turns": [answer("ask_confirm", "Yes.")],
    }
    return template(**{**made, **changes})


def write_pack(folder, *templates, manifest=None, files=None, **parts):
    """Write the shop with other templates or parts; a file of None is left out."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "manifest.yaml": yaml.safe_dump({**MANIFEST, **(manifest or {})}),
        "tools.json": json.dumps(parts.get("tools", TOOLS)),
        "fixtures.json": json.dumps(parts.get("fixtures", FIXTURES)),
        "backend.py": parts.get("backend", BACKEND),
        "assertions.py": parts.get("assertions", ASSERTIONS),
        "validation_cases.yaml": yaml.safe_dump(parts.get("cases", CASES)),
        "task_templates.yaml": dump(list(templates) or [template()]),
        **(files or {}),
    }
    for name, text in texts.items():
        if text is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return folder


def dump(value):
    # Anchors would make one line stand for two values.
    return yaml.safe_dump(copy.deepcopy(json.loads(json.dumps(value))), sort_keys=False)


def loaded(folder, *templates, **options):
    return load_pack(write_pack(folder, *templates, **options))


def tasks_of(folder, *templates, seed=0, language=None, **options):
    return expand(loaded(folder, *templates, **options), seed=seed, language=language)


def problems_of(folder, *templates, **options):
    """Return the problem texts that loading the pack reports, [] if it loads."""
    try:
        loaded(folder, *templates, **options)
    except PackError as error:
        return [violation.problem for violation in error.violations]
    return []


def oracle():
    patient = WorkerDeadlines(
        import_s=20, reset_s=10, call_s=10, state_s=10, assertion_s=10, close_s=10
    )
    return CertifyingOracle(deadlines=patient)


def published(pack, output, **options):
    async def main():
        return await publish(pack, output, oracle=oracle(), **options)

    return anyio.run(main)
