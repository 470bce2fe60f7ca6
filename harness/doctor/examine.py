"""Sending the ten probes with the client that runs use, and what came of them.

The same requests, retries and classification as in a run, so that the endpoint is
judged as it will be judged. Nothing is written to disk.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

import anyio

from harness.candidates.chat_http import ChatHttpCandidate
from harness.candidates.request import Endpoint, PreparedRequest, prepare_request
from harness.canonical import Json
from harness.causes import EXIT_ANSWER_IS_NO, EXIT_DONE, EXIT_USAGE
from harness.doctor.probes import PROBES, Probe
from harness.doctor.verdicts import Finding, Verdict, judge
from harness.errors import CandidateError
from harness.evidence.episode import Attempt, CandidateResponse, Outcome

TIMEOUT_S: Final = 60.0
"""For one probe, all its attempts together."""
MAX_RETRIES: Final = 2
_AUTH: Final = "eval_candidate_authentication_failed"


@dataclass(frozen=True, slots=True)
class Examined:
    """One probe with its verdict."""

    probe: Probe
    finding: Finding


@dataclass(frozen=True, slots=True)
class Examination:
    """What the probes say about an endpoint."""

    base_url: str
    model: str
    served_model: str | None
    server: str | None
    """Name and version, where the server tells."""
    examined: tuple[Examined, ...]

    def count(self, verdict: Verdict) -> int:
        """Count the probes with one verdict."""
        return sum(each.finding.verdict == verdict for each in self.examined)

    @property
    def exit_status(self) -> int:
        """0 all good, 1 it will cost a model something, 2 cannot tell."""
        if self.count("costs"):
            return EXIT_ANSWER_IS_NO
        return EXIT_USAGE if self.count("cannot_tell") else EXIT_DONE


@dataclass(slots=True)
class _Memory:
    """Keeps what the client records, for as long as the examination lasts."""

    attempts: dict[str, list[Attempt]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def request(self, request: PreparedRequest) -> None:
        """Nothing to keep: the probe is known."""

    def attempt(self, request_hash: str, attempt: Attempt) -> None:
        """Keep one exchange."""
        self.attempts[request_hash].append(attempt)

    def outcome(self, outcome: Outcome) -> None:
        """Nothing to keep: the client returns it."""

    def attempts_made(self, request_hash: str) -> int:
        """Return the number of kept exchanges."""
        return len(self.attempts[request_hash])

    def last(self, request_hash: str) -> Attempt | None:
        """Return the newest exchange of a request."""
        known = self.attempts[request_hash]
        return known[-1] if known else None


async def examine(
    base_url: str,
    model: str,
    api_key: str | None,
    *,
    timeout_s: float = TIMEOUT_S,
    watch: Callable[[Probe], None] = lambda _: None,
) -> Examination:
    """Send the probes one after the other.

    After a refused key or an endpoint that is not there the rest is not sent. Raises
    CandidateError (`eval_candidate_client_invalid`) for a URL that cannot be called.
    """
    memory = _Memory()
    examined: list[Examined] = []
    responses: list[CandidateResponse] = []
    for probe in PROBES:
        if examined and _is_pointless(examined[0].finding):
            finding = Finding("cannot_tell", "not sent")
        else:
            watch(probe)
            finding, outcome = await _sent(
                probe, _endpoint(base_url, model, probe), api_key, timeout_s, memory
            )
            if outcome is not None and outcome.response is not None:
                responses.append(outcome.response)
        examined.append(Examined(probe, finding))
    return Examination(
        base_url,
        model,
        _told(each.served_model for each in responses),
        _told(each.server for each in responses),
        tuple(examined),
    )


def _told(values: Iterable[str | None]) -> str | None:
    """Return the different values that were told, None for none."""
    return ", ".join(sorted({value for value in values if value})) or None


def _is_pointless(first: Finding) -> bool:
    return first.verdict == "cannot_tell"


async def _sent(
    probe: Probe,
    endpoint: Endpoint,
    api_key: str | None,
    timeout_s: float,
    memory: _Memory,
) -> tuple[Finding, Outcome | None]:
    request = prepare_request(
        endpoint,
        task_id=f"doctor {probe.name}",
        trial=0,
        turn_index=0,
        messages=probe.messages,
        tools=probe.tools,
    )
    async with ChatHttpCandidate(
        endpoint,
        api_key,
        candidate_timeout_s=timeout_s,
        max_retries=MAX_RETRIES,
        recorder=memory,
    ) as candidate:
        try:
            outcome = await candidate.exchange(
                request, deadline=anyio.current_time() + 2 * timeout_s
            )
        except CandidateError as error:
            if error.code != _AUTH:
                raise
            return Finding("cannot_tell", f"the key is refused: {_seen(error)}"), None
    return judge(probe, outcome, memory.last(request.request_hash)), outcome


def _seen(error: CandidateError) -> str:
    return error.violations[0].actual


def _endpoint(base_url: str, model: str, probe: Probe) -> Endpoint:
    inference: dict[str, Json] = {
        "temperature": 0.0,
        "max_tokens": probe.max_tokens,
        "tool_choice": probe.tool_choice,
    }
    return Endpoint(
        alias="doctor",
        canonical_id=f"endpoint:{model}@unknown",
        provider="endpoint",
        provider_api_version="v1",
        base_url=base_url,
        model=model,
        api_key_env=None,
        inference=inference,
        echo_reasoning=False,
    )
