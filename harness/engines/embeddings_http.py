"""Texts as vectors from any OpenAI-compatible `/embeddings` endpoint.

Statuses, retries, waits and the credential are those of chat endpoints; a 200 whose
body is not one finite vector a text is a broken envelope and may be asked again.
What a comparator does with the vectors is not decided here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Final, Self

import anyio
import httpx

from harness.candidates.credential import Credential
from harness.candidates.delivered import Undelivered
from harness.candidates.delivery import Mailbox
from harness.candidates.retry_timing import backoff_s
from harness.candidates.wire import classify
from harness.canonical import Json, canonical_bytes, hash_bytes
from harness.engines.chat_request import ChatSettings, extension_fields
from harness.engines.protocol import UNKNOWN
from harness.errors import CandidateError, EngineError
from harness.strict_json import StrictJsonError, decode_document

EMBEDDINGS_HTTP: Final = "embeddings_http"
_LARGEST: Final = 1 << 53


@dataclass(frozen=True, slots=True)
class _Refused:
    """An exchange that brought no vectors."""

    detail: str
    retryable: bool
    retry_after_s: float | None = None


class EmbeddingsHttp:
    """Asks one endpoint for vectors, batch by batch; closes its client on exit."""

    def __init__(
        self,
        settings: ChatSettings,
        api_key: str | None,
        *,
        batch_size: int,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.settings = settings
        self.batch_size = batch_size
        self._fields = extension_fields(settings.endpoint())
        self._credential = Credential(api_key)
        self._transport = transport
        self._mailbox: Mailbox | None = None
        self._served: str = UNKNOWN

    @property
    def name(self) -> str:
        """The kind of engine."""
        return EMBEDDINGS_HTTP

    async def __aenter__(self) -> Self:
        self._mailbox = Mailbox(
            self.settings.base_url, self._credential, self._transport, "/embeddings"
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._mailbox is not None:
            with anyio.CancelScope(shield=True):
                await self._mailbox.aclose()
            self._mailbox = None

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text, in the order of the texts, in one request.

        Raises CandidateError where the endpoint refuses the credential and EngineError
        where it gives no vectors in `timeout_s`.
        """
        body = canonical_bytes(
            {
                **self._fields,
                "encoding_format": "float",
                "input": list(texts),
                "model": self.settings.model,
            }
        )
        last = "timeout"
        with anyio.move_on_after(self.settings.timeout_s):
            for retry in range(self.settings.max_retries + 1):
                found = await self._exchange(body, len(texts))
                if not isinstance(found, _Refused):
                    return found
                last = found.detail
                if not found.retryable or retry == self.settings.max_retries:
                    break
                own_s = backoff_s(hash_bytes(body), retry, retry)
                await anyio.sleep(max(own_s, found.retry_after_s or 0.0))
        raise self._failure(last)

    async def _exchange(self, body: bytes, count: int) -> list[list[float]] | _Refused:
        if self._mailbox is None:
            raise RuntimeError("the engine is used outside its `async with` block")
        delivery = await self._mailbox.post(body)
        if isinstance(delivery, Undelivered):
            classified = delivery.classification
        elif delivery.status == 200:
            return self._vectors(delivery.body, count)
        else:
            classified = classify(
                delivery.status, delivery.headers, delivery.body, now=datetime.now(UTC)
            )
        if classified.wire_class == "auth_fatal":
            raise CandidateError(
                "eval_candidate_authentication_failed",
                "the endpoint refuses the credential",
                where=f"engine {self.settings.alias} at {self.settings.base_url}",
                expected="an answer to a request with this key",
                actual=classified.note,
                recovery="check the key and its rights, then resume the run",
            )
        detail = classified.detail_code or classified.wire_class
        return _Refused(detail, classified.retryable, classified.retry_after_s)

    def _vectors(self, body: bytes, count: int) -> list[list[float]] | _Refused:
        """Read the vectors; nothing is filled in or put into another order."""
        broken = _Refused("envelope_malformed", retryable=True)
        try:
            envelope = decode_document(body, allow_bom=True)
        except StrictJsonError:
            return broken
        data = envelope.get("data") if isinstance(envelope, dict) else None
        if not isinstance(data, list) or len(data) != count:
            return broken
        by_index = {
            entry.get("index"): entry.get("embedding")
            for entry in data
            if isinstance(entry, dict) and type(entry.get("index")) is int
        }
        vectors = [by_index.get(index) for index in range(count)]
        if not all(map(_is_vector, vectors)):
            return broken
        served = envelope.get("model")
        self._served = served if isinstance(served, str) and served else UNKNOWN
        return [[float(number) for number in vector] for vector in vectors if vector]

    def _failure(self, detail: str) -> EngineError:
        return EngineError(
            "eval_engine_failed",
            "the endpoint gives no embeddings",
            where=f"engine {self.settings.alias} at {self.settings.base_url}",
            expected="one vector of finite numbers for each text",
            actual=detail,
            recovery="look at the endpoint, then resume the run",
        )

    def conditions(self) -> Mapping[str, Json]:
        """Return what is known of the endpoint."""
        return {
            "engine": self.name,
            "provider": self.settings.provider,
            "provider_api_version": self.settings.provider_api_version,
            "endpoint_hash": hash_bytes(self.settings.base_url.encode()),
            "model_identity": self.settings.canonical_id,
            "requested_model": self.settings.model,
            "served_model": self._served,
            "device": UNKNOWN,
            "compute_dtype": UNKNOWN,
            "versions": UNKNOWN,
        }


def _is_vector(value: Json) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(map(_is_number, value))
        and any(value)
    )


def _is_number(value: Json) -> bool:
    if type(value) is int:
        return abs(value) <= _LARGEST
    return type(value) is float and math.isfinite(value)
