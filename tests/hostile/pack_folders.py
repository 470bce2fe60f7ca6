"""Makes real pack folders of tricks: a shop whose tools misbehave on demand.

A pack holds one trick or many; the task id that the worker is told decides which one
is played, and any other task finds an honest shop. What a trick learns comes back as
the result of its call, under `escaped`.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from harness.benchmark.pack import load_pack
from tests.benchmark.shop import DONE, ITEM, TWO, answer, template, write_pack

HEAD = """
import copy
import ctypes
import errno
import marshal
import os
import re
import signal
import socket
import struct
import sys
import time

PROTOCOL = 900
STATE = {}
LEFT = []
LATER = []


def attempt(act):
    try:
        act()
    except (ImportError, OSError, ValueError) as error:
        return {"escaped": False, "refused": repr(error)}
    return {"escaped": True}


def daemon(seconds):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(seconds)
        os._exit(0)


def LIBC(name, *arguments):
    answer = getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments)
    if answer == -1:
        raise OSError(ctypes.get_errno(), name)
    return answer
"""
BODY = """
def played(ctx):
    # A pack that is honest while it is certified: it knows a run by its deadline.
    return BY_DEADLINE.get(ctx.timeout_s, ctx.task_id)


def play(place, task_id, result):
    trick = TRICKS.get((place, task_id))
    return result if trick is None else {**result, **trick()}


def list_tools():
    return ["get_item", "buy_item"]


def reset(*, ctx, fixtures=None):
    play("reset", played(ctx), {})
    STATE.clear()
    STATE.update(copy.deepcopy(fixtures), sold=[], task=played(ctx))


def call_tool(name, arguments, *, ctx):
    found = [i for i in STATE["items"] if i["item_id"] == arguments["item_id"]]
    if not found:
        return {"error": {"code": "unknown_item"}}
    if name == "get_item":
        for act in LATER:
            return attempt(act)
        trick = TRICKS.get(("look", played(ctx)))
        return {"item": found[0]} if trick is None else trick()
    if not arguments.get("confirm"):
        return {"status": "awaiting_confirmation"}
    play("purchase", played(ctx), {})
    STATE["sold"].append([arguments["item_id"], arguments["quantity"]])
    return {"status": "sold"}


def get_state():
    play("state", STATE["task"], {})
    shown = copy.deepcopy(STATE)
    del shown["task"]
    return shown
"""
ASSERTIONS = """
import backend

ASSERTION_CAPABILITIES = {"assert_sold": {"category": "state"}}


def assert_sold(*, state, trace, task, ctx):
    backend.play("assertion", backend.played(ctx), {})
    bought = [c for c in task["expected_tool_calls"] if c["arguments"].get("confirm")]
    wanted = [[c["arguments"]["item_id"], c["arguments"]["quantity"]] for c in bought]
    assert state["sold"] == wanted, state["sold"]
"""
PURCHASE = template(
    template_id="look_and_buy",
    turn_policy="confirmation",
    slots={"item_id": {**ITEM, "source": "literal:['I-1']"}, "quantity": TWO},
    user_turn_templates={"en": "Show me {item_id}, and sell me {quantity} of it."},
    assistant_milestones=[
        {"type": "tool_call", "tool": "get_item"},
        {"type": "ask_confirm"},
        {"type": "tool_call", "tool": "buy_item", "args": {"confirm": True}},
        DONE,
    ],
    user_simulator_turns=[answer("ask_confirm", "Yes.")],
)


def write_hostile_pack(folder: Path, tricks, facts, by_deadline=None):
    """Write a pack with the tricks, load it as a run would, and return it.

    `facts` are names that the code of the tricks may use; `by_deadline` names the
    trick that is played in every task of a run with that deadline of a call.
    """
    lines = [HEAD, *(f"{name} = {value!r}" for name, value in facts.items())]
    lines.append(f"BY_DEADLINE = {by_deadline or {}!r}")
    lines.append(f"PACK = {str(folder)!r}\n")
    table = []
    for index, trick in enumerate(tricks):
        if trick.place == "import":
            lines.append(trick.code)
            continue
        body = textwrap.indent(trick.code, "    ")
        lines.append(
            f"\ndef trick_{index}():\n    result = {{}}\n{body}    return result\n"
        )
        table.append(f"({trick.place!r}, {trick.name!r}): trick_{index},")
    lines.append("TRICKS = {" + "".join(table) + "}\n")
    lines.append(BODY)
    write_pack(folder, PURCHASE, backend="\n".join(lines), assertions=ASSERTIONS)
    return load_pack(folder)
