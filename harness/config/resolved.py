"""A config read back from what a run wrote of it, without any file of the operator.

Every kind of config that a run folder keeps states its meaning and what follows from
it; the meaning alone gives the config, and all the rest has to follow from it again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from pydantic import ValidationError

from harness.canonical import Json, json_equal
from harness.errors import EvidenceError

RESOLVED_FILE = "resolved_eval_config.json"


class Resolved(Protocol):
    """A config that states itself."""

    def resolved_document(self) -> dict[str, Json]:
        """Return the meaning and all that follows from it."""


Config = TypeVar("Config", bound=Resolved)


def rebuilt(
    payload: Json, keys: frozenset[str], from_meaning: Callable[[Json], Config]
) -> Config:
    """Rebuild a config from the document that a run wrote.

    Raises EvidenceError (`eval_artifact_invalid`) unless every field follows from the
    meaning that the document states.
    """
    if not isinstance(payload, dict) or payload.keys() != keys:
        raise _not_resolved("the keys that `run` writes", "other keys")
    try:
        config = from_meaning(payload["semantic_payload"])
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise _not_resolved("a complete meaning", f"{place}: {first['msg']}") from None
    if not json_equal(config.resolved_document(), payload):
        raise _not_resolved("hashes and verdicts that follow from it", "others")
    return config


def _not_resolved(expected: str, actual: str) -> EvidenceError:
    return EvidenceError(
        "eval_artifact_invalid",
        f"{RESOLVED_FILE} does not state one config",
        where=RESOLVED_FILE,
        expected=expected,
        actual=actual,
        recovery="use the file that the run wrote; it is never edited",
    )
