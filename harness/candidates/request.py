"""One candidate request, encoded once: the same bytes are sent, hashed and recorded.

The body has the fields of `spec/executable-evaluator.md` 3.5 and nothing else. The
identity is a hash over the head, and the head names the body by its hash, so one
changed byte anywhere is another request.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from harness.canonical import (
    Json,
    canonical_bytes,
    canonical_json,
    hash_bytes,
    quoted,
)
from harness.errors import CandidateError, ConversationError
from harness.evidence.episode import CANDIDATE_VERSION
from harness.strict_json import decode_document

ANSWER_KEYS: Final = frozenset(
    {
        "expected_tool_calls",
        "success_assertions",
        "fixture_refs",
        "oracle_results",
        "reference_trace",
    }
)
"""Columns that hold gold: no message of a prompt has one of these keys."""

_OWN_FIELDS = frozenset(
    {
        "model",
        "messages",
        "tools",
        "tool_choice",
        "temperature",
        "top_p",
        "max_tokens",
        "seed",
    }
)
_NEVER_SENT = frozenset({"n", "stream", "stream_options"})
"""One whole completion a request is the contract, so nothing may ask for another."""
_NAMESPACE = re.compile(r"[a-z0-9][a-z0-9_]*\.v[0-9]+")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One candidate's endpoint, as the config declares it."""

    alias: str
    canonical_id: str
    """Which weights answer: `source:model@revision-or-digest`."""
    provider: str
    provider_api_version: str
    base_url: str
    """Without a trailing slash; `/chat/completions` is added."""
    model: str
    api_key_env: str | None
    """None: no Authorization header."""
    inference: dict[str, Any]
    """`temperature max_tokens tool_choice`, and optionally `top_p seed
    provider_extensions`."""
    echo_reasoning: bool


class PreparedRequest(NamedTuple):
    """A request ready to be sent, with its identity."""

    request_id: str
    """`<alias>:<task>:<trial>:<turn>`."""
    request_hash: str
    body_hash: str
    body: bytes
    """Canonical JSON, exactly as it goes over the wire."""
    task_id: str
    trial: int
    turn_index: int
    head_bytes: bytes
    """The hashed payload as canonical JSON: its hash is `request_hash`."""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    """Headers of this request alone; the head states them."""

    @property
    def head(self) -> dict[str, Json]:
        """The hashed payload: `content_hash(head) == request_hash`."""
        head: dict[str, Json] = decode_document(self.head_bytes)
        return head


def prepare_request(
    endpoint: Endpoint,
    *,
    task_id: str,
    trial: int,
    turn_index: int,
    messages: Sequence[dict[str, Any]],
    tools: Sequence[dict[str, Any]],
) -> PreparedRequest:
    """Encode one request and give it its identity; raises as `RequestWriter.write`."""
    return RequestWriter(endpoint, task_id, trial, tools).write(turn_index, messages)


