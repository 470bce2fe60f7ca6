"""The decoding that every engine applies."""

from harness.engines.protocol import Decoding

GREEDY = Decoding(
    max_tokens=8,
    temperature=0.0,
    top_p=1.0,
    top_k=None,
    stop=(),
    seed=None,
    greedy=True,
    num_beams=1,
    presence_penalty=0.0,
    frequency_penalty=0.0,
    repetition_penalty=1.0,
    no_repeat_ngram_size=0,
)
