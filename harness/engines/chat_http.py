"""`chat_http`: single-turn predictions of any OpenAI-compatible chat endpoint.

The client is that of candidates, so wire classes, retries, deadlines and evidence are
those of episodes: what was received is recorded before it is read, and a completion is
never sampled again. A row that got no answer for a reason that is not the model's is a
stop: it may be asked again, and a prompt that the endpoint refuses for its length is
none, since it would be refused again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Final, Self

import anyio
import httpx

from harness.candidates.chat_http import ChatHttpCandidate
from harness.candidates.credential import Credential
from harness.candidates.recovery import recovered_outcome
from harness.candidates.request import PreparedRequest
from harness.canonical import Json, hash_bytes
from harness.engines.chat_readback import (
    SETTINGS,
    applied_settings,
    envelope_of,
    row_conditions,
    token_count,
)
from harness.engines.chat_request import (
    ChatSettings,
    decoding_fields,
    extension_fields,
    row_request,
)
from harness.engines.decoding_rules import CHAT_HTTP, refusals_of
from harness.engines.measuring import (
    COLD_START,
    PEAK_MEMORY,
    TOKENS_PER_SECOND,
    WARM_START,
    first_token_figures,
    upper_median,
)
from harness.engines.protocol import (
    CONTEXT_OVERFLOW,
    UNKNOWN,
    Decoding,
    Generation,
    Measurement,
    PromptRow,
    Refusal,
)
from harness.engines.stream_timing import time_first_texts
from harness.errors import first_own
from harness.evidence.candidate_log import CandidateLog
from harness.evidence.episode import Attempt, Outcome
from harness.evidence.traffic_order import is_completion

_TOO_LONG: Final = "context_length"
_START_BOUNDARY: Final = (
    "from sending a streamed request, after the rows were answered, to the first text "
    "of its answer: network, queueing and prefill included, one request in flight"
)
_RATE_BOUNDARY: Final = (
    "completion tokens that the endpoint reports, by the seconds from sending a "
    "request to its whole answer: network, queueing and prefill included, "
    "up to {in_flight} requests in flight"
)


class ChatHttpEngine:
    """Asks one endpoint for rows; opens its client on entry and closes it on exit.

    `subject` numbers whom the rows are asked for, so that two subjects with equal
    prompts are asked apart. `transport` replaces the default one, as for candidates.
    `more_fields` gives the fields that a known server takes beyond the interface.
    """

    def __init__(
        self,
        settings: ChatSettings,
        api_key: str | None,
        log: CandidateLog,
        *,
        subject: int = 0,
        transport: httpx.AsyncBaseTransport | None = None,
        more_fields: Callable[[Decoding], Mapping[str, Json]] | None = None,
    ) -> None:
        self.settings = settings
        self._more_fields = more_fields
        self._endpoint = settings.endpoint()
        self._extensions = extension_fields(self._endpoint)
        self._api_key = api_key
        self._log = log
        self._subject = subject
        self._transport = transport
        self._client: ChatHttpCandidate | None = None
        self._applied: dict[str, Json] = dict.fromkeys(SETTINGS, UNKNOWN)

    @property
    def name(self) -> str:
        """The kind of engine."""
        return CHAT_HTTP

    @property
    def measures_fresh(self) -> bool:
        """Rates are read off recorded answers, so rows are answered first."""
        return False

    def refusals(self, decoding: Decoding) -> tuple[Refusal, ...]:
        """Return every setting that the interface has no field for."""
        return refusals_of(self.name, decoding)

    def fields(self, decoding: Decoding) -> dict[str, Json]:
        """Return the body of a request without model and messages."""
        more = {} if self._more_fields is None else self._more_fields(decoding)
        return {
            **self._extensions,
            **decoding_fields(decoding, self.settings.max_tokens_field),
            **more,
        }

    async def __aenter__(self) -> Self:
        self._client = ChatHttpCandidate(
            self._endpoint,
            self._api_key,
            candidate_timeout_s=self.settings.timeout_s,
            max_retries=self.settings.max_retries,
            recorder=self._log,
            transport=self._transport,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._client is not None:
            await self._client.__aexit__(kind, error, trace)
            self._client = None

    async def generate(
        self,
        rows: Sequence[PromptRow],
        decoding: Decoding,
        take: Callable[[Generation], None],
    ) -> None:
        """Ask for every row, a bounded number at once.

        Raises CandidateError where the endpoint refuses the credential.
        """
        fields = self.fields(decoding)
        waiting = iter(rows)
        try:
            async with anyio.create_task_group() as group:
                for _ in range(min(self.settings.max_in_flight, len(rows))):
                    group.start_soon(self._ask_all, waiting, fields, take)
        except BaseExceptionGroup as failures:
            raise first_own(failures) from None

    async def _ask_all(
        self,
        waiting: Iterator[PromptRow],
        fields: Mapping[str, Json],
        take: Callable[[Generation], None],
    ) -> None:
        for row in waiting:
            request = row_request(self._endpoint, row, self._subject, fields)
            take(self._generation(row, await self._outcome(request)))

    async def _outcome(self, request: PreparedRequest) -> Outcome:
        """Return what is recorded of a request and final, else ask."""
        if self._client is None:
            raise RuntimeError("the engine is used outside its `async with` block")
        if self._log.knows(request.request_hash):
            known = self._log.outcome_of(request.request_hash)
            if known is not None and _is_final(known):
                return known
            received = recovered_outcome(
                request.request_hash,
                self._log.attempts_of(request.request_hash),
                echo_reasoning=False,
            )
            if received is not None:
                self._log.outcome(received)
                return received
        return await self._client.exchange(request, deadline=math.inf)

    def recorded(self, row: PromptRow, decoding: Decoding) -> Generation | None:
        """Return what the recorded exchange of a row gives, None without one.

        A received body is read again. Raises EvidenceError for one that no longer
        reads as was recorded.
        """
        fields = self.fields(decoding)
        request = row_request(self._endpoint, row, self._subject, fields)
        outcome = self._log.outcome_of(request.request_hash)
        if outcome is None:
            return None
        attempts = self._log.attempts_of(request.request_hash)
        received = recovered_outcome(
            request.request_hash, attempts, echo_reasoning=False
        )
        return self._generation(row, received or outcome)

    def _generation(self, row: PromptRow, outcome: Outcome) -> Generation:
        attempt = self._attempt_of(outcome)
        envelope = envelope_of(attempt)
        response = outcome.response
        text, failure, stopped = _answer(outcome)
        usage = None if response is None else response.usage
        applied = applied_settings(envelope)
        if response is not None:
            self._applied = applied
        return Generation(
            row_id=row.row_id,
            text=text,
            finish_reason=None if failure is not None else _finish_reason(outcome),
            failure=failure,
            prompt_tokens=token_count(usage, "prompt_tokens"),
            generated_tokens=token_count(usage, "completion_tokens"),
            elapsed_s=None if attempt is None else attempt.latency_s,
            conditions=row_conditions(
                envelope, None if response is None else response.server
            ),
            applied=applied if response is not None else None,
            stopped=stopped,
        )

    def _attempt_of(self, outcome: Outcome) -> Attempt | None:
        """Return the attempt that brought the answer, None for a row without one."""
        response = outcome.response
        if response is None:
            return None
        for attempt in self._log.attempts_of(outcome.request_hash):
            if attempt.attempt_index == response.selected_attempt:
                return attempt
        return None

    def applied(self) -> Mapping[str, Json]:
        """Return what the newest response states; every answer carries its own."""
        return self._applied

    def conditions(self) -> Mapping[str, Json]:
        """Return what is known of an endpoint: where it is, and no more."""
        return {
            "engine": self.name,
            "provider": self.settings.provider,
            "provider_api_version": self.settings.provider_api_version,
            "endpoint_hash": hash_bytes(self.settings.base_url.encode()),
            "model_identity": self.settings.canonical_id,
            "requested_model": self.settings.model,
            "max_in_flight": self.settings.max_in_flight,
            "device": UNKNOWN,
            "weight_dtype": UNKNOWN,
            "compute_dtype": UNKNOWN,
            "versions": UNKNOWN,
        }

    async def measure(
        self, rows: Sequence[PromptRow], decoding: Decoding
    ) -> tuple[Measurement, ...]:
        """Time first texts by streamed requests of their own, one after the other.

        The rate is that of recorded answers. Whether an endpoint was cold cannot be
        known, and its memory cannot be seen.
        """
        fields = self.fields(decoding)
        rates = [
            rate
            for row in rows
            if (rate := self._recorded_rate(row, fields)) is not None
        ]
        starts = await self._starts(rows, fields)
        return (*starts, self._rate(rates), _unseen_memory())

    async def _starts(
        self, rows: Sequence[PromptRow], fields: Mapping[str, Json]
    ) -> tuple[Measurement, ...]:
        if self._transport is not None:
            return _unmeasured_starts("not measured: the transport is the caller's own")
        seconds = await time_first_texts(
            self.settings.base_url,
            [self.body(row, fields) for row in rows],
            self.settings.timeout_s,
            Credential(self._api_key).headers(),
        )
        _, warm = first_token_figures(seconds, _START_BOUNDARY)
        return (_unmeasured_cold(), warm)

    def body(self, row: PromptRow, fields: Mapping[str, Json]) -> dict[str, Json]:
        """Return what a row is asked with; `fields` are those of its decoding."""
        messages = [dict(message) for message in row.messages]
        return {**fields, "model": self.settings.model, "messages": messages}

    def _recorded_rate(
        self, row: PromptRow, fields: Mapping[str, Json]
    ) -> float | None:
        request = row_request(self._endpoint, row, self._subject, fields)
        outcome = self._log.outcome_of(request.request_hash)
        if outcome is None or outcome.response is None:
            return None
        tokens = token_count(outcome.response.usage, "completion_tokens")
        attempt = self._attempt_of(outcome)
        if tokens is None or attempt is None or attempt.latency_s <= 0:
            return None
        return tokens / attempt.latency_s

    def _rate(self, rates: Sequence[float]) -> Measurement:
        boundary = _RATE_BOUNDARY.format(in_flight=self.settings.max_in_flight)
        rate = upper_median(rates)
        words = (
            f"{boundary}; upper median of {len(rates)} recorded rows"
            if rate is not None
            else f"not measured: no answer with a token count; {boundary}"
        )
        return Measurement(TOKENS_PER_SECOND, rate, "tokens/s", words)


def _is_final(outcome: Outcome) -> bool:
    return is_completion(outcome) or outcome.detail_code == _TOO_LONG


def _answer(outcome: Outcome) -> tuple[str | None, str | None, bool]:
    """Return text, failure and whether the row was stopped by no fault of a model."""
    if outcome.response is None:
        if outcome.detail_code == _TOO_LONG:
            return None, CONTEXT_OVERFLOW, False
        return None, outcome.detail_code or outcome.status, True
    text = outcome.response.text
    if outcome.wire_class in ("ok", "truncated") and text is not None:
        return text, None, False
    return None, outcome.detail_code or "malformed_response", False


def _finish_reason(outcome: Outcome) -> str | None:
    """Return the reason; every word for a cut generation is `length`."""
    if outcome.wire_class == "truncated":
        return "length"
    return None if outcome.response is None else outcome.response.finish_reason


def _unmeasured_starts(reason: str) -> tuple[Measurement, ...]:
    return tuple(Measurement(n, None, "s", reason) for n in (COLD_START, WARM_START))


def _unmeasured_cold() -> Measurement:
    reason = "not measured: whether an endpoint was cold cannot be known from here"
    return Measurement(COLD_START, None, "s", reason)


def _unseen_memory() -> Measurement:
    return Measurement(
        PEAK_MEMORY,
        None,
        "bytes",
        "not measured: the memory of an endpoint cannot be seen from here",
    )
