"""What is sent ahead: the same answers as asked one by one, and the same blame."""

import anyio
import pytest

from harness.canonical import content_hash
from harness.oracle.contracts import OracleFault, WorkerDeadlines
from harness.oracle.session import GO_AHEAD_MARGIN_S
from tests.oracle.zoo import DEADLINES, python, write_pack

pytestmark = pytest.mark.slow

SLOW_STATE = """
import time

STATE = {"calls": 0, "wait": 0}

def list_tools():
    return ["add", "wait", "fail", "text"]

def reset(*, ctx, fixtures=None):
    STATE.update(calls=0, wait=0)

def call_tool(name, arguments, *, ctx):
    if name == "wait":
        STATE["wait"] = arguments["s"]
        return {}
    STATE["calls"] += 1
    if name == "fail":
        raise ValueError("no")
    return {"calls": STATE["calls"]} if name == "add" else "text"

def get_state():
    time.sleep(STATE["wait"])
    return {"calls": STATE["calls"]}
"""
ASSERTIONS = """
def assert_one(*, state, trace, task, ctx):
    assert state == {"calls": 1} and len(trace) == task["length"]

def assert_none(*, state, trace, task, ctx):
    assert state == {"calls": 0}, "some"
"""


def deadlines(**seconds):
    values = {"import": 20, "reset": 10, "call": 10, "state": 10, "assertion": 10}
    values |= {"close": 10} | seconds
    return WorkerDeadlines(**{f"{name}_s": value for name, value in values.items()})


def counting(zoo):
    return write_pack(zoo.folder, backend=SLOW_STATE, assertions=ASSERTIONS)


async def mutate(session, name="add", arguments=None):
    """Ask what stands around a mutating call, foreseen."""
    arguments = {} if arguments is None else arguments
    session.foresee_call(name, arguments, turn_index=0)
    before = await session.state_hash()
    result = await session.call_tool(name, arguments, turn_index=0)
    return before, result, await session.state_hash()


def test_foreseen_call_stands_between_the_hashes_around_it(zoo, level):
    async def scenario(session):
        await session.reset()
        return [await mutate(session), await mutate(session)]

    found = zoo.session(scenario, pack=counting(zoo), level=level)

    hashes = [content_hash({"calls": n}) for n in range(3)]
    assert found == [
        (hashes[0], {"calls": 1}, hashes[1]),
        (hashes[1], {"calls": 2}, hashes[2]),
    ]


def test_foreseen_end_gives_every_verdict_and_ends_in_order(zoo):
    async def scenario(session):
        await session.reset()
        await mutate(session)
        task = {"length": 1}
        session.foresee_end(["assert_one", "assert_none"], task)
        state = await session.state_hash()
        verdicts = [
            await session.run_assertion(n, task) for n in ("assert_one", "assert_none")
        ]
        await session.close()
        return state, [v.status for v in verdicts], session.evidence()["ended"]

    state, verdicts, ended = zoo.session(scenario, pack=counting(zoo))

    assert (state, verdicts) == (content_hash({"calls": 1}), ["passed", "failed"])
    assert ended == {"how": "closed", "processes_killed": 0}


def test_close_before_the_foreseen_verdicts_asks_nothing_more(zoo):
    async def scenario(session):
        await session.reset()
        session.foresee_end(["assert_one", "assert_none"], {"length": 1})
        await session.state_hash()
        await session.run_assertion("assert_one", {"length": 1})
        await session.close()
        return session.evidence()["ended"]["how"]

    assert zoo.session(scenario, pack=counting(zoo)) == "closed"


def test_state_after_a_foreseen_call_without_an_object_can_be_read(zoo):
    async def scenario(session):
        await session.reset()
        session.foresee_call("text", {}, turn_index=0)
        await session.state_hash()
        with pytest.raises(OracleFault) as fault:
            await session.call_tool("text", {}, turn_index=0)
        return fault.value.kind, fault.value.value, await session.state_hash()

    found = zoo.session(scenario, pack=counting(zoo))

    assert found == ("malformed", "text", content_hash({"calls": 1}))


def test_foreseen_call_that_fails_ends_the_session(zoo):
    async def scenario(session):
        await session.reset()
        session.foresee_call("fail", {}, turn_index=0)
        await session.state_hash()
        faults = []
        for ask in (
            session.call_tool("fail", {}, turn_index=0),
            session.state_hash(),
        ):
            with pytest.raises(OracleFault) as fault:
                await ask
            faults.append((fault.value.kind, fault.value.sent))
        return faults

    assert zoo.session(scenario, pack=counting(zoo)) == [
        ("error", True),
        ("session", True),
    ]


@pytest.mark.parametrize("wait_s", [0.1, 0.4], ids=["early", "inside the margin"])
def test_call_is_made_once_however_late_its_hash_is(zoo, wait_s):
    async def scenario(session):
        await session.reset()
        await session.call_tool("wait", {"s": wait_s}, turn_index=0)
        return await mutate(session)

    found = zoo.session(
        scenario, pack=counting(zoo), deadlines=deadlines(state=0.3 + GO_AHEAD_MARGIN_S)
    )

    assert found == (
        content_hash({"calls": 0}),
        {"calls": 1},
        content_hash({"calls": 1}),
    )


def test_hash_that_is_too_late_means_that_the_call_never_began(zoo, tmp_path):
    mark = tmp_path / "began"
    backend = SLOW_STATE.replace(
        'STATE["calls"] += 1', f'open({str(mark)!r}, "w").close()'
    )
    pack = write_pack(zoo.folder, backend=backend, assertions=ASSERTIONS)

    async def scenario(session):
        await session.reset()
        await session.call_tool("wait", {"s": 0.6}, turn_index=0)
        session.foresee_call("add", {}, turn_index=0)
        with pytest.raises(OracleFault) as fault:
            await session.state_hash()
        return fault.value.operation, fault.value.kind

    found = zoo.session(
        scenario, pack=pack, deadlines=deadlines(state=0.25 + GO_AHEAD_MARGIN_S)
    )

    assert (found, mark.exists()) == (("state", "timeout"), False)


def test_nothing_is_sent_ahead_where_a_deadline_is_near(zoo):
    async def scenario(session):
        await session.reset()
        session.foresee_call("add", {}, turn_index=0)
        return await session.state_hash(), await session.state_hash()

    found = zoo.session(
        scenario, pack=counting(zoo), deadlines=deadlines(state=GO_AHEAD_MARGIN_S / 2)
    )

    assert found == (content_hash({"calls": 0}),) * 2


def test_foreseen_end_at_the_deadline_is_a_timeout_of_what_was_not_answered(zoo):
    async def scenario(session):
        await session.reset()
        await session.call_tool("wait", {"s": 0.2}, turn_index=0)
        session.deadline = anyio.current_time() + 0.1
        session.foresee_end(["assert_one"], {"length": 1})
        with pytest.raises(OracleFault) as fault:
            await session.state_hash()
        await session.close()
        return fault.value.operation, fault.value.kind, str(fault.value)

    operation, kind, text = zoo.session(scenario, pack=counting(zoo))

    assert (operation, kind) == ("state", "timeout")
    assert "deadline of the episode" in text


def test_what_a_foreseen_call_prints_is_kept(zoo):
    async def scenario(session):
        await session.reset()
        arguments = {"code": 'print("seen"); result = {}'}
        session.foresee_call("python", arguments, turn_index=0)
        await session.state_hash()
        await python(session, arguments["code"])
        await session.state_hash()
        await session.close()
        return session.evidence()["output"]

    assert zoo.session(scenario, deadlines=DEADLINES) == "seen\n"
