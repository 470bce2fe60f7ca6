"""Whole sessions: what comes back, and how everything a pack can do wrong is named."""

import anyio
import pytest

from harness.canonical import content_hash
from harness.oracle.contracts import OracleFault
from tests.oracle.zoo import FOREVER, HASTY, python, write_pack

pytestmark = pytest.mark.slow


def test_session_resets_calls_and_hashes_state(zoo, level):
    pack = write_pack(zoo.folder, fixtures='{"books": [{"book_id": "B1"}]}')

    async def scenario(session):
        await session.reset()
        before = await session.state_hash()
        answer = await python(session, 'STATE["seen"] = 1; result = {"n": 1.5}')
        return before, answer, await session.state(), await session.state_hash()

    before, answer, state, after = zoo.session(scenario, pack=pack, level=level)

    books = [{"book_id": "B1"}]
    assert (before, answer) == (content_hash({"books": books}), {"n": 1.5})
    assert (state, after) == ({"books": books, "seen": 1}, content_hash(state))


def test_pack_imported_by_the_worker_itself_behaves_the_same(zoo, level):
    answer = zoo.python('result = {"n": 1}', level=level, mode="per_task")

    assert answer == {"n": 1}


def test_context_holds_clock_seed_task_and_turn(zoo):
    code = """
result = {"clock": ctx.clock.isoformat(), "seed": ctx.seed, "task": ctx.task_id,
          "turn": ctx.turn_index, "timeout": ctx.timeout_s}
"""

    assert zoo.python(code) == {
        "clock": "2025-03-01T09:30:00+00:00",
        "seed": 7,
        "task": "task-1",
        "turn": 0,
        "timeout": 10,
    }


def test_second_reset_meets_untouched_fixtures(zoo):
    pack = write_pack(
        zoo.folder,
        backend="""
STATE = {}
def list_tools(): return []
def reset(*, ctx, fixtures=None):
    global STATE
    STATE = fixtures
def call_tool(name, arguments, *, ctx):
    STATE["rows"].append(1)
    return {}
def get_state(): return STATE
""",
        fixtures='{"rows": []}',
    )

    async def scenario(session):
        await session.reset()
        await session.call_tool("add", {}, turn_index=0)
        await session.reset()
        return await session.state()

    assert zoo.session(scenario, pack=pack) == {"rows": []}


def test_business_rejection_is_an_ordinary_result_and_the_session_goes_on(zoo):
    async def scenario(session):
        await session.reset()
        rejected = await python(session, 'result = {"error": {"code": "not_found"}}')
        return rejected, await python(session, 'result = {"fine": True}')

    assert zoo.session(scenario) == ({"error": {"code": "not_found"}}, {"fine": True})


def test_text_of_every_plane_and_large_integers_survive(zoo):
    code = 'result = {"t": "d\\u1ebf \\U0001f600", "i": 10**40, "f": 1e300, "b": True}'

    assert zoo.python(code) == {"t": "dế 😀", "i": 10**40, "f": 1e300, "b": True}


@pytest.mark.parametrize(
    ("expression", "value", "tag"),
    [
        ("[1, 2]", [1, 2], "array"),
        ("(1, 2)", [1, 2], "array"),
        ("None", None, "null"),
        ("'text'", "text", "str"),
        ("True", True, "bool"),
        ("{'n': float('nan')}", None, "float"),
        ("{'n': float('inf')}", None, "float"),
        ("{1: 'key that is no text'}", None, "dict"),
        ("{'s': {1}}", None, "set"),
        ("{'t': '\\ud800'}", None, "dict"),
        ("{'b': b'bytes'}", None, "bytes"),
    ],
)
def test_result_that_is_no_json_object_is_malformed(zoo, expression, value, tag):
    fault = zoo.fault(f"result = {expression}")

    assert (fault.operation, fault.kind) == ("call", "malformed")
    assert (fault.value, fault.value_type) == (value, tag)


def test_hostile_reducer_is_never_unpickled(zoo):
    marker = zoo.folder / "ran"
    fault = zoo.fault(
        f"""
class Evil:
    def __reduce__(self):
        return (os.system, ("touch {marker}",))
result = {{"evil": Evil()}}
"""
    )

    assert (fault.kind, fault.value_type) == ("malformed", "Evil")
    assert not marker.exists()


@pytest.mark.parametrize(("depth", "accepted"), [(64, True), (65, False)])
def test_result_may_be_64_deep_and_no_deeper(zoo, depth, accepted):
    code = f"""
inner = 1
for _ in range({depth - 1}):
    inner = [inner]
result = {{"deep": inner}}
"""
    if accepted:
        assert "deep" in zoo.python(code)
    else:
        assert zoo.fault(code).kind == "malformed"


