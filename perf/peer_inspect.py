"""Workload W through Inspect AI, to compare CPU in the same sitting.

It has no process isolation: tools run in its own process, on state of the sample. Run
it with an interpreter that has `inspect-ai` and `openai`:

    OTHER/bin/python perf/peer_inspect.py --url http://127.0.0.1:8399/v1 -n 500
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile

from workload import SYSTEM, Bank, Call, facts, user_turns

KEY = "PEER_API_KEY"


def parsed() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("-n", "--episodes", type=int, default=500)
    parser.add_argument("-c", "--parallel", type=int, default=64)
    return parser.parse_args()


def main() -> int:
    """Evaluate once; 0 if every episode came out right."""
    options = parsed()
    os.environ |= {KEY: "x", "PEER_BASE_URL": options.url}
    from inspect_ai import Task
    from inspect_ai import eval as evaluate
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ChatMessageSystem, ChatMessageUser, get_model
    from inspect_ai.scorer import Score, accuracy, scorer
    from inspect_ai.solver import solver
    from inspect_ai.tool import tool
    from inspect_ai.util import store

    def answer(name: str, **arguments: object) -> str:
        bank = store().get("bank")
        return json.dumps(bank.answer(Call(name, arguments)))

    @tool
    def read_balance():
        async def execute(account: str) -> str:
            """Read the balance of one account, in cents.

            Args:
                account: Number of the account, as in acc-04
            """
            return answer("read_balance", account=account)

        return execute

    @tool
    def move_money():
        async def execute(source: str, target: str, cents: int) -> str:
            """Move money from one account to another and return the movement.

            Args:
                source: Account that is debited
                target: Account that is credited
                cents: Amount in cents
            """
            return answer("move_money", source=source, target=target, cents=cents)

        return execute

    @tool
    def list_movements():
        async def execute(account: str) -> str:
            """List the movements that touch one account, oldest first.

            Args:
                account: Number of the account, as in acc-04
            """
            return answer("list_movements", account=account)

        return execute

    @solver
    def two_turns():
        async def solve(state, generate):
            episode = state.metadata["episode"]
            store().set("bank", Bank(episode))
            state.tools = [read_balance(), move_money(), list_movements()]
            state = await generate(state)
            state.messages.append(ChatMessageUser(content=user_turns(episode)[1]))
            return await generate(state)

        return solve

    @scorer(metrics=[accuracy()])
    def final_state():
        async def score(state, target):
            source, to, cents = facts(state.metadata["episode"])
            expected = Bank(state.metadata["episode"])
            expected.balances[source] -= cents
            expected.balances[to] += cents
            bank = store().get("bank")
            right = bank.balances == expected.balances and len(bank.movements) == 1
            return Score(value=int(right))

        return score

    samples = [
        Sample(
            id=f"w-{number}",
            input=[
                ChatMessageSystem(content=SYSTEM),
                ChatMessageUser(content=user_turns(number)[0]),
            ],
            target="right",
            metadata={"episode": number},
        )
        for number in range(options.episodes)
    ]
    task = Task(
        dataset=MemoryDataset(samples),
        solver=two_turns(),
        scorer=final_state(),
        name="workload_w",
    )
    with tempfile.TemporaryDirectory() as folder:
        (log,) = evaluate(
            task,
            model=get_model("openai-api/peer/w"),
            log_dir=folder,
            display="none",
            max_connections=options.parallel,
            max_samples=options.parallel,
            temperature=0,
            max_tokens=512,
        )
        found = log.results.scores[0].metrics["accuracy"].value if log.results else 0
    print(json.dumps({"status": log.status, "accuracy": found}))
    return 0 if found == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
