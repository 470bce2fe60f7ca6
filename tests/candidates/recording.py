"""A recorder that keeps its records in lists, and an endpoint to ask."""

import json
from datetime import UTC, datetime

import anyio

from harness.candidates.chat_http import ChatHttpCandidate
from harness.candidates.request import Endpoint, prepare_request
from harness.errors import CandidateError

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object"}},
}


class Records:
    """Everything a candidate recorded, in order."""

    def __init__(self, attempts_made=0):
        self.requests = []
        self.attempts = []
        self.outcomes = []
        self.order = []
        self._before = attempts_made

    def request(self, request):
        self.requests.append(request)
        self.order.append("request")

    def attempt(self, request_hash, attempt):
        self.attempts.append(attempt)
        self.order.append("attempt")

    def outcome(self, outcome):
        self.outcomes.append(outcome)
        self.order.append("outcome")

    def attempts_made(self, request_hash):
        return self._before + len(self.attempts)

    def as_text(self):
        """All records as the log would write them; fails if one is no UTF-8."""
        payloads = [
            *(r.head for r in self.requests),
            *(r.body.decode() for r in self.requests),
            *(a.semantic_payload() for a in self.attempts),
            *(o.semantic_payload() for o in self.outcomes),
        ]
        text = json.dumps(payloads, ensure_ascii=False, allow_nan=False)
        return text.encode("utf-8").decode("utf-8")


def endpoint(base_url="http://127.0.0.1:1/v1", **changes):
    inference = {
        "temperature": 0.0,
        "top_p": 1.0,
        "max_tokens": 256,
        "tool_choice": "auto",
        "seed": 42,
        **changes.pop("inference", {}),
    }
    fields = {
        "alias": "under-test",
        "canonical_id": "hub:scripted@provider_managed",
        "provider": "local",
        "provider_api_version": "v1",
        "base_url": base_url,
        "model": "scripted",
        "api_key_env": "SCRIPTED_KEY",
        "inference": inference,
        "echo_reasoning": False,
        **changes,
    }
    return Endpoint(**fields)


def prepared(asked, *, task_id="task-1", messages=None):
    return prepare_request(
        asked,
        task_id=task_id,
        trial=0,
        turn_index=0,
        messages=messages or [{"role": "user", "content": "How is the weather?"}],
        tools=[TOOL],
    )


class Exchanged:
    """One exchange: its outcome or error, its records, and the waits it asked for."""

    def __init__(self, records, outcome, error, waits):
        self.records = records
        self.outcome = outcome
        self.error = error
        self.waits = waits

    @property
    def statuses(self):
        return [attempt.status for attempt in self.records.attempts]


def exchange(
    base_url,
    *,
    api_key="test-key-7f3a9c41d2",
    timeout_s=20.0,
    episode_s=30.0,
    max_retries=0,
    now=NOON,
    attempts_made=0,
    transport=None,
    **changes,
):
    """Ask the endpoint once; time between attempts is noted and not spent."""
    asked = endpoint(base_url, **changes)
    records = Records(attempts_made)
    waits = []

    async def note(seconds):
        waits.append(seconds)

    async def ask():
        async with ChatHttpCandidate(
            asked,
            api_key,
            candidate_timeout_s=timeout_s,
            max_retries=max_retries,
            recorder=records,
            transport=transport,
            now=lambda: now,
            sleep=note,
        ) as candidate:
            deadline = anyio.current_time() + episode_s
            try:
                return await candidate.exchange(prepared(asked), deadline=deadline)
            except CandidateError as error:
                return error

    found = anyio.run(ask)
    is_error = isinstance(found, CandidateError)
    return Exchanged(
        records, None if is_error else found, found if is_error else None, waits
    )
