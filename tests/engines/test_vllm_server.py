"""`vllm_server` serves a model for as long as it is used, and asks it over HTTP."""

import sys
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from harness.engines.chat_http import ChatHttpEngine
from harness.engines.chat_request import ChatSettings
from harness.engines.protocol import UNKNOWN, PromptRow
from harness.engines.vllm_server import (
    LOCAL_BASE_URL,
    VllmServer,
    VllmServerSettings,
    changed_fields,
    server_command,
    vllm_fields,
)
from harness.errors import EngineError, SourceError
from harness.evidence.candidate_log import CandidateLog
from tests.engines.test_decoding_rules import GREEDY
from tests.engines.test_server_process import _pids, _wait_gone

SCRIPT = str(Path(__file__).parent / "small_server.py")
CHAT = ChatSettings(
    alias="ours",
    canonical_id="test:small@0",
    provider="vllm",
    provider_api_version="v1",
    base_url=LOCAL_BASE_URL,
    model="small",
    api_key_env=None,
    provider_extensions={},
    max_in_flight=2,
    timeout_s=10,
    max_retries=0,
)
ROWS = [
    PromptRow(f"r{n}", ({"role": "user", "content": f"say {n}"},)) for n in range(5)
]


@pytest.fixture
def settings(tmp_path):
    """Builds the settings of the small server with some options."""

    def build(*options, **changes):
        command = (sys.executable, SCRIPT, "{port}", "{model}", *options)
        wanted = VllmServerSettings(
            "small", "test:small@0", command, None, 20, 5, tmp_path / "server.log"
        )
        return replace(wanted, **changes)

    return build


def _engine(settings, folder, more_fields=None):
    # The log stays open with the engine: the process that owns it is this test's.
    log = CandidateLog.open(folder / "candidate_io_cache.jsonl", writable=True)

    def client(transport):
        return ChatHttpEngine(
            CHAT, None, log, transport=transport, more_fields=more_fields
        )

    return VllmServer(settings, client), log


def _answers(settings, folder, decoding=GREEDY, rows=ROWS, more_fields=None):
    engine, log = _engine(settings, folder, more_fields)
    found = {}

    async def run():
        async with engine:
            await engine.generate(
                rows, decoding, lambda each: found.update({each.row_id: each})
            )

    with log:
        anyio.run(run)
    return found


@pytest.mark.slow
def test_rows_are_answered_by_the_started_server_which_is_gone_afterwards(
    settings, tmp_path
):
    wanted = settings()

    found = _answers(wanted, tmp_path)

    assert {row_id: each.text for row_id, each in found.items()} == {
        f"r{n}": f"SAY {n}" for n in range(5)
    }
    assert _wait_gone(_pids(wanted.log)["server"])


@pytest.mark.slow
def test_another_start_on_another_port_finds_the_recorded_answers(settings, tmp_path):
    _answers(settings(), tmp_path)

    again = _answers(settings("fatal"), tmp_path)

    assert again["r0"].text == "SAY 0"


@pytest.mark.slow
def test_rows_that_fail_as_the_server_ends_are_not_handed_on(settings, tmp_path):
    found = {}
    engine, log = _engine(settings("fatal"), tmp_path)

    async def run():
        async with engine:
            await engine.generate(
                ROWS, GREEDY, lambda each: found.update({each.row_id: each})
            )

    with log, pytest.raises(EngineError, match="the server gives up") as caught:
        anyio.run(run)

    assert caught.value.code == "eval_engine_failed"
    assert "exit status 7" in str(caught.value)
    assert found == {}


@pytest.mark.slow
def test_rows_that_a_living_server_refuses_are_handed_on_as_stops(settings, tmp_path):
    found = _answers(settings("busy"), tmp_path)

    assert len(found) == len(ROWS)
    assert all(each.stopped and each.text is None for each in found.values())


@pytest.mark.slow
def test_a_refused_row_is_too_long_where_the_servers_own_count_says_so(
    settings, tmp_path
):
    texts = {"fits": "x" * 92, "too-long": "x" * 93}
    asked = [
        PromptRow(row_id, ({"role": "user", "content": text},))
        for row_id, text in texts.items()
    ]

    found = _answers(settings("narrow"), tmp_path, GREEDY, asked)

    fits, too_long = found["fits"], found["too-long"]
    assert (fits.failure, fits.stopped) == ("provider_rejected", True)
    assert (too_long.failure, too_long.stopped) == ("context_overflow", False)
    assert (too_long.prompt_tokens, too_long.generated_tokens) == (93, 0)


