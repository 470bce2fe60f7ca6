"""The measuring programs do what their figures claim."""

import http.client
import json
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.canonical import json_equal
from harness.conversation.script import script_from_row
from harness.json_schema import compile_tools
from harness.strict_json import decode_object
from perf.measure import MeasurementError, measure
from perf.workload import (
    CALLS_PER_EPISODE,
    REQUESTS_PER_EPISODE,
    SYSTEM,
    TOOLS,
    Bank,
    facts,
    reply,
    row,
    user_turns,
)

PERF = Path(__file__).parent.parent.parent / "perf"
DEADLINE_S = 20
NO_HASH = "sha256:" + "0" * 64
BUSY = "import time\nwhile time.process_time() < 0.2: pass"


@contextmanager
def endpoint(*options):
    with subprocess.Popen(
        [sys.executable, str(PERF / "endpoint.py"), *options], stdout=subprocess.PIPE
    ) as process:
        try:
            url = json.loads(process.stdout.readline())["url"]
            yield int(url.split(":")[2].split("/")[0])
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(DEADLINE_S) == 0


def call(connection, method, path, body=None):
    connection.request(method, path, None if body is None else json.dumps(body))
    return json.loads(connection.getresponse().read())


def hold(connection, episode):
    """Hold one episode as a driver would; return the finished messages."""
    bank = Bank(episode)
    first, second = user_turns(episode)
    messages = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": first},
    ]
    for answered in range(REQUESTS_PER_EPISODE):
        body = {"model": "w", "messages": messages, "tools": TOOLS}
        said = call(connection, "POST", "/v1/chat/completions", body)
        message = said["choices"][0]["message"]
        messages.append(message)
        for made in message.get("tool_calls", ()):
            function = made["function"]
            planned = next(
                c
                for c in reply(facts(episode), answered).calls
                if c.name == function["name"]
            )
            assert json_equal(decode_object(function["arguments"]), planned.arguments)
            content = json.dumps(bank.answer(planned))
            messages.append(
                {"role": "tool", "tool_call_id": made["id"], "content": content}
            )
        if answered == 1:
            messages.append({"role": "user", "content": second})
    return messages


@pytest.mark.slow
def test_endpoint_answers_whole_episodes_and_counts_them():
    with endpoint() as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
        conversations = [hold(connection, episode) for episode in (0, 17, 499)]
        stats = call(connection, "GET", "/stats")
        connection.close()

    assert [len(messages) for messages in conversations] == [10, 10, 10]
    assert (stats["requests"], stats["connections"]) == (3 * REQUESTS_PER_EPISODE, 1)


@pytest.mark.slow
def test_latency_delays_without_blocking():
    body = {"model": "w", "messages": [{"role": "user", "content": "hello"}]}
    with endpoint("--latency", "0.1") as port:
        pair = [
            http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
            for _ in range(2)
        ]
        for connection in pair:
            connection.request("POST", "/v1/chat/completions", json.dumps(body))
        for connection in pair:
            connection.getresponse().read()
        stats = call(pair[0], "GET", "/stats")
        for connection in pair:
            connection.close()

    assert stats["max_in_flight"] == 2


@pytest.mark.parametrize("episode", [0, 9, 10, 123, 99_999])
def test_row_of_the_workload_reads_as_a_script(episode):
    published = row(episode)
    script = script_from_row(published, NO_HASH)
    catalog = compile_tools(published["tools"])

    assert len(script.turns) == REQUESTS_PER_EPISODE
    assert len(script.gold_calls) == CALLS_PER_EPISODE
    assert [
        catalog.failures(call.function_name, call.arguments)
        for call in script.gold_calls
    ] == [()] * CALLS_PER_EPISODE
    assert not any('"error"' in call.recorded_result for call in script.gold_calls)


@pytest.mark.slow
def test_measure_counts_what_the_command_leaves_behind():
    orphan = (
        "import subprocess, sys; "
        f"subprocess.Popen([sys.executable, '-c', {BUSY!r}], start_new_session=True)"
    )

    usage = measure([sys.executable, "-c", orphan])

    assert usage.exit_status == 0
    assert usage.cpu_s >= 0.2


@pytest.mark.slow
def test_measure_reports_the_exit_status_and_memory():
    usage = measure([sys.executable, "-c", "x = bytearray(2**26); raise SystemExit(3)"])

    assert usage.exit_status == 3
    assert usage.peak_process_bytes > 2**26


@pytest.mark.slow
def test_measure_gives_up_on_what_does_not_end():
    with pytest.raises(MeasurementError):
        measure([sys.executable, "-c", "import signal; signal.pause()"], timeout_s=0.1)


def test_measure_names_a_command_that_is_not_there():
    with pytest.raises(MeasurementError, match="no-such-command"):
        measure(["no-such-command"])


@pytest.mark.slow
def test_startup_prints_ratios_and_imports_nothing_heavy():
    done = subprocess.run(
        [sys.executable, str(PERF / "startup.py"), "-n", "1", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    payload = json.loads(done.stdout)

    assert (done.returncode, payload["heavy"]) == (0, [])
    assert payload["ratio"] > 0


@pytest.mark.slow
def test_evidence_measures_a_reader_beside_the_floor():
    words = ["floor", "verify", "--episodes", "500", "--json"]
    done = subprocess.run(
        [sys.executable, str(PERF / "evidence.py"), *words],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures.keys() == {"bytes", "floor", "verify"}
    assert figures["verify"]["episodes"] == [250, 500]
    assert figures["verify"]["episodes_per_cpu_s"] > 0
