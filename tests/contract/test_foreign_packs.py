"""Packs written for the contract elsewhere run unmodified.

Each pack here has another habit that the contract allows: files in folders of their
own, helpers beside the module or in the root, data read beside the code, assertions
that take `**kwargs` or are exported by name, a seeded generator, an own clock.
"""

import json
import sys

import pytest

from harness.benchmark.source import verify_source
from tests.contract.desk import Desk, publish_pack

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "draw_card",
            "description": "Draw a card.",
            "strict": True,
            "parameters": {
                "type": "object",
                "$defs": {"suit": {"enum": ["hearts", "spades"]}},
                "properties": {"suit": {"$ref": "#/$defs/suit"}},
                "required": ["suit"],
                "additionalProperties": False,
            },
        },
    },
    {
        "type": "function",
        "x-mutates": True,
        "function": {
            "name": "keep_card",
            "parameters": {
                "type": "object",
                "properties": {"card": {"type": "string"}},
                "required": ["card"],
            },
        },
    },
]
BACKEND = """
from __future__ import annotations

import random
from pathlib import Path

import rules
from deck.suits import SUITS

NAMES = (Path(__file__).parent / "names.txt").read_text("utf-8").split()


class Table:
    kept: list = []


TABLE = Table()


def list_tools() -> list[str]:
    return list(rules.TOOLS)


def reset(*, ctx, fixtures=None) -> None:
    TABLE.kept = []
    TABLE.opened = ctx.clock.isoformat()
    TABLE.random = random.Random(ctx.seed)
    assert fixtures is None or isinstance(fixtures, dict)


def call_tool(name: str, arguments: dict, *, ctx) -> dict:
    if name == "draw_card":
        if arguments["suit"] not in SUITS:
            return {"error": {"code": "no_such_suit", "field": "suit"}}
        number = TABLE.random.choice(NAMES)
        turn, limit = ctx.turn_index, ctx.timeout_s
        assert turn is None or turn >= 0
        assert limit > 0
        return {"card": f"{number} of {arguments['suit']}", "task": ctx.task_id}
    if not arguments["card"]:
        return {"error": {"code": "no_card"}}
    TABLE.kept.append(arguments["card"])
    return {"kept": tuple(TABLE.kept)}


def get_state() -> dict:
    return {"kept": list(TABLE.kept), "opened": TABLE.opened}
"""
ASSERTIONS = """
import importlib

from rules import is_card

ASSERTION_CAPABILITIES: dict = {
    "assert_drawn": {"trace": True, "category": "path"},
    "assert_kept_live": {},
}


def assert_drawn(**kwargs):
    assert [step["tool"] for step in kwargs["trace"]][0] == "draw_card"


def assert_kept_live(state, trace, task, ctx):
    importlib.import_module("deck.suits")
    (card,) = state["kept"]
    assert is_card(card)
    assert card == trace[0]["result"]["card"]
    assert state["opened"] == ctx.clock.isoformat()
    assert task["slots"]["suit"] in card
"""
MANIFEST = """
pack_id: cards
version: 1.2.0rc1
paths:
  tools: spec/tools.json
  templates: spec/templates.yaml
  validation_cases: spec/cases.yaml
  backend: src/cards.py
  assertions: checks/checks.py
system_prompt_path: prompt.txt
surface_guards: {tool_names_exempt: [draw_card]}
"""
TEMPLATES = """
- template_id: draw_and_keep
  intent: draw one card and keep it
  turn_policy: dependent_call
  call_order: strict
  mutates: true
  required_tools: [draw_card, keep_card]
  slots:
    suit: {source: "enum:draw_card.suit", visible_in_first_turn: true}
  user_turn_templates: {en: "Ticket {suit}. Draw one and keep it."}
  assistant_milestones:
    - {type: tool_call, id: drawn, tool: draw_card}
    - type: tool_call
      tool: keep_card
      args: {card: {from_result: {call: drawn, path: card}}}
    - {type: final_answer}
  success_assertions: [assert_drawn, assert_kept_live]
"""
CASES = """
- id: draw
  tool: draw_card
  arguments: {suit: hearts}
  expect: {result_class: success}
- id: draw_nothing
  tool: draw_card
  arguments: {suit: cups}
  coverage: negative
  reset_before: true
  expect: {result_class: structured_error, error_code: no_such_suit}
- id: keep
  tool: keep_card
  arguments: {card: x}
  reset_before: true
  expect: {result_class: success, kept: [x]}
- id: keep_nothing
  tool: keep_card
  arguments: {card: ""}
  reset_before: true
  coverage: negative
  expect: {result_class: structured_error, state_unchanged: true}
"""
FILES = {
    "manifest.yaml": MANIFEST,
    "prompt.txt": "Deal the cards.\n",
    "rules.py": "TOOLS = ('keep_card', 'draw_card')\n\n"
    "def is_card(text):\n    return ' of ' in text\n",
    "token.py": "raise RuntimeError('nobody imports this')\n",
    "spec/tools.json": json.dumps(TOOLS),
    "spec/templates.yaml": TEMPLATES,
    "spec/cases.yaml": CASES,
    "src/cards.py": BACKEND,
    "src/names.txt": "ace king queen\n",
    "src/deck/__init__.py": "",
    "src/deck/suits.py": "SUITS = {'hearts', 'spades'}\n",
    "checks/checks.py": ASSERTIONS,
    ".git/HEAD": "ref: refs/heads/main\n",
    "src/__pycache__/cards.cpython-311.pyc": "stale",
}


@pytest.fixture(scope="module")
def cards(tmp_path_factory):
    """The pack with other habits, published."""
    folder = tmp_path_factory.mktemp("cards")
    for name, text in FILES.items():
        path = folder / "elsewhere" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return publish_pack(folder / "published", folder / "elsewhere")


@pytest.mark.slow
def test_pack_of_other_habits_is_gold_and_runs(cards, tmp_path):
    desk = Desk(tmp_path, cards, backend="src/cards.py")
    ran = desk.play({})

    assert desk.gold_eligible
    assert ran.candidate["successful_tasks"] == ran.candidate["task_count"] == 2
    for suit in ("hearts", "spades"):
        first, second = ran.episode(suit).execution.executions
        assert first.result["task"] == ran.score(suit).task_id
        assert second.result == {"kept": [first.result["card"]]}


@pytest.mark.slow
def test_pack_code_stays_outside_the_evaluator(cards, tmp_path):
    Desk(tmp_path, cards, backend="src/cards.py").play({})

    assert not {"rules", "deck", "cards", "checks"} & sys.modules.keys()


def test_what_editors_and_interpreters_leave_in_a_pack_changes_nothing(cards, tmp_path):
    desk = Desk(tmp_path, cards, backend="src/cards.py")
    for name in (".git/index", "src/__pycache__/x.pyc", ".ipynb_checkpoints/a.py"):
        path = cards.pack / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("left behind", "utf-8")

    assert verify_source(desk.config("http://127.0.0.1:9/v1")).task_ids
