"""What a chat response says of itself: who answered, and which settings it applied.

Few servers tell. Those that do put the settings at the top of the envelope, as some
hosted interfaces do, or into `generation_settings`, as llama.cpp's server does. Every
setting that a response does not state is `UNKNOWN`: that a server accepted a request
says nothing about what it did with it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Final

from harness.canonical import Json
from harness.engines.protocol import UNKNOWN
from harness.evidence.episode import Attempt
from harness.strict_json import StrictJsonError, decode_document

_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "max_tokens": (
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "n_predict",
    ),
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "top_k": ("top_k",),
    "stop": ("stop",),
    "seed": ("seed",),
    "greedy": (),
    "num_beams": (),
    "presence_penalty": ("presence_penalty",),
    "frequency_penalty": ("frequency_penalty",),
    "repetition_penalty": ("repetition_penalty", "repeat_penalty"),
    "no_repeat_ngram_size": (),
}
"""Names under which servers state a setting, by the setting."""
SETTINGS: Final = tuple(_NAMES)
"""Every setting of a decoding, in order."""


def envelope_of(attempt: Attempt | None) -> dict[str, Json]:
    """Return the response that an attempt kept, or an empty object."""
    if attempt is None or attempt.raw_response is None:
        return {}
    data = attempt.raw_response.encode("utf-8")
    if attempt.raw_response_encoding == "base64":
        data = base64.b64decode(attempt.raw_response)
    try:
        document = decode_document(data, allow_bom=True)
    except StrictJsonError:
        return {}
    return document if isinstance(document, dict) else {}


def applied_settings(envelope: Mapping[str, Json]) -> dict[str, Json]:
    """Return every setting as the response states it, `UNKNOWN` where it does not."""
    places = list(_places(envelope))
    return {setting: _stated(places, names) for setting, names in _NAMES.items()}


def row_conditions(envelope: Mapping[str, Json], server: str | None) -> dict[str, Json]:
    """Return who answered this row, as far as the response says."""
    return {
        "served_model": _text(envelope.get("model")),
        "system_fingerprint": _text(envelope.get("system_fingerprint")),
        "server": server or UNKNOWN,
    }


def token_count(usage: Mapping[str, Json] | None, name: str) -> int | None:
    """Return one count of the usage, None where the endpoint does not report it."""
    count = (usage or {}).get(name)
    return count if type(count) is int and count >= 0 else None


def _places(envelope: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    verbose = envelope.get("__verbose")
    for holder in (envelope, verbose if isinstance(verbose, dict) else {}):
        settings = holder.get("generation_settings")
        if isinstance(settings, dict):
            yield settings
    yield envelope


def _stated(places: list[Mapping[str, Json]], names: tuple[str, ...]) -> Json:
    for place in places:
        for name in names:
            value = place.get(name)
            if value is not None and not isinstance(value, dict):
                return value
    return UNKNOWN


def _text(value: Json) -> str:
    return value if isinstance(value, str) and value else UNKNOWN
