"""Workload W: a short conversation with a bank, the same shape for every program.

Two user turns, four requests, three calls (one, then two in parallel), ten messages,
ten accounts. Everything follows from three facts that the first user turn names, so an
endpoint needs no memory to answer. `row` makes rows in the form of published rows,
with results of the small bank here; `pack_w/` is the same workload as a pack.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

REQUESTS_PER_EPISODE = 4
CALLS_PER_EPISODE = 3
ACCOUNTS = 10
SYSTEM = (
    "You work at the counter of a savings bank and serve one customer whose identity "
    "has been checked. Read balances, move money and list movements with the tools; "
    "state only figures that a tool has returned. All amounts are whole cents. A "
    "transfer may not take an account below zero. Ask two questions of the bank in "
    "one message where neither needs the other's answer. Once the results are there, "
    "answer in one or two plain sentences. A transfer whose source, target and amount "
    "the customer has named needs no further question."
)
_FACTS = re.compile(r"move (\d+) cents from (acc-\d\d) to (acc-\d\d)")


class Facts(NamedTuple):
    """What an episode is about."""

    source: str
    target: str
    cents: int


class Call(NamedTuple):
    """One call of the workload."""

    name: str
    arguments: dict[str, object]


class Reply(NamedTuple):
    """What a right candidate answers: calls, or a text."""

    text: str | None
    calls: tuple[Call, ...]


def _tools() -> list[dict[str, object]]:
    """Return the pack's tools as a model sees them."""
    tools = json.loads((PACK / "tools.json").read_text(encoding="utf-8"))
    return [{k: v for k, v in tool.items() if not k.startswith("x-")} for tool in tools]


PACK = Path(__file__).parent / "pack_w"
TOOLS = _tools()


class Bank:
    """The ten accounts of one episode."""

    def __init__(self, episode: int) -> None:
        self.balances = {
            f"acc-{i:02d}": 20_000 + 211 * i + episode % 13 for i in range(ACCOUNTS)
        }
        self.movements: list[dict[str, object]] = []

    def answer(self, call: Call) -> dict[str, object]:
        """Run one call."""
        if call.name == "read_balance":
            account = call.arguments["account"]
            return {"account": account, "cents": self.balances[account]}
        if call.name == "list_movements":
            account = call.arguments["account"]
            touching = [
                movement
                for movement in self.movements
                if account in (movement["source"], movement["target"])
            ]
            return {"account": account, "movements": touching}
        cents = call.arguments["cents"]
        if self.balances[call.arguments["source"]] < cents:
            return {"error": {"code": "not_covered"}}
        self.balances[call.arguments["source"]] -= cents
        self.balances[call.arguments["target"]] += cents
        number = f"mv-{len(self.movements) + 1:03d}"
        self.movements.append({"number": number, **call.arguments})
        return {"status": "booked", "movement": self.movements[-1]}


def facts(episode: int) -> Facts:
    """Return what the episode with this number is about."""
    source = episode % ACCOUNTS
    return Facts(
        f"acc-{source:02d}",
        f"acc-{(source + 1 + episode // ACCOUNTS % 9) % ACCOUNTS:02d}",
        1 + episode % 15_000,
    )


def user_turns(episode: int) -> tuple[str, str]:
    """Return the two user turns of an episode."""
    source, target, cents = facts(episode)
    return (
        f"Good morning, episode {episode}: please move {cents} cents from {source} to "
        f"{target}.",
        f"Thanks. What is left on {source}, and which movements touch {target}?",
    )


def facts_in(first_user_turn: str) -> Facts | None:
    """Return the facts that a first user turn names, None for a foreign text."""
    found = _FACTS.search(first_user_turn)
    return Facts(found[2], found[3], int(found[1])) if found else None


def reply(about: Facts, answered: int) -> Reply:
    """Return the right answer after `answered` earlier ones; the last one repeats."""
    source, target, cents = about
    if answered == 0:
        call = Call("move_money", {"source": source, "target": target, "cents": cents})
        return Reply(None, (call,))
    if answered == 1:
        return Reply(f"I have moved {cents} cents from {source} to {target}.", ())
    if answered == 2:
        return Reply(
            None,
            (
                Call("read_balance", {"account": source}),
                Call("list_movements", {"account": target}),
            ),
        )
    return Reply(f"The figures of {source} and {target} are in the results above.", ())


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _messages(episode: int) -> list[dict[str, object]]:
    bank = Bank(episode)
    first, second = user_turns(episode)
    messages: list[dict[str, object]] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": first},
    ]
    for answered in range(REQUESTS_PER_EPISODE):
        text, calls = reply(facts(episode), answered)
        if not calls:
            messages.append({"role": "assistant", "content": text})
            if answered == 1:
                messages.append({"role": "user", "content": second})
            continue
        ids = [f"gold_{answered}_{position}" for position in range(len(calls))]
        messages.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": call_id,
                        "type": "function",
                        "function": {
                            "name": call.name,
                            "arguments": _canonical(call.arguments),
                        },
                    }
                    for call_id, call in zip(ids, calls, strict=True)
                ],
            }
        )
        messages += [
            {
                "role": "tool",
                "tool_call_id": call_id,
                "content": _canonical(bank.answer(call)),
            }
            for call_id, call in zip(ids, calls, strict=True)
        ]
    return messages


def row(episode: int) -> dict[str, object]:
    """Return one episode in the form of a published row."""
    expected = [
        {
            "turn_index": answered,
            "call_group": group,
            "position_in_group": position,
            "function_name": call.name,
            "arguments": {k: _canonical(v) for k, v in call.arguments.items()},
        }
        for group, answered in enumerate((0, 2))
        for position, call in enumerate(reply(facts(episode), answered).calls)
    ]
    names = list(dict.fromkeys(call["function_name"] for call in expected))
    return {
        "task_id": f"w-{episode:06d}",
        "template_id": "workload_w",
        "variant_index": episode,
        "messages": _messages(episode),
        "tools": TOOLS,
        "expected_tool_calls": expected,
        "success_assertions": [],
        "fixture_refs": [],
        "intent": "workload_w",
        "category": None,
        "difficulty": None,
        "required_tools": names,
        "required_tools_fingerprint": _canonical(sorted(names)),
        "tools_present": [tool["function"]["name"] for tool in TOOLS],
        "turn_policy": "multi_tool",
        "is_multi_turn": True,
        "num_tool_calls": CALLS_PER_EPISODE,
        "call_order": "strict",
        "call_order_prefix": None,
        "system_prompt_id": "workload_w",
        "tier": "gold",
        "gold_eligible": True,
        "validated_by": ["schema", "replay"],
        "pack_id": "workload_w",
        "pack_version": "1.0.0",
        "seed": episode,
        "paraphrase_model": None,
        "paraphrase_model_canonical": None,
        "held_out_hit": None,
        "src": "workload_w:workload_w",
        "metadata": {
            "language": "en",
            "expt_name": "workload_w",
            "base_task_id": f"w-{episode:06d}",
            "surface_source": "template",
            "profile_hash": None,
        },
        "slot_bindings": None,
    }