@pytest.mark.slow
def test_more_fields_go_with_every_request(settings, tmp_path):
    decoding = replace(GREEDY, top_k=7, repetition_penalty=1.5)

    _answers(settings(), tmp_path, decoding, ROWS[:1], vllm_fields)

    recorded = (tmp_path / "candidate_io_cache.jsonl").read_text()
    assert r"\"top_k\": 7" in recorded
    assert r"\"repetition_penalty\": 1.5" in recorded


@pytest.mark.slow
def test_measurements_are_streamed_and_memory_is_the_servers(settings, tmp_path):
    engine, log = _engine(settings(), tmp_path)

    async def measured():
        async with engine:
            return await engine.measure(ROWS, GREEDY)

    with log:
        found = {each.name: each for each in anyio.run(measured)}

    assert list(found) == [
        *("first_token_cold_s", "first_token_warm_s", "tokens_per_second"),
        *("peak_memory_bytes", "load_s"),
    ]
    assert all(each.value > 0 for each in found.values())
    assert "streamed request" in found["first_token_warm_s"].boundary
    assert "a lower bound" in found["peak_memory_bytes"].boundary


@pytest.mark.slow
def test_rows_that_are_not_answered_are_not_measured(settings, tmp_path):
    engine, log = _engine(settings("busy"), tmp_path)

    async def measured():
        async with engine:
            return await engine.measure(ROWS, GREEDY)

    with log:
        found = {each.name: each for each in anyio.run(measured)}

    assert found["first_token_cold_s"].value is None
    assert found["tokens_per_second"].value is None


@pytest.mark.slow
def test_of_another_server_only_what_it_says_is_known(settings, tmp_path):
    engine, log = _engine(settings(), tmp_path)

    async def observed():
        async with engine:
            return engine.conditions()

    with log:
        found = anyio.run(observed)

    assert found["engine"] == "vllm_server"
    assert found["server_version"] == "small-1"
    assert {found[key] for key in ("engine_impl", "versions", "device")} == {UNKNOWN}


@pytest.mark.slow
def test_what_the_server_applied_is_unknown_unless_it_says_so(settings, tmp_path):
    engine, log = _engine(settings(), tmp_path)

    async def applied():
        async with engine:
            await engine.generate(ROWS[:1], GREEDY, lambda _: None)
        return engine.applied()

    with log:
        assert set(anyio.run(applied).values()) == {UNKNOWN}


def test_vllm_is_told_every_setting_of_its_own():
    assert vllm_fields(GREEDY) == {"top_k": -1, "repetition_penalty": 1.0}


def test_another_server_is_told_only_what_is_asked_for():
    asking = replace(GREEDY, top_k=3, repetition_penalty=1.2)

    assert changed_fields(GREEDY) == {}
    assert changed_fields(asking) == {"top_k": 3, "repetition_penalty": 1.2}


def test_the_command_of_vllm_leaves_the_checkpoints_sampling_out(
    settings, monkeypatch, tmp_path
):
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm/__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    wanted = settings(command=None, dtype="float32", arguments=("--max-num-seqs", "4"))

    command = server_command(wanted, 81)

    assert command == (
        *(sys.executable, "-m", "vllm.entrypoints.openai.api_server"),
        *("--model", "small", "--host", "127.0.0.1", "--port", "81"),
        *("--dtype", "float32", "--generation-config", "vllm", "--max-num-seqs", "4"),
    )


def test_without_vllm_and_without_a_command_the_engine_refuses(settings, tmp_path):
    engine, log = _engine(settings(command=None), tmp_path)

    async def enter():
        async with engine:
            pass

    with log, pytest.raises(EngineError, match="vllm_server needs vLLM"):
        anyio.run(enter)


def test_a_checkpoint_that_is_not_as_declared_is_not_served(settings, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    wanted = settings(model=str(tmp_path), checkpoint_sha256={"config.json": "0" * 64})
    engine, log = _engine(wanted, tmp_path)

    async def enter():
        async with engine:
            pass

    with log, pytest.raises(SourceError, match="a checkpoint file has changed"):
        anyio.run(enter)

    assert not wanted.log.exists()


def test_an_engine_is_used_inside_its_block_only(settings, tmp_path):
    engine, log = _engine(settings(), tmp_path)

    async def use():
        await engine.generate(ROWS, GREEDY, lambda _: None)

    with log, pytest.raises(RuntimeError, match="async with"):
        anyio.run(use)
