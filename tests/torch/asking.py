"""Prompts, a decoding, and one call that answers rows by an engine."""

from dataclasses import replace

import anyio

from harness.engines.protocol import PromptRow
from harness.engines.torch_checkpoint import TorchSettings
from harness.engines.torch_local import TorchLocal
from tests.engines.greedy import GREEDY as ANY_ENGINE

GREEDY = replace(ANY_ENGINE, max_tokens=24)
QUESTIONS = ("What?", "Set an alarm. " * 9, "Paris", "What is the weather?", "{}")


def row(row_id, text, system=None):
    """One row with a user message."""
    messages = [{"role": "system", "content": system}] if system else []
    return PromptRow(row_id, (*messages, {"role": "user", "content": text}))


def rows():
    """Prompts of very different lengths; ids are not in the order of lengths."""
    return [row(f"row-{n}", text) for n, text in enumerate(QUESTIONS)]


def settings(checkpoint, **changes):
    """Plain settings for a checkpoint on the CPU."""
    return replace(
        TorchSettings(checkpoint, None, "cpu", "float32", 3, "test:tiny@0"), **changes
    )


def answer(engine, asked, decoding=GREEDY):
    """Return what the engine hands on, by row id and in the order of coming."""
    found = {}

    def take(generation):
        assert generation.row_id not in found
        found[generation.row_id] = generation

    async def run():
        async with engine:
            await engine.generate(asked, decoding, take)

    anyio.run(run)
    return found


def torch_answers(checkpoint, asked, decoding=GREEDY, **changes):
    """Answer rows by `torch_local`."""
    return answer(TorchLocal(settings(checkpoint, **changes)), asked, decoding)
