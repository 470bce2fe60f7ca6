"""The exact final state of a conversation of workload W."""

ASSERTION_CAPABILITIES = {"assert_moved_exactly_once": {"category": "state"}}


def assert_moved_exactly_once(*, state, trace, task, ctx):
    slots = task["slots"]
    source, target, cents = slots["source"], slots["target"], slots["cents"]
    expected = {f"acc-{i:02d}": 20_000 + 211 * i for i in range(10)}
    expected[source] -= cents
    expected[target] += cents
    movement = {"number": "mv-001", "source": source, "target": target, "cents": cents}
    assert state == {"balances": expected, "movements": [movement]}
