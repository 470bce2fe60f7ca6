"""A candidate behind an OpenAI-compatible chat endpoint.

One exchange is one request, its bounded retries and its records. One deadline spans
all attempts: the request's own or what the episode has left, whichever ends first.
A request is retried only while no completion exists for it, and what was received
is recorded before anything is decided (`spec/wire-contract.md` A6,
`spec/executable-evaluator.md` 3.5).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import NoReturn, Self

import anyio
import httpx

from harness.candidates.attempts import attempt_of, interrupted_attempt, response_of
from harness.candidates.candidate import Recorder
from harness.candidates.credential import Credential
from harness.candidates.delivered import Delivered, Undelivered
from harness.candidates.delivery import Mailbox
from harness.candidates.request import Endpoint, PreparedRequest, checked_extensions
from harness.candidates.retry_timing import backoff_s
from harness.candidates.wire import Classification, classify, credential_echoed
from harness.errors import CandidateError
from harness.evidence.episode import Attempt, CallStatus, CandidateResponse, Outcome


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class _Budget:
    """When this request has to be over, on the clock of `anyio.current_time()`."""

    own: float
    episode: float

    @property
    def end(self) -> float:
        return min(self.own, self.episode)


@dataclass(slots=True)
class _Progress:
    """What one exchange has come to so far."""

    next_index: int
    retries: int = 0
    last: Classification | None = None
    response: CandidateResponse | None = None


class ChatHttpCandidate:
    """Sends prepared requests and records everything that comes of them.

    `candidate_timeout_s` spans all attempts of one request. `transport` is any
    asynchronous httpx transport and is closed with the candidate; the default one
    uses no proxy of the environment. `now` is the wall clock for records and HTTP
    dates, `sleep` how the time between attempts passes.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        api_key: str | None,
        *,
        candidate_timeout_s: float,
        max_retries: int,
        recorder: Recorder,
        transport: httpx.AsyncBaseTransport | None = None,
        now: Callable[[], datetime] = _utc_now,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        checked_extensions(endpoint)
        self._endpoint = endpoint
        self._credential = Credential(api_key)
        self._mailbox = Mailbox(endpoint.base_url, self._credential, transport)
        self._candidate_timeout_s = candidate_timeout_s
        self._max_retries = max_retries
        self._recorder = recorder
        self._now = now
        self._sleep = sleep

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self._mailbox.aclose()

    async def exchange(self, request: PreparedRequest, *, deadline: float) -> Outcome:
        """Send one request until a completion, a refusal or the end of its budget.

        `deadline` is the episode's, on the clock of `anyio.current_time()`. Raises
        CandidateError `eval_candidate_authentication_failed` after recording the
        attempt that shows it; every other end is an Outcome.
        """
        self._recorder.request(request)
        budget = _Budget(anyio.current_time() + self._candidate_timeout_s, deadline)
        made = self._recorder.attempts_made(request.request_hash)
        progress = _Progress(next_index=made)
        status: CallStatus | None = None
        with anyio.CancelScope(deadline=budget.end) as scope:
            status = await self._until_decided(request, budget, progress, scope)
        if status is None:
            is_own = budget.own < budget.episode
            status = "retry_exhausted" if is_own else "episode_deadline"
        outcome = _outcome(request.request_hash, status, progress)
        self._recorder.outcome(outcome)
        return outcome

    async def _until_decided(
        self,
        request: PreparedRequest,
        budget: _Budget,
        progress: _Progress,
        scope: anyio.CancelScope,
    ) -> CallStatus:
        """Make attempts until one decides, and return the status of the request."""
        if budget.episode <= anyio.current_time():
            return "episode_deadline"
        while True:
            found = await self._attempt(request, progress, scope)
            if not found.retryable or progress.retries >= self._max_retries:
                return found.outcome_status
            wait_s = max(
                backoff_s(
                    request.request_hash, progress.next_index - 1, progress.retries
                ),
                found.retry_after_s or 0.0,
            )
            awake_at = anyio.current_time() + wait_s
            if awake_at >= budget.own:
                return "retry_exhausted"
            if awake_at >= budget.episode:
                return "episode_deadline"
            await self._sleep(wait_s)
            progress.retries += 1

    async def _attempt(
        self,
        request: PreparedRequest,
        progress: _Progress,
        scope: anyio.CancelScope,
    ) -> Classification:
        """Make one attempt and record it, whatever ends it."""
        index = progress.next_index
        observed_at = self._now()
        started = anyio.current_time()
        try:
            delivery = await self._mailbox.post(request.body, request.headers)
        except anyio.get_cancelled_exc_class():
            cause: CallStatus = "timeout" if scope.cancel_called else "cancelled"
            attempt, progress.last = interrupted_attempt(
                index, observed_at, anyio.current_time() - started, cause
            )
            self._record(request, attempt, progress)
            raise
        found = self._judge(delivery)
        attempt = attempt_of(
            index,
            observed_at,
            anyio.current_time() - started,
            found,
            delivery,
            self._credential,
        )
        self._record(request, attempt, progress)
        progress.last = found
        if found.wire_class == "auth_fatal":
            self._stop_run(found)
        progress.response = response_of(found, attempt, delivery)
        return found

    def _record(
        self, request: PreparedRequest, attempt: Attempt, progress: _Progress
    ) -> None:
        self._recorder.attempt(request.request_hash, attempt)
        progress.next_index += 1

    def _judge(self, delivery: Delivered | Undelivered) -> Classification:
        if isinstance(delivery, Undelivered):
            return delivery.classification
        found = classify(
            delivery.status,
            delivery.headers,
            delivery.body,
            now=self._now(),
            echo_reasoning=self._endpoint.echo_reasoning,
        )
        is_kept = delivery.status == 200 or found.generated
        if (
            is_kept
            and found.wire_class != "auth_fatal"
            and self._credential.is_in(delivery.body)
        ):
            return credential_echoed()
        return found

    def _stop_run(self, refused: Classification) -> NoReturn:
        raise CandidateError(
            "eval_candidate_authentication_failed",
            "the endpoint refuses the credential",
            where=f"candidates[{self._endpoint.alias}] at {self._endpoint.base_url}",
            expected="an answer to a request with this key",
            actual=refused.note,
            recovery="check the key and its rights, then resume the run",
        )


def _outcome(request_hash: str, status: CallStatus, progress: _Progress) -> Outcome:
    last = progress.last
    return Outcome(
        request_hash=request_hash,
        status=status,
        wire_class=None if last is None else last.wire_class,
        detail_code=None if last is None else last.detail_code,
        response=progress.response,
        attempt_count=progress.next_index,
        replayed=False,
        detail="" if last is None else last.note,
    )
