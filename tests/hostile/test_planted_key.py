"""A planted key, searched for in every byte that a run leaves behind."""

import gzip
import json
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.runs import Published
from tests.hostile.traces import Watch, shows, spellings, traces_in
from tests.hostile.tricks import read_tricks
from tests.run.gold_server import CountingControl
from tests.servers import Reply, completion, json_reply

ROOT = Path(__file__).parent.parent.parent
VARIABLE = "FAIRTRIAL_PLANTED_KEY"
SEARCHING = [t for t in read_tricks() if t.name == "searches-for-a-key"]
REQUESTS_PER_EPISODE = 4

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A published pack that searches for a key when it is told to."""
    return Published(tmp_path_factory.mktemp("planted"), SEARCHING)


@pytest.fixture
def key():
    """A key that nobody has seen before, with letters that get escaped."""
    return f'sk-{secrets.token_hex(12)}/"+{secrets.token_hex(12)}'


class Command:
    """`fairtrial run` with the key in its environment and all its output kept."""

    def __init__(self, hostile, key, place):
        self.hostile = hostile
        self.key = key
        self.place = place
        self.watch = Watch(key)
        self.process = None

    def start(self, *words):
        """Start it; everything that it may write lies in one folder."""
        homes = {name: str(self.place / name) for name in ("HOME", "TMPDIR")}
        for folder in homes.values():
            Path(folder).mkdir()
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
            VARIABLE: self.key,
            **homes,
        }
        config = str(self.hostile.folder / "eval.yaml")
        with (
            (self.place / "stdout").open("wb") as out,
            (self.place / "stderr").open("wb") as err,
        ):
            self.process = subprocess.Popen(
                [sys.executable, "-m", "harness.cli", "run", config, *words],
                stdout=out,
                stderr=err,
                cwd=self.place,
                env=environment,
            )
        self.watch.command = self.process.pid

    def finish(self):
        """Wait for its end; return the exit status and what shows the key."""
        status = self.process.wait(60)
        output = self.hostile.output
        output.rename(self.place / "run")
        # The replies that a test serves lie nowhere; all else of the run is here.
        return status, [*self.watch.traces, *traces_in(self.place, self.key)]

    def text(self):
        """What it printed."""
        return (self.place / "stderr").read_text() + (self.place / "stdout").read_text()


@pytest.fixture
def command(hostile, key, tmp_path):
    """A command that was not started yet; it is over after the test."""
    command = Command(hostile, key, tmp_path)
    yield command
    if command.process is not None and command.process.poll() is None:
        command.process.kill()
        command.process.wait()


def echoes(key):
    """Replies in which a server gives the key away, each in another way."""
    text = json.dumps(key)[1:-1]
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in key)
    body = completion(f"your key is {key}").body
    refusal = {"error": {"message": f"the key {key} is not welcome"}}
    named = {"Content-Type": "application/json"}
    return [
        completion(f"your key is {key}"),
        completion(key, finish_reason="length"),
        completion(calls=[{"id": key, "type": "function", "function": {}}]),
        Reply(200, named, body.replace(text.encode(), escaped.encode())),
        Reply(200, {**named, "Content-Encoding": "gzip"}, gzip.compress(body)),
        Reply(200, named, body, fault="content_length_short", send_bytes=len(body) - 9),
        Reply(200, named, b"<p>" + key.encode() + b"</p>"),
        Reply(200, {**named, "X-Request-Id": key, "Server": key}, b"{}"),
        json_reply(refusal, status=400),
        json_reply(refusal, status=429, Retry_After=key),
        json_reply(refusal, status=503),
        json_reply(refusal, status=404),
        Reply(307, {"Location": f"http://127.0.0.1:9/{key}"}),
        Reply(raw=f"HTTP/1.1 {key} {key}\r\n\r\n".encode()),
        Reply(raw=f"{key}\r\n".encode(), close=True),
    ]


def test_key_is_in_nothing_that_a_run_with_an_echoing_server_leaves(
    hostile, key, command
):
    replies = echoes(key)

    def disturb(number):
        command.watch.look()
        # Every second episode is answered in full, and the next one is disturbed.
        episode = disturb.episode
        if episode < len(replies) and disturb.left == 0:
            disturb.episode += 1
            disturb.left = REQUESTS_PER_EPISODE
            return replies[episode]
        disturb.left -= disturb.left > 0
        return None

    disturb.episode, disturb.left = 0, 0
    control = CountingControl(hostile.folder / "benchmark", disturb)
    with control.served() as server:
        hostile.config(
            server.url,
            trick="searches-for-a-key",
            key=VARIABLE,
            changes={
                ("eval", "trials"): 2 * len(replies),
                ("limits", "max_stops"): 1000,
                ("limits", "candidate_timeout_s"): 5.0,
            },
        )
        command.start("--json")
        status, traces = command.finish()

    log = (command.place / "run" / "tool_trace_cache.jsonl").read_text()
    assert status == 9, command.text()
    assert disturb.episode == len(replies)
    assert traces == []
    # The search would have seen it: workers were looked at, and all was read.
    assert len(command.watch.seen) > len(replies)
    assert command.watch.memories or os.getuid()
    assert log.count('"escaped":false') > 2
    assert '"escaped":true' not in log
    assert "credential_echoed" in log
    assert {r.headers["authorization"] for r in server.requests} == {f"Bearer {key}"}


@pytest.mark.parametrize("words", [(), ("--json",)], ids=["text", "json"])
def test_key_is_not_in_the_error_of_a_run_whose_server_refuses_it(
    hostile, key, command, words
):
    refusal = {"error": {"message": f"Incorrect API key provided: {key}"}}
    reply = json_reply(refusal, status=401, WWW_Authenticate=f"Bearer {key}")
    control = CountingControl(hostile.folder / "benchmark", lambda _: reply)
    with control.served() as server:
        hostile.config(server.url, key=VARIABLE)
        command.start(*words)
        status, traces = command.finish()

    assert status == 5, command.text()
    assert "eval_candidate_authentication_failed" in command.text()
    assert traces == []


def test_key_is_in_nothing_that_an_interrupted_run_leaves(hostile, key, command):
    def interrupt(number):
        command.watch.look()
        if number == REQUESTS_PER_EPISODE + 1:
            command.process.send_signal(signal.SIGINT)
            return Reply(fault="hang")
        return None

    control = CountingControl(hostile.folder / "benchmark", interrupt)
    with control.served() as server:
        hostile.config(server.url, key=VARIABLE, changes={("eval", "trials"): 3})
        command.start()
        status, traces = command.finish()

    assert status == 130, command.text()
    assert traces == []
    assert command.watch.seen


def test_search_finds_a_key_in_every_spelling(tmp_path, key):
    for number, spelling in enumerate(spellings(key)):
        (tmp_path / str(number)).write_bytes(b"before " + spelling + b" after")
    (tmp_path / "packed").write_bytes(gzip.compress(key.encode()))
    (tmp_path / "innocent").write_bytes(b"sk-" + b"0" * 60)

    found = {Path(path).name for path in traces_in(tmp_path, key)}

    assert found == {*map(str, range(len(spellings(key)))), "packed"}
    assert not shows(b"sk-", key)
