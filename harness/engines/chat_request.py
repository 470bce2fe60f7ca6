"""One row as one request to a chat endpoint, encoded once, with its identity.

The body holds the model, the messages and every decoding setting that the interface
has a field for; no tools. Settings at the value that means "not used" are sent all the
same, so that no default of a server decides. The hash has the same form as that of an
episode's request, so one kind of log keeps both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from harness.candidates.request import (
    Endpoint,
    PreparedRequest,
    checked_extensions,
)
from harness.canonical import Json, canonical_bytes, hash_bytes
from harness.engines.protocol import Decoding, PromptRow
from harness.errors import CandidateError
from harness.evidence.episode import CANDIDATE_VERSION

MaxTokensField = Literal["max_tokens", "max_completion_tokens"]
DECODING_FIELDS: Final = frozenset(
    {
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "top_p",
        "top_k",
        "stop",
        "seed",
        "presence_penalty",
        "frequency_penalty",
        "repetition_penalty",
        "no_repeat_ngram_size",
        "num_beams",
        "best_of",
        "tools",
        "tool_choice",
    }
)
"""Body fields that no extension may set: they would change the decoding unseen."""


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """Where and how a chat endpoint is asked."""

    alias: str
    canonical_id: str
    """Which weights answer: `source:model@revision-or-digest`."""
    provider: str
    provider_api_version: str
    base_url: str
    """The address before `/chat/completions`."""
    model: str
    api_key_env: str | None
    """Name of the environment variable with the key; None: no Authorization."""
    provider_extensions: Mapping[str, Any]
    """More body fields under `<provider>.<provider_api_version>`."""
    max_in_flight: int
    timeout_s: float
    """One row, all its attempts together."""
    max_retries: int
    max_tokens_field: MaxTokensField = "max_tokens"

    def endpoint(self) -> Endpoint:
        """Return the endpoint as the client of candidates takes it."""
        return Endpoint(
            alias=self.alias,
            canonical_id=self.canonical_id,
            provider=self.provider,
            provider_api_version=self.provider_api_version,
            base_url=self.base_url,
            model=self.model,
            api_key_env=self.api_key_env,
            inference={"provider_extensions": dict(self.provider_extensions)},
            echo_reasoning=False,
        )


def decoding_fields(
    decoding: Decoding, max_tokens_field: MaxTokensField
) -> dict[str, Json]:
    """Return the decoding as the fields that every chat endpoint has."""
    fields: dict[str, Json] = {
        max_tokens_field: decoding.max_tokens,
        "temperature": decoding.temperature,
        "top_p": decoding.top_p,
        "presence_penalty": decoding.presence_penalty,
        "frequency_penalty": decoding.frequency_penalty,
    }
    if decoding.stop:
        fields["stop"] = list(decoding.stop)
    if decoding.seed is not None:
        fields["seed"] = decoding.seed
    return fields


def extension_fields(endpoint: Endpoint) -> dict[str, Json]:
    """Return the endpoint's extra body fields.

    Raises CandidateError for an extension that is not allowed or that would set what
    belongs to the decoding.
    """
    fields = checked_extensions(endpoint)
    taken = sorted(fields.keys() & DECODING_FIELDS)
    if taken:
        raise CandidateError(
            "eval_candidate_provider_extension_invalid",
            "an extension sets what belongs to the decoding",
            where=f"engine {endpoint.alias}, provider_extensions",
            expected="settings of decoding in the section `decoding` only",
            actual=", ".join(taken),
            recovery="remove the field, or set it under `decoding`",
        )
    return fields


def row_request(
    endpoint: Endpoint, row: PromptRow, subject: int, fields: Mapping[str, Json]
) -> PreparedRequest:
    """Encode the request of one row; `fields` is all of the body but model and text.

    `subject` is the number of the subject that is asked, from 0; it stands where an
    episode has its trial. Raises CandidateError for text that UTF-8 cannot hold.
    """
    try:
        body = canonical_bytes(
            {
                **fields,
                "model": endpoint.model,
                "messages": [dict(message) for message in row.messages],
            }
        )
        head = canonical_bytes(_head(endpoint, row, subject, hash_bytes(body)))
    except (TypeError, ValueError) as error:
        raise CandidateError(
            "eval_candidate_request_invalid",
            "a row's request is not JSON in UTF-8",
            where=ascii(row.row_id),
            expected="text without unpaired surrogates",
            actual=type(error).__name__,
            recovery="mend the row's input",
        ) from None
    return PreparedRequest(
        request_id=_request_id(endpoint, row, subject),
        request_hash=hash_bytes(head),
        body_hash=hash_bytes(body),
        body=body,
        task_id=row.row_id,
        trial=subject,
        turn_index=0,
        head_bytes=head,
    )


def _request_id(endpoint: Endpoint, row: PromptRow, subject: int) -> str:
    return f"{endpoint.alias}:{row.row_id}:{subject}:0"


def _head(
    endpoint: Endpoint, row: PromptRow, subject: int, body_hash: str
) -> dict[str, Json]:
    return {
        "schema_version": CANDIDATE_VERSION,
        "request_id": _request_id(endpoint, row, subject),
        "candidate_alias": endpoint.alias,
        "canonical_model_identity": endpoint.canonical_id,
        "task_id": row.row_id,
        "trial": subject,
        "turn_index": 0,
        "provider": endpoint.provider,
        "provider_api_version": endpoint.provider_api_version,
        "base_url": endpoint.base_url,
        "model": endpoint.model,
        "request_body_hash": body_hash,
    }
