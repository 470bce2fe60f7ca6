"""What one value of a config must be on its own, as types.

An error type that is a cause code becomes the code of the violation.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

MODES: Final = ("trace", "executable", "held_out_eval")
ALIAS_PATTERN: Final = r"^[a-z0-9][a-z0-9._-]{0,63}$"
_HEX_REVISION = re.compile(r"[0-9a-fA-F]{40,64}")
_DIGEST = re.compile(r"(sha256|bfcl-weight-manifest-v1):[0-9a-f]{64}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_MUTABLE: Final = frozenset(
    [
        "main",
        "master",
        "head",
        "latest",
        "dev",
        "devel",
        "develop",
        "trunk",
        "stable",
        "nightly",
        "edge",
        "tip",
        "current",
        "default",
        "release",
        "prod",
        "production",
    ]
)
_MUTABLE_PREFIXES: Final = ("refs/heads/", "refs/remotes/")
RESERVED_BODY_KEYS: Final = frozenset(
    [
        "model",
        "messages",
        "tools",
        "tool_choice",
        "temperature",
        "top_p",
        "max_tokens",
        "seed",
    ]
)


def _wrong(code: str, problem: str, expected: str) -> PydanticCustomError:
    """Build an error that carries its own code and what was expected."""
    context = {"problem": problem, "want": expected}
    return PydanticCustomError(code, "{problem}", context)


def _text(value: str) -> str:
    if not value or value != value.strip() or _CONTROL.search(value):
        raise _wrong(
            "eval_config_invalid",
            "a text is empty, padded or holds control characters",
            "a non-empty text on one line without spaces around it",
        )
    return value


def checked_base_url(value: str) -> str:
    """Return the address of an endpoint without a slash at its end.

    Raises PydanticCustomError, whose type is the code and whose context has `problem`
    and `want`; the address itself may hold a secret and is in none of them.
    """
    expected = "http:// or https://, a host, an optional port and path; nothing else"
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise _wrong("eval_config_invalid", "base_url is no URL", expected) from None
    plain = not re.search(r"[\s\x00-\x1f\x7f\\]", value)
    if not plain or parts.scheme not in {"http", "https"} or not host:
        raise _wrong("eval_config_invalid", "base_url is no HTTP endpoint", expected)
    if "@" in parts.netloc:
        raise _wrong("secret_in_eval_config", "base_url holds user info", expected)
    if "?" in value or "#" in value:
        raise _wrong(
            "eval_config_invalid", "base_url holds a query or a fragment", expected
        )
    return value.rstrip("/")


def is_pinning_revision(revision: str | None) -> bool:
    """Tell whether a revision is a full commit hash (40 to 64 hex digits)."""
    return revision is not None and _HEX_REVISION.fullmatch(revision) is not None


def _revision(value: str) -> str:
    name = value.casefold()
    if name in _MUTABLE or name.startswith(_MUTABLE_PREFIXES):
        raise _wrong(
            "candidate_revision_mutable",
            "a branch name or floating tag can point elsewhere tomorrow",
            "the full commit hash, 40 to 64 hex digits",
        )
    return value


def _digest(value: str) -> str:
    if not _DIGEST.fullmatch(value):
        raise _wrong(
            "candidate_identity_invalid",
            "a weights digest has another form",
            "`sha256:` or `bfcl-weight-manifest-v1:` and 64 lower-case hex digits",
        )
    return value


def _modes(value: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(value)) != len(value):
        raise _wrong("eval_config_invalid", "a mode repeats", "each mode at most once")
    return tuple(sorted(value, key=MODES.index))


def _supported_mode(value: object) -> object:
    if value == "held_out_eval":
        raise _unsupported("held-out evaluation")
    return value


def _unsupported(what: str) -> PydanticCustomError:
    return _wrong(
        "unsupported_eval_mode", f"{what} is not supported", "null, or no such key"
    )


def _no_held_out(value: object) -> object:
    if value is not None:
        raise _unsupported("held-out evaluation")
    return value


def _no_translation(value: object) -> object:
    if value is not None:
        raise _unsupported("a translated benchmark")
    return value


def _same_task_ids(value: object) -> object:
    if value is False:
        raise _wrong(
            "eval_publication_policy_violation",
            "candidates scored on different tasks cannot stand in one table",
            "true",
        )
    return value


Text = Annotated[str, AfterValidator(_text)]
Revision = Annotated[str, AfterValidator(_revision), AfterValidator(_text)]
Token = Annotated[str, StringConstraints(pattern=ALIAS_PATTERN)]
EnvironmentName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{0,63}$")]
Seconds = Annotated[float, Field(gt=0)]
LARGEST: Final = (1 << 53) - 1
"""Largest count: what every JSON reader and every kernel limit can hold."""
Count = Annotated[int, Field(ge=0, le=LARGEST)]
Positive = Annotated[int, Field(gt=0, le=LARGEST)]
Parallel = Annotated[int, Field(gt=0, le=4096)]
"""Episodes in flight: each may hold a socket and a worker process."""
Trials = Annotated[int, Field(gt=0, le=1_000_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Mode = Annotated[Literal["trace", "executable"], BeforeValidator(_supported_mode)]
BaseUrl = Annotated[str, AfterValidator(checked_base_url)]
Digest = Annotated[str, AfterValidator(_digest)]
Modes = Annotated[
    tuple[Mode, ...], Field(strict=False, min_length=1), AfterValidator(_modes)
]
NoHeldOut = Annotated[None, BeforeValidator(_no_held_out)]
NoTranslation = Annotated[None, BeforeValidator(_no_translation)]
SameTaskIds = Annotated[bool, AfterValidator(_same_task_ids)]
