"""Whether an executed episode is the conversation that its own evidence gives.

A trace is driven again, so nothing else can come out of it. An executed episode is
one record; what can be derived of it is derived here once more. Each request follows
from the seed, the candidate's recorded messages, the recorded results and the script's
user messages: the audit that the prompt passed when it was sent, without the prompt.
Each turn says what the candidate log says of its answer, and each dependency has the
value that its producer's recorded result holds. Messages are encoded once an episode.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from harness.candidates.request import Endpoint, PreparedRequest, RequestWriter
from harness.canonical import Json, canonical_json, content_hash, hash_bytes, json_equal
from harness.conversation.companions import turn_companions
from harness.conversation.dependencies import resolve
from harness.errors import EvidenceError
from harness.evidence.candidate_log import CandidateRecords
from harness.evidence.episode import (
    EPISODE_VERSION,
    CandidateResponse,
    Episode,
    Execution,
    ObservedTurn,
    Outcome,
    ToolCall,
)
from harness.run.call_record import contradiction
from harness.run.episode_end import (
    course,
    is_told_whole,
    possible_ends,
    turn_reason,
)
from harness.scoring.reading import ScorableTask

_SHOWN: Final = 300
_LEAD: Final = 60
"""How much is shown before a difference, in characters."""
_INTACT: Final = "bring back an intact copy of the run folder"


class EpisodeProof:
    """Derives one executed episode again from its parts."""

    def __init__(
        self,
        endpoint: Endpoint,
        task: ScorableTask,
        episode: Episode,
        outcomes: Sequence[Outcome],
        requests: CandidateRecords,
        *,
        around: tuple[bytes, bytes] | None = None,
    ) -> None:
        """Take an episode and the recorded outcome of each of its turns.

        `around` is what `around_messages` gave for endpoint and tools.
        """
        self._around = around
        self._endpoint = endpoint
        self._task = task
        self._episode = episode
        self._outcomes = outcomes
        self._requests = requests
        self._script = task.spec.script
        self._executions: tuple[Execution, ...] = (
            () if episode.execution is None else episode.execution.executions
        )
        self._results = [canonical_json(each.result) for each in self._executions]
        """What a candidate is told of each execution."""

    def check(self) -> None:
        """Raise EvidenceError for the first thing that does not follow."""
        for turn, outcome in zip(self._episode.turns, self._outcomes, strict=True):
            self._check_answer(turn, outcome)
        self._check_results()
        self._check_requests()
        self._check_releases()
        self._check_dependencies()
        self._check_executions()
        self._check_end()

    def _check_answer(self, turn: ObservedTurn, outcome: Outcome) -> None:
        response = outcome.response
        scripted = self._script.turns[turn.turn_index]
        derived: dict[str, object] = {
            "reason_code": turn_reason(turn, scripted),
            "call_status": outcome.status,
            "wire_class": outcome.wire_class,
            "detail_code": outcome.detail_code,
            "response_hash": None,
            "finish_reason": None,
            "text": None,
            "companions": (),
        }
        if response is not None:
            derived["response_hash"] = response.identity_hash()
            derived["finish_reason"] = response.finish_reason
            derived["text"] = response.text
            derived["companions"] = self._companions(turn, response)
        for name, value in derived.items():
            self._equal(turn, name, value, getattr(turn, name))
        calls = () if response is None else response.tool_calls
        if len(calls) != len(turn.tool_calls) or not all(
            map(_same_call, calls, turn.tool_calls)
        ):
            ours, theirs = _calls_text(calls), _calls_text(turn.tool_calls)
            raise self._refusal(f"{self._place(turn)}, tool_calls", ours, theirs)

    def _companions(
        self, turn: ObservedTurn, response: CandidateResponse
    ) -> tuple[str, ...]:
        return turn_companions(
            response,
            expects_calls=self._script.turns[turn.turn_index].expects_calls,
            tool_names=self._task.catalog.names,
            max_tokens=self._endpoint.inference.get("max_tokens"),
        )

    def _check_results(self) -> None:
        for execution, text in zip(self._executions, self._results, strict=True):
            stated = execution.result_hash
            if stated is not None and stated != hash_bytes(text.encode("utf-8")):
                raise self._refusal(
                    f"{self._episode_place()}, execution {execution.execution_index}",
                    f"the result of {stated}",
                    text,
                    problem="result_hash is not the hash of the result",
                )

    def _check_requests(self) -> None:
        messages = list(self._script.seed_messages)
        writer = RequestWriter(
            self._endpoint,
            self._script.task_id,
            self._episode.trial,
            self._script.tools,
            around=self._around,
        )
        for index, turn in enumerate(self._episode.turns):
            if index:
                messages += self._handed_over(index - 1)
            prepared = writer.write(turn.turn_index, messages)
            if prepared.request_hash != turn.request_hash:
                raise self._unaccounted(turn, prepared, messages)

    def _handed_over(self, index: int) -> list[dict[str, Any]]:
        """Return what one answered turn adds to the prompt of the next."""
        turn, response = self._episode.turns[index], self._outcomes[index].response
        message = None if response is None else response.message
        if message is None:
            raise self._refusal(
                self._place(turn), "an answer before the next request", "none"
            )
        found = [message]
        for execution_index in turn.execution_indexes:
            execution = self._executions[execution_index]
            found.append(
                {
                    "role": "tool",
                    "tool_call_id": execution.call_id,
                    "content": self._results[execution_index],
                }
            )
        spoken = self._script.turns[index].releases_user_message
        if spoken is not None:
            found.append({"role": "user", "content": spoken})
        return found

    def _check_releases(self) -> None:
        """Compare what the episode says that it released with what it sent on."""
        episode = self._episode
        users = results = 0
        for index, turn in enumerate(episode.turns):
            scripted = self._script.turns[index]
            asked_on = index + 1 < len(episode.turns)
            spoken = scripted.releases_user_message if asked_on else None
            users += spoken is not None
            results += len(turn.execution_indexes) if asked_on else 0
            told = turn.advanced and not scripted.is_terminal
            self._equal(
                turn,
                "released_user_message_hash",
                None if spoken is None else content_hash(spoken),
                turn.released_user_message_hash,
            )
            for each in turn.execution_indexes:
                name = f"execution {each}, released_to_model"
                self._equal(turn, name, told, self._executions[each].released_to_model)
        if (users, results) != (
            episode.released_user_turns,
            episode.released_tool_results,
        ):
            raise self._refusal(
                self._episode_place(),
                f"{users} released user messages and {results} released results",
                f"{episode.released_user_turns} and {episode.released_tool_results}",
            )

    def _check_dependencies(self) -> None:
        part, execution = self._task.spec.executable, self._episode.execution
        if part is None or execution is None or not part.dependencies:
            return
        results: dict[int, list[Any]] = {}
        found: list[Json] = []
        failed = self._episode.status == "dependency_resolution_failed"
        asked = len(self._episode.turns) + failed
        for scripted in self._script.turns[:asked]:
            outcomes = resolve(part.dependencies, scripted, results, self._task.catalog)
            found += [each.identity_payload() for each in outcomes]
            if scripted.turn_index < len(self._episode.turns):
                self._remember(self._episode.turns[scripted.turn_index], results)
        stated = [each.identity_payload() for each in execution.dependencies]
        if not json_equal(found, stated):
            raise self._refusal(
                f"{self._episode_place()}, dependencies",
                canonical_json(found),
                canonical_json(stated),
            )

    def _check_executions(self) -> None:
        part = self._task.spec.executable
        policies = () if part is None else part.tool_policies
        mutating = {each.function_name for each in policies if each.mutates}
        for execution in self._executions:
            mutates = execution.function_name in mutating
            found = contradiction(execution, mutates=mutates)
            if found:
                raise self._refusal(
                    f"{self._episode_place()}, execution {execution.execution_index}",
                    "what one call can come to",
                    found,
                    problem="an execution contradicts itself",
                )

    def _check_end(self) -> None:
        """Hold the status to what brings it about, and the events to the course."""
        episode = self._episode
        if episode.schema_version != EPISODE_VERSION:
            place = f"{self._episode_place()}, schema_version"
            raise self._refusal(place, EPISODE_VERSION, episode.schema_version)
        scripted = len(self._script.turns)
        ends = possible_ends(episode, self._outcomes, scripted)
        found = (episode.status, episode.reason_code, episode.cause_detail)
        known = [(end.status, end.reason_code, end.cause_detail) for end in ends]
        if found not in known:
            raise self._refusal(
                f"{self._episode_place()}, status",
                " or ".join(f"{end.status} ({end.reason_code})" for end in ends),
                f"{episode.status} ({episode.reason_code})",
                problem="an episode did not end as its own parts say",
            )
        part = self._task.spec.executable
        declared = 0 if part is None else len(part.assertions)
        if not is_told_whole(episode, declared):
            raise self._refusal(
                f"{self._episode_place()}, assertions",
                f"what a status {episode.status} leaves to tell",
                "another number of them, or a state",
                problem="an episode did not end as its own parts say",
            )
        expected = list(course(episode, self._outcomes, self._script))
        events = [(e.kind, e.turn_index, e.reason_code) for e in episode.events]
        numbers = [event.event_index for event in episode.events]
        if events != expected or numbers != list(range(len(events))):
            raise self._refusal(
                f"{self._episode_place()}, events",
                canonical_json(expected),
                canonical_json(events),
                problem="the events are not those of the episode's course",
            )

    def _remember(self, turn: ObservedTurn, results: dict[int, list[Any]]) -> None:
        if not turn.advanced:
            return
        for gold, index in zip(
            turn.paired_call_indexes, turn.execution_indexes, strict=True
        ):
            if gold is not None:
                results.setdefault(gold, []).append(self._executions[index].result)

    def _unaccounted(
        self,
        turn: ObservedTurn,
        prepared: PreparedRequest,
        messages: Sequence[dict[str, Any]],
    ) -> EvidenceError:
        """Name the first part of a recorded request that nothing accounts for."""
        part, expected, actual = "", prepared.request_hash, turn.request_hash
        try:
            recorded = self._requests.request_of(turn.request_hash)
        except EvidenceError:
            recorded = None
        if isinstance(recorded, dict):
            part, expected, actual = _first_difference(prepared, messages, recorded)
        return EvidenceError(
            "eval_request_unaccounted",
            "a request does not follow from the script and what was recorded before it",
            where=f"candidate_io_cache.jsonl, request {prepared.request_id}{part}",
            expected=_from_difference(expected, actual),
            actual=_from_difference(actual, expected),
            recovery="the candidate was asked something else than the benchmark asks; "
            f"do not use the run, or {_INTACT}",
        )

    def _equal(
        self, turn: ObservedTurn, name: str, ours: object, theirs: object
    ) -> None:
        if ours != theirs:
            raise self._refusal(f"{self._place(turn)}, {name}", str(ours), str(theirs))

    def _refusal(
        self,
        where: str,
        expected: str,
        actual: str,
        *,
        problem: str = "an episode and the candidate log tell two stories",
    ) -> EvidenceError:
        return EvidenceError(
            "eval_tool_trace_cache_invalid",
            problem,
            where=where,
            expected=expected[:_SHOWN],
            actual=actual[:_SHOWN],
            recovery=_INTACT,
        )

    def _episode_place(self) -> str:
        episode = self._episode
        return (
            f"candidate {episode.candidate_alias}, task {episode.task_id}, "
            f"trial {episode.trial}"
        )

    def _place(self, turn: ObservedTurn) -> str:
        return f"{self._episode_place()}, turn {turn.turn_index}"


def _from_difference(text: str, other: str) -> str:
    """Return the stretch of a text where it begins to differ from another."""
    pairs = zip(text, other, strict=False)
    common = next((i for i, (own, their) in enumerate(pairs) if own != their), None)
    if common is None:
        common = min(len(text), len(other))
    begin = max(0, common - _LEAD)
    return ("..." if begin else "") + text[begin : begin + _SHOWN]


def _same_call(ours: ToolCall, theirs: ToolCall) -> bool:
    # `==` alone takes 1, 1.0 and true for one value.
    return (
        ours == theirs
        and json_equal(ours.parsed_arguments, theirs.parsed_arguments)
        and json_equal(ours.raw_arguments, theirs.raw_arguments)
    )


def _calls_text(calls: Sequence[ToolCall]) -> str:
    return canonical_json([call.semantic_payload() for call in calls])


def _first_difference(
    prepared: PreparedRequest,
    messages: Sequence[dict[str, Any]],
    recorded: dict[str, Json],
) -> tuple[str, str, str]:
    """Return place, expected and actual text of the first difference."""
    body = recorded.get("body")
    sent = body.get("messages") if isinstance(body, dict) else None
    if isinstance(sent, list):
        for index in range(max(len(sent), len(messages))):
            ours = canonical_json(messages[index]) if index < len(messages) else "none"
            theirs = canonical_json(sent[index]) if index < len(sent) else "none"
            if ours != theirs:
                return f", messages[{index}]", ours, theirs
    head = recorded.get("head")
    own = prepared.head
    if isinstance(head, dict):
        for name in sorted(own.keys() | head.keys()):
            if name != "request_body_hash" and own.get(name) != head.get(name):
                return f", head.{name}", str(own.get(name)), str(head.get(name))
    return ", the fields beside its messages", prepared.body_hash, "another body"