@pytest.mark.parametrize(
    "setup",
    ["result = inner = {}\nfor _ in range(100000): inner['d'] = inner = {}", None],
)
def test_endless_nesting_is_malformed(zoo, setup):
    fault = zoo.fault(setup or "result = {}\nresult['me'] = result")

    assert fault.kind == "malformed"


def test_result_over_the_cap_is_malformed_and_not_read(zoo):
    fault = zoo.fault("result = {'big': 'x' * 3_000_000}", output_bytes=1_000_000)

    assert fault.kind == "malformed"
    assert "at most 1000000" in fault.detail


def test_state_that_is_no_object_is_malformed(zoo):
    pack = write_pack(
        zoo.folder,
        backend="""
def list_tools(): return []
def reset(*, ctx, fixtures=None): pass
def call_tool(name, arguments, *, ctx): return {}
def get_state(): return [1]
""",
    )

    async def scenario(session):
        await session.reset()
        with pytest.raises(OracleFault) as caught:
            await session.state_hash()
        return caught.value

    fault = zoo.session(scenario, pack=pack)
    assert (fault.operation, fault.kind) == ("state", "malformed")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise ValueError('no such branch')", "ValueError: no such branch"),
        ("sys.exit(0)", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("def f(): return f()\nglobals()['f'] = f\nf()", "RecursionError"),
        ("bytearray(8 << 30)", "MemoryError"),
        (
            "class Bad(Exception):\n  def __str__(self): raise KeyError\nraise Bad()",
            "Bad: (its message cannot be shown)",
        ),
    ],
)
def test_exception_of_any_kind_is_an_error_fault(zoo, code, words):
    fault = zoo.fault(code)

    assert (fault.operation, fault.kind) == ("call", "error")
    assert words in fault.detail


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("os._exit(3)", "exit 3"),
        ("os.kill(os.getpid(), signal.SIGKILL)", ""),
        ("os.kill(os.getpid(), signal.SIGABRT)", "signal 6"),
        ("os.closerange(0, 5000)", ""),
        ("import ctypes; ctypes.string_at(0)", "signal 11"),
    ],
)
def test_worker_that_ends_is_a_crash(zoo, code, words):
    fault = zoo.fault(code)

    assert (fault.operation, fault.kind) == ("call", "crashed")
    assert words in fault.detail


def test_session_is_unusable_after_a_fault(zoo):
    async def scenario(session):
        await session.reset()
        with pytest.raises(OracleFault):
            await python(session, "raise ValueError")
        with pytest.raises(OracleFault) as caught:
            await session.state()
        await session.close()
        await session.close()
        return caught.value

    assert zoo.session(scenario).kind == "session"
    assert zoo.evidence["ended"]["kind"] == "error"


@pytest.mark.parametrize(
    "code",
    [
        "import builtins; builtins.len = builtins.isinstance = builtins.dict = None",
        "import json; json.dumps = json.loads = None; json.JSONEncoder.encode = None",
        "import json.encoder as e; e.c_make_encoder = e.encode_basestring = None",
        "sys.stdout = sys.stderr = None",
        "os._exit = os.read = os.write = lambda *a: 0",
        "import hashlib; hashlib.sha256 = None",
        "sys.modules.clear()",
        "os.closerange(0, 64)",
        "sys.stdout.close()",
        "sys.setrecursionlimit(200)",
        "os.chdir('/')",
        "threading.Thread(target=time.sleep, args=(60,)).start()",
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    ],
)
def test_pack_that_spoils_its_process_spoils_no_answer(zoo, code):
    async def scenario(session):
        await session.reset()
        await python(session, f"{code}\nresult = {{'done': 1}}")
        return await session.state_hash(), (
            await session.call_tool("leak", {}, turn_index=1)
        )

    expected = (content_hash({}), {"length": 1})
    if "isinstance = builtins.dict" in code:
        # The backend itself is broken by its own deed, but says so in order.
        with pytest.raises(OracleFault) as caught:
            zoo.session(scenario)
        assert caught.value.kind == "error"
    else:
        assert zoo.session(scenario) == expected


def test_pack_code_that_forks_and_returns_twice_answers_once(zoo):
    async def scenario(session):
        await session.reset()
        first = await python(session, "os.fork(); result = {'call': 1}")
        second = await python(session, "result = {'call': 2}")
        return first, second

    assert zoo.session(scenario) == ({"call": 1}, {"call": 2})