class RequestWriter:
    """Writes the requests of one episode.

    They share all but the end of their messages, so what was encoded for an earlier
    one is put in front of what is new. The bytes are those of the whole body encoded
    at once.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        task_id: str,
        trial: int,
        tools: Sequence[dict[str, Any]],
        *,
        around: tuple[bytes, bytes] | None = None,
    ) -> None:
        """Write for one endpoint; `around` is what `around_messages` gave for it."""
        self._endpoint = endpoint
        self._task_id = task_id
        self._trial = trial
        self._tools = tools
        self._around = around
        """What stands before and after the messages, once it was needed."""
        self._head_start = _head_start(endpoint)
        self._messages: list[dict[str, Any]] = []
        """Messages of the last request, the very objects."""
        self._texts: list[bytes] = []
        """What each of them was encoded to."""

    def write(
        self, turn_index: int, messages: Sequence[dict[str, Any]]
    ) -> PreparedRequest:
        """Encode the request of one turn and give it its identity.

        Raises ConversationError where a message carries gold, and CandidateError for
        a provider extension that is not allowed or a body that is no JSON.
        """
        _refuse_answer_keys(messages)
        try:
            body = self._body(messages)
        except (TypeError, ValueError) as error:
            raise CandidateError(
                "eval_candidate_request_invalid",
                "the request body is not JSON in UTF-8",
                where=f"{self._task_id} trial {self._trial} turn {turn_index}",
                expected="finite numbers, text without unpaired surrogates",
                actual=type(error).__name__,
                recovery="look at the row's messages and tools",
            ) from None
        alias, task_id = self._endpoint.alias, self._task_id
        return _identified(
            self._head_start, alias, task_id, self._trial, turn_index, body
        )

    def _body(self, messages: Sequence[dict[str, Any]]) -> bytes:
        if self._around is None:
            self._around = around_messages(self._endpoint, self._tools)
        known = 0
        for old, new in zip(self._messages, messages, strict=False):
            if old is not new:
                break
            known += 1
        texts = self._texts[:known]
        texts += map(canonical_bytes, messages[known:])
        self._messages, self._texts = list(messages), texts
        before, after = self._around
        return b"".join((before, b"[", b",".join(texts), b"]", after))


def identified_request(
    endpoint: Endpoint,
    *,
    task_id: str,
    trial: int,
    turn_index: int,
    body: bytes,
    routing: tuple[str, str] | None = None,
) -> PreparedRequest:
    """Give an encoded body its identity.

    `routing` is a header, name and value in ASCII, that goes with this request alone;
    the identity covers it.
    """
    return _identified(
        _head_start(endpoint), endpoint.alias, task_id, trial, turn_index, body, routing
    )


def _head_start(endpoint: Endpoint) -> str:
    """Return the head up to the hash of the body: all that the endpoint says."""
    return (
        f'{{"base_url":{quoted(endpoint.base_url)},'
        f'"candidate_alias":{quoted(endpoint.alias)},'
        f'"canonical_model_identity":{quoted(endpoint.canonical_id)},'
        f'"model":{quoted(endpoint.model)},'
        f'"provider":{quoted(endpoint.provider)},'
        f'"provider_api_version":{quoted(endpoint.provider_api_version)},'
        f'"request_body_hash":"'
    )


def _identified(
    head_start: str,
    alias: str,
    task_id: str,
    trial: int,
    turn_index: int,
    body: bytes,
    routing: tuple[str, str] | None = None,
) -> PreparedRequest:
    body_hash = hash_bytes(body)
    request_id = f"{alias}:{task_id}:{trial}:{turn_index}"
    headers: tuple[tuple[bytes, bytes], ...] = ()
    routing_member = ""
    if routing is not None:
        name, value = routing
        text = canonical_json({"name": name, "value": value})
        routing_member = f'"routing_header":{text},'
        headers = ((name.encode("ascii"), value.encode("ascii")),)
    # The canonical JSON of twelve scalars, its names in their order.
    head_bytes = (
        f'{head_start}{body_hash}","request_id":{quoted(request_id)},{routing_member}'
        f'"schema_version":"{CANDIDATE_VERSION}","task_id":{quoted(task_id)},'
        f'"trial":{trial:d},"turn_index":{turn_index:d}}}'
    ).encode()
    return PreparedRequest(
        request_id,
        hash_bytes(head_bytes),
        body_hash,
        body,
        task_id,
        trial,
        turn_index,
        head_bytes,
        headers,
    )


def around_messages(
    endpoint: Endpoint, tools: Sequence[dict[str, Any]]
) -> tuple[bytes, bytes]:
    """Return the canonical body up to the value of `messages`, and from there on.

    Raises CandidateError for a provider extension that is not allowed.
    """
    fields = {**inference_fields(endpoint), "messages": None, "tools": list(tools)}
    first = {name: fields[name] for name in sorted(fields) if name <= "messages"}
    last = {name: value for name, value in fields.items() if name not in first}
    before = canonical_bytes(first).removesuffix(b"null}")
    return before, b"," + canonical_bytes(last)[1:]


def checked_extensions(endpoint: Endpoint) -> dict[str, Json]:
    """Return the extra body fields of the endpoint; raise CandidateError.

    Extensions stand under one namespace, `<provider>.<provider_api_version>`.
    """
    declared = endpoint.inference.get("provider_extensions")
    if not declared:
        return {}
    namespace = f"{endpoint.provider}.{endpoint.provider_api_version}"
    if list(declared) != [namespace] or _NAMESPACE.fullmatch(namespace) is None:
        raise _refused_extension(
            endpoint,
            "extensions of another provider or version",
            f"only the namespace {namespace!r}, of the form name.v1",
            ", ".join(sorted(map(str, declared))),
        )
    fields = declared[namespace]
    if not isinstance(fields, dict):
        raise _refused_extension(
            endpoint, "an extension is no mapping", "body fields", type(fields).__name__
        )
    taken = sorted(fields.keys() & (_OWN_FIELDS | _NEVER_SENT))
    if taken:
        raise _refused_extension(
            endpoint,
            "an extension sets a field that belongs to the protocol",
            f"none of {', '.join(sorted(_OWN_FIELDS | _NEVER_SENT))}",
            ", ".join(taken),
        )
    return fields


def _refused_extension(
    endpoint: Endpoint, problem: str, expected: str, actual: str
) -> CandidateError:
    return CandidateError(
        "eval_candidate_provider_extension_invalid",
        problem,
        where=f"candidates[{endpoint.alias}].inference.provider_extensions",
        expected=expected,
        actual=actual,
        recovery="correct or remove the extension",
    )


def inference_fields(endpoint: Endpoint) -> dict[str, Json]:
    """Return the body's fields that the endpoint's section states.

    Raises CandidateError for a provider extension that is not allowed.
    """
    inference = endpoint.inference
    fields: dict[str, Json] = {
        **checked_extensions(endpoint),
        "model": endpoint.model,
        "temperature": inference["temperature"],
        "max_tokens": inference["max_tokens"],
        "tool_choice": inference["tool_choice"],
    }
    for name in ("top_p", "seed"):
        if inference.get(name) is not None:
            fields[name] = inference[name]
    return fields


def _refuse_answer_keys(messages: Sequence[dict[str, Any]]) -> None:
    # Top-level keys only: deeper ones are the candidate's own words, and a candidate
    # must not be able to stop the run by naming a column.
    for position, message in enumerate(messages):
        if not ANSWER_KEYS.isdisjoint(message):
            leaked = sorted(ANSWER_KEYS & message.keys())
            raise ConversationError(
                "eval_conversation_answer_key_leak",
                "a message of the prompt carries gold",
                where=f"messages[{position}]",
                expected="no key of the answer columns",
                actual=", ".join(leaked),
                recovery="nothing was sent; report this, prompts are built by us",
            )
