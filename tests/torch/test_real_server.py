"""A tiny model gives the same greedy tokens in this process and behind real servers.

One is the library's own, the other is llama.cpp's, which shares no code with it. Both
are started by `vllm_server` through its `command`: so the life cycle is shown with
servers that are not ours, and the answers with other paths from prompt to text.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from harness.engines.chat_http import ChatHttpEngine
from harness.engines.chat_request import ChatSettings
from harness.engines.protocol import UNKNOWN
from harness.engines.vllm_server import LOCAL_BASE_URL, VllmServer, VllmServerSettings
from harness.evidence.candidate_log import CandidateLog
from tests.torch.asking import GREEDY, rows, torch_answers
from tests.torch.gguf_model import convert

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


def _transformers(checkpoint, _):
    """The command of the library's server, and the name of the model in requests."""
    module = ("-m", "transformers.cli.transformers", "serve", "{model}")
    place = ("--port", "{port}", "--host", "127.0.0.1")
    numbers = ("--device", "cpu", "--dtype", "float32")
    return (sys.executable, *module, *place, *numbers), checkpoint


def _llama_cpp(checkpoint, folder):
    """The command of llama.cpp's server, and the GGUF file of the same numbers."""
    script = str(Path(__file__).parent / "llama_server.py")
    model = convert(checkpoint, folder / "tiny.gguf")
    return (sys.executable, script, "{port}", "{model}"), model


@pytest.fixture(scope="module", params=[_transformers, _llama_cpp])
def served(request, checkpoint, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    command, model = request.param(checkpoint, folder)
    settings = VllmServerSettings(
        *(model.name, "test:tiny@0", command, None, START_S, 10),
        folder / "server.log",
        folder=model.parent,
    )
    chat = ChatSettings(
        *("ours", "test:tiny@0", "local", "v1", LOCAL_BASE_URL, model.name),
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


def _answers(generations):
    """Text, count and end of each; the white space around a text and the bytes of an
    unfinished character at its end are left out, since a server may hold them back."""
    return {
        key: (
            each.text.strip().rstrip("\ufffd"),
            each.generated_tokens,
            each.finish_reason,
        )
        for key, each in generations.items()
    }


def test_the_server_gives_the_same_greedy_tokens_as_this_process(checkpoint, served):
    here = torch_answers(checkpoint, rows())

    assert _answers(served.generations) == _answers(here)


def test_the_server_counts_the_same_prompt_tokens(checkpoint, served):
    here = torch_answers(checkpoint, rows())

    assert {key: each.prompt_tokens for key, each in served.generations.items()} == {
        key: each.prompt_tokens for key, each in here.items()
    }


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


def test_what_it_runs_on_is_not_claimed(served):
    assert served.conditions["engine_impl"] == UNKNOWN


def test_its_log_is_kept(served):
    assert "127.0.0.1" in served.log
