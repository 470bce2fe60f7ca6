"""Vectors are the masked mean of the last hidden states, one a text."""

import anyio
import pytest

from harness.engines.torch_embedding import TorchEmbedder
from harness.errors import EngineError
from tests.torch.asking import QUESTIONS, settings
from tests.torch.tiny_model import CONTEXT


def _embedded(checkpoint, texts, **changes):
    async def embedded():
        async with TorchEmbedder(settings(checkpoint, **changes)) as embedder:
            return await embedder.embed(texts)

    return anyio.run(embedded)


def test_a_vector_is_the_mean_over_the_tokens_of_its_text(checkpoint):
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
    model = transformers.AutoModelForCausalLM.from_pretrained(checkpoint).eval()
    tokens = torch.tensor([tokenizer(QUESTIONS[0])["input_ids"]])
    with torch.inference_mode():
        states = model(tokens, output_hidden_states=True).hidden_states[-1]

    (vector,) = _embedded(checkpoint, QUESTIONS[:1])

    assert vector == pytest.approx(states[0].mean(dim=0).tolist(), abs=1e-6)


def test_a_text_has_one_vector_in_any_batch(checkpoint):
    alone = _embedded(checkpoint, QUESTIONS, batch_size=1)
    together = _embedded(checkpoint, QUESTIONS, batch_size=8)

    for one, other in zip(alone, together, strict=True):
        assert one == pytest.approx(other, abs=1e-5)


def test_no_texts_have_no_vectors(checkpoint):
    assert _embedded(checkpoint, []) == []


@pytest.mark.parametrize("text", ["", "What? " * CONTEXT])
def test_a_text_without_tokens_or_too_long_is_refused_by_its_position(checkpoint, text):
    with pytest.raises(EngineError, match="text 1"):
        _embedded(checkpoint, ["What?", text])


def test_conditions_name_the_pooling_and_the_library(checkpoint):
    found = TorchEmbedder(settings(checkpoint)).conditions()

    assert found["pooling"].startswith("mean of the last hidden states")
    assert "torch" in found["versions"]
