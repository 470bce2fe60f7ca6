"""A tiny model gives the same greedy tokens in this process and behind a real server.

The server is the library's own, started by `vllm_server` through its `command`: so the
life cycle is shown with a server that is not ours, and the answers with another path
from prompt to text.
"""

import sys
from dataclasses import dataclass

import anyio
import pytest

from harness.engines.chat_http import ChatHttpEngine
from harness.engines.chat_request import ChatSettings
from harness.engines.protocol import UNKNOWN
from harness.engines.vllm_server import LOCAL_BASE_URL, VllmServer, VllmServerSettings
from harness.evidence.candidate_log import CandidateLog
from tests.torch.asking import GREEDY, rows, torch_answers

START_S = 120
"""Importing the library on a machine that does other things takes half a minute."""


@dataclass
class Served:
    """What came of one start of the server."""

    generations: dict
    measured: dict
    applied: dict
    conditions: dict
    log: str


@pytest.fixture(scope="module")
def served(checkpoint, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    command = (
        *(sys.executable, "-m", "transformers.cli.transformers", "serve", "{model}"),
        *("--port", "{port}", "--host", "127.0.0.1"),
        *("--device", "cpu", "--dtype", "float32"),
    )
    settings = VllmServerSettings(
        *(checkpoint.name, "test:tiny@0", command, None, START_S, 10),
        folder / "server.log",
        folder=checkpoint.parent,
    )
    chat = ChatSettings(
        *("ours", "test:tiny@0", "transformers", "v1", LOCAL_BASE_URL, checkpoint.name),
        api_key_env=None,
        provider_extensions={},
        max_in_flight=1,
        timeout_s=60,
        max_retries=0,
    )

    async def ask(log):
        found = {}
        engine = VllmServer(
            settings, lambda wire: ChatHttpEngine(chat, None, log, transport=wire)
        )
        async with engine:
            measured = await engine.measure(rows()[:3], GREEDY)
            await engine.generate(
                rows(), GREEDY, lambda each: found.update({each.row_id: each})
            )
            return Served(
                found,
                {each.name: each for each in measured},
                dict(engine.applied()),
                dict(engine.conditions()),
                settings.log.read_text(),
            )

    with CandidateLog.open(folder / "candidate_io_cache.jsonl", writable=True) as log:
        return anyio.run(ask, log)


@pytest.mark.timeout(180)
def test_the_server_gives_the_same_greedy_tokens_as_this_process(checkpoint, served):
    here = torch_answers(checkpoint, rows())

    # This server takes the white space around a text away.
    assert {
        key: (each.text.strip(), each.generated_tokens, each.finish_reason)
        for key, each in served.generations.items()
    } == {
        key: (each.text.strip(), each.generated_tokens, each.finish_reason)
        for key, each in here.items()
    }


@pytest.mark.timeout(180)
def test_the_server_counts_the_same_prompt_tokens(checkpoint, served):
    here = torch_answers(checkpoint, rows())

    assert {key: each.prompt_tokens for key, each in served.generations.items()} == {
        key: each.prompt_tokens for key, each in here.items()
    }


@pytest.mark.timeout(180)
def test_its_first_tokens_rate_memory_and_start_are_measured(served):
    assert {
        name: each.value > 0 for name, each in served.measured.items()
    } == dict.fromkeys(
        (
            *("first_token_cold_s", "first_token_warm_s", "tokens_per_second"),
            *("peak_memory_bytes", "load_s"),
        ),
        True,
    )


@pytest.mark.timeout(180)
def test_what_it_applied_and_runs_on_is_not_claimed(served):
    assert set(served.applied.values()) == {UNKNOWN}
    assert served.conditions["engine_impl"] == UNKNOWN


@pytest.mark.timeout(180)
def test_its_log_is_kept(served):
    assert "Uvicorn running" in served.log