def test_printing_changes_no_result_and_is_kept_with_a_cap(zoo):
    code = """
print("printed", flush=True)
os.write(1, b"raw out\\n")
os.write(2, b"raw err\\n")
subprocess.run(["/bin/echo", "from a child"])
os.write(1, b"x" * 1_000_000)
print("y" * 10)
result = {"ok": True}
"""

    assert zoo.python(code) == {"ok": True}
    assert zoo.evidence["output"].startswith(
        "printed\nraw out\nraw err\nfrom a child\nxxx"
    )
    assert zoo.evidence["output_truncated"]
    assert len(zoo.evidence["output"]) == 64 << 10
    assert zoo.evidence["output_bytes"] > 1_000_000


def test_output_of_a_killed_worker_is_kept(zoo):
    zoo.fault(f"print('before', flush=True)\n{FOREVER}", deadlines=HASTY)

    assert zoo.evidence["output"] == "before\n"


def test_printing_without_end_does_not_stall_the_evaluator(zoo):
    fault = zoo.fault("while True: os.write(1, b'x' * 65536)", deadlines=HASTY)

    assert fault.kind == "timeout"


def test_trace_keeps_arguments_as_they_were_sent(zoo):
    pack = write_pack(
        zoo.folder,
        backend="""
KEPT = []
def list_tools(): return []
def reset(*, ctx, fixtures=None): pass
def call_tool(name, arguments, *, ctx):
    arguments["added"] = 1
    result = {"n": 1}
    KEPT.append(result)
    for earlier in KEPT:
        earlier["n"] += 10
    return result
def get_state(): return {}
""",
        assertions="""
def assert_trace(*, state, trace, task, ctx):
    expected = [{"tool": "t", "arguments": {"x": [1]}, "result": {"n": 11},
                 "turn_index": 3},
                {"tool": "t", "arguments": {}, "result": {"n": 11}, "turn_index": 4}]
    assert trace == expected, trace
    trace.clear()
""",
    )

    async def scenario(session):
        await session.reset()
        await session.call_tool("t", {"x": [1]}, turn_index=3)
        await session.call_tool("t", {}, turn_index=4)
        return [await session.run_assertion("assert_trace", {}) for _ in range(2)]

    assert [reply.status for reply in zoo.session(scenario, pack=pack)] == [
        "passed"
    ] * 2


def test_assertion_that_leaves_the_process_is_a_fault(zoo):
    pack = write_pack(
        zoo.folder,
        assertions="import os\ndef assert_x(*, state, trace, task, ctx): os._exit(0)\n",
    )

    async def scenario(session):
        await session.reset()
        with pytest.raises(OracleFault) as caught:
            await session.run_assertion("assert_x", {})
        return caught.value

    fault = zoo.session(scenario, pack=pack)
    assert (fault.operation, fault.kind) == ("assertion", "crashed")


def test_assertion_outcomes_come_back_as_verdicts(zoo):
    pack = write_pack(
        zoo.folder,
        assertions="""
def _a(outcome):
    def check(*, state, trace, task, ctx):
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome
    return check
ASSERTIONS = {
    "passes": _a(None),
    "fails": _a(AssertionError("two books")),
    "not_here": _a({"status": "not_applicable", "detail": "no loan"}),
    "true": _a(True),
    "raises": _a(ImportError("gone")),
    "exits": _a(SystemExit(0)),
}
""",
    )
    names = ("passes", "fails", "not_here", "true", "raises", "exits", "absent")

    async def scenario(session):
        await session.reset()
        return [await session.run_assertion(name, {}) for name in names]

    replies = zoo.session(scenario, pack=pack)

    assert [(reply.status, reply.reason_code) for reply in replies] == [
        ("passed", "assertion.passed"),
        ("failed", "assertion.failed"),
        ("not_applicable", "assertion.not_applicable"),
        ("infrastructure_error", "assertion.invalid_outcome"),
        ("infrastructure_error", "assertion.exception"),
        ("infrastructure_error", "assertion.exception"),
        ("infrastructure_error", "assertion.unknown"),
    ]
    assert replies[1].detail == "two books"


def test_state_of_megabytes_is_hashed_as_the_evaluator_would(zoo):
    code = "STATE['rows'] = ['row %d é' % i for i in range(100_000)]"

    async def scenario(session):
        await session.reset()
        await python(session, code)
        return await session.state_hash(), await session.state()

    answered, state = zoo.session(scenario)
    assert answered == content_hash(state)


def test_cancelled_call_kills_the_worker(zoo):
    async def scenario(session):
        await session.reset()
        with anyio.move_on_after(0.2):
            await python(session, FOREVER)
        with pytest.raises(OracleFault) as caught:
            await session.state()
        return caught.value.kind

    assert zoo.session(scenario) == "session"
    assert zoo.evidence["ended"]["how"] == "abandoned"
