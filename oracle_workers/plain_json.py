"""JSON between worker and evaluator: exact types out, nothing coerced.

Encoder and decoder are private copies of the standard ones, so pack code that
replaces `json` or its parts changes nothing here. A value that JSON would bend to
its form (a key that is no text, NaN, an object) is refused, and the refusal says
where it stands; tuples are arrays.
"""

from __future__ import annotations

import importlib.util
import math
from types import ModuleType
from typing import Any

from oracle_workers.own_builtins import OWN_BUILTINS

globals()["__builtins__"] = OWN_BUILTINS

Json = Any


class NotJsonError(Exception):
    """A value of the pack that has no JSON form; `type_name` is its Python type."""

    def __init__(self, type_name: str, detail: str) -> None:
        self.type_name = type_name
        self.detail = detail
        super().__init__(detail)


def _private_copy(name: str) -> ModuleType:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    vars(module)["__builtins__"] = OWN_BUILTINS
    spec.loader.exec_module(module)
    return module


_encoder = _private_copy("json.encoder")
_plain_encoder = _encoder.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)
_make_writer = _encoder.c_make_encoder
_string = _encoder.encode_basestring
_refuse = _plain_encoder.default
_decoder = _private_copy("json.decoder").JSONDecoder
_decode = _decoder().decode
_scan = _decoder().scan_once


def _encode_directly(value: Json) -> str:
    # What the standard encoder does after building some functions anew each time.
    write = _make_writer(
        *({}, _refuse, _string, None, ":", ","),
        *(True, False, False),
    )
    return "".join(write(value, 0))


_encode = _plain_encoder.encode if _make_writer is None else _encode_directly


def decode(data: bytes) -> Json:
    """Decode a frame of the evaluator, which is trusted."""
    return _decode(data.decode("utf-8"))


def decode_canonical(data: bytes) -> Json:
    """Decode canonical JSON bytes of this module or of the evaluator: no space."""
    return _scan(data.decode("utf-8"), 0)[0]


def encode_own(value: Json) -> bytes:
    """Return canonical JSON bytes of what was decoded here and not shown to a pack."""
    return _encode(value).encode("utf-8")


def decode_strictly(data: bytes) -> Json:
    """Decode what a stranger sent; raise NotJsonError for anything but one value.

    A repeated key, NaN, broken UTF-8 and nesting that breaks the parser are refused.
    """
    try:
        return _decode_strictly(data.decode("utf-8"))
    except RecursionError:
        raise NotJsonError("text", "nested too deep") from None
    except ValueError as error:
        raise NotJsonError("text", f"not strict JSON: {error}"[:500]) from None


def _no_repetition(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("an object repeats a key")
    return value


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not a JSON number")


_decode_strictly = _decoder(
    object_pairs_hook=_no_repetition, parse_constant=_no_constant
).decode


def encode(value: Json) -> bytes:
    """Return canonical JSON bytes of a pack's value; raise NotJsonError."""
    try:
        text = _encode(value)
        if _scan(text, 0)[0] != value:
            _refuse_bent(value, "$")
        return bytes(text.encode("utf-8"))
    except RecursionError:
        raise NotJsonError(_type_name(value), "nested too deep or circular") from None
    except UnicodeEncodeError:
        raise NotJsonError(_type_name(value), "text with a lone surrogate") from None
    except (TypeError, ValueError) as error:
        _refuse_bent(value, "$")
        raise NotJsonError(_type_name(value), str(error)[:500]) from None


def _type_name(value: object) -> str:
    return type(value).__name__


def _refuse_bent(value: Json, path: str, depth: int = 0) -> None:
    """Find the first part that JSON does not have and raise NotJsonError for it."""
    if value is None or isinstance(value, str | bool | int):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotJsonError("float", f"{value!r} at {path} is not a JSON number")
        return
    if depth > 500:
        raise NotJsonError(_type_name(value), f"nested too deep or circular at {path}")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise NotJsonError(
                    _type_name(value),
                    f"an object key at {path} is {_type_name(key)}, not text",
                )
            _refuse_bent(item, f"{path}.{key}"[:300], depth + 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _refuse_bent(item, f"{path}[{index}]"[:300], depth + 1)
    else:
        raise NotJsonError(
            _type_name(value), f"{_type_name(value)} at {path} is not a JSON value"
        )
