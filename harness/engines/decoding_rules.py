"""Which decoding settings each engine can apply, as one table.

A rule names a setting, the engines it holds for, what they can apply, and why nothing
else. An engine refuses a whole decoding at once, before anything is loaded or sent; a
setting without a rule for an engine is applied by it. There are no other settings:
`Decoding` is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from harness.canonical import Json
from harness.engines.protocol import Decoding, Refusal

CHAT_HTTP: Final = "chat_http"
TORCH_LOCAL: Final = "torch_local"
VLLM_SERVER: Final = "vllm_server"
VLLM_OFFLINE: Final = "vllm_offline"
ENGINE_KINDS: Final = (CHAT_HTTP, TORCH_LOCAL, VLLM_SERVER, VLLM_OFFLINE)
"""Every kind of engine, in the order of the documentation."""

_ALL = frozenset(ENGINE_KINDS)
_GREEDY = frozenset({TORCH_LOCAL})
_ENDPOINT = frozenset({CHAT_HTTP})
_SAMPLING = _ALL - _GREEDY
_VLLM = frozenset({VLLM_SERVER, VLLM_OFFLINE})


@dataclass(frozen=True, slots=True)
class Rule:
    """What some engines can apply of one setting."""

    setting: str
    engines: frozenset[str]
    accepts: str
    """The accepted values in words, for messages and documentation."""
    holds: Callable[[Decoding], bool]
    reason: str


RULES: Final = (
    Rule(
        "temperature",
        _GREEDY,
        "0",
        lambda d: d.temperature == 0,
        "this engine decodes greedily",
    ),
    Rule("top_p", _GREEDY, "1", lambda d: d.top_p == 1, "there is no nucleus sampling"),
    Rule(
        "top_k",
        _GREEDY,
        "null",
        lambda d: d.top_k is None,
        "there is no top-k sampling",
    ),
    Rule(
        "top_k",
        _ENDPOINT,
        "null",
        lambda d: d.top_k is None,
        "the chat completions interface has no such field",
    ),
    Rule(
        "stop",
        _GREEDY,
        "[]",
        lambda d: not d.stop,
        "only the end tokens of the checkpoint end a text; no stop text is matched",
    ),
    Rule("greedy", _GREEDY, "true", lambda d: d.greedy, "there is no sampling"),
    Rule(
        "greedy",
        _SAMPLING,
        "true exactly where temperature is 0",
        lambda d: d.greedy == (d.temperature == 0),
        "the engine is told by the temperature alone whether to sample",
    ),
    Rule("num_beams", _ALL, "1", lambda d: d.num_beams == 1, "there is no beam search"),
    Rule(
        "presence_penalty",
        _GREEDY,
        "0",
        lambda d: d.presence_penalty == 0,
        "the library has no such penalty",
    ),
    Rule(
        "frequency_penalty",
        _GREEDY,
        "0",
        lambda d: d.frequency_penalty == 0,
        "the library has no such penalty",
    ),
    Rule(
        "repetition_penalty",
        _ENDPOINT,
        "1",
        lambda d: d.repetition_penalty == 1,
        "the chat completions interface has no such field",
    ),
    Rule(
        "no_repeat_ngram_size",
        _ENDPOINT,
        "0",
        lambda d: d.no_repeat_ngram_size == 0,
        "the chat completions interface has no such field",
    ),
    Rule(
        "no_repeat_ngram_size",
        _VLLM,
        "0",
        lambda d: d.no_repeat_ngram_size == 0,
        "vLLM has no such setting",
    ),
)
"""The whole table, by setting in the order of a decoding."""


def refusals_of(engine: str, decoding: Decoding) -> tuple[Refusal, ...]:
    """Return every setting that the kind of engine cannot apply."""
    return tuple(
        Refusal(
            engine,
            rule.setting,
            _as_json(getattr(decoding, rule.setting)),
            f"{rule.reason}; only {rule.accepts} is applied",
        )
        for rule in RULES
        if engine in rule.engines and not rule.holds(decoding)
    )


def _as_json(value: Json | tuple[str, ...]) -> Json:
    return list(value) if isinstance(value, tuple) else value
