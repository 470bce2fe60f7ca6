"""Control candidates: scripted models that see what a model sees.

A request is answered from its messages and tools alone. The task is found by the
visible prefix: what system and user said and what the control itself answered; how
many answers there are says which turn it is. Tasks that share a prefix share the
next gold step, so a control may take any of them; it takes one where its mistake is
due, so that no task that the mistake touches is answered as gold. Everything in a
response follows from the request and the seed: same request, same bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from harness.candidates.control_answers import (
    CLOSING_TEXT,
    Answer,
    Plan,
    PlannedCall,
    gold_answers,
)
from harness.candidates.control_conversation import (
    Conversation,
    Opening,
    Said,
    SaidCall,
    UnreadableConversationError,
    canonical_arguments,
    opening_of,
    read_conversation,
)
from harness.candidates.control_policies import (
    CONTROL_NAMES,
    Mode,
    failed_gates,
    open_gates,
    plan_of,
)
from harness.candidates.control_task import ControlTask, read_tasks
from harness.candidates.control_values import live_arguments
from harness.canonical import Json, canonical_bytes, canonical_json, content_hash
from harness.strict_json import decode

CREATED_AT = 1_700_000_000
"""`created` of every response: a constant, since a clock would change the bytes."""
CHARACTERS_PER_TOKEN = 4
"""Of the stated usage; controls have no tokenizer."""


class Response(NamedTuple):
    """An HTTP status and the JSON object that goes with it."""

    status: int
    payload: dict[str, Json]


@dataclass(frozen=True, slots=True)
class Expectation:
    """What an evaluator must say of one control on one task."""

    touched: bool
    mistake_turn: int | None
    failed: frozenset[str]
    """Gates that fail; all other applicable gates pass, but for the open ones."""
    open: frozenset[str]
    """Gates that pack code decides."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One control in the role of one task."""

    task: ControlTask
    plan: Plan | None

    @property
    def answers(self) -> Sequence[Answer]:
        return gold_answers(self.task) if self.plan is None else self.plan.answers

    def errs_at(self, turn_index: int) -> bool:
        return self.plan is not None and self.plan.mistake_turn == turn_index


class ControlCandidate:
    """All controls over the rows of one benchmark."""

    def __init__(self, rows: Iterable[dict[str, Json]], *, seed: int = 0) -> None:
        self.seed = seed
        self.tasks = {task.task_id: task for task in read_tasks(rows)}
        self._openings: dict[Opening, list[ControlTask]] = defaultdict(list)
        for task_id in sorted(self.tasks):
            task = self.tasks[task_id]
            self._openings[opening_of(task.script.seed_messages)].append(task)
        self._parts: dict[tuple[str, str], _Part] = {}

    @cached_property
    def models(self) -> dict[str, Json]:
        """Return the payload of `GET /v1/models`."""
        data = [
            {
                "id": name,
                "object": "model",
                "created": CREATED_AT,
                "owned_by": "fairtrial",
            }
            for name in CONTROL_NAMES
        ]
        return {"object": "list", "data": data}

    def respond(self, model: str, body: dict[str, Json]) -> Response:
        """Answer one chat-completions request as the control that `model` names."""
        if model not in CONTROL_NAMES:
            return refusal(
                404,
                f"no control is called {model!r}; there are {', '.join(CONTROL_NAMES)}",
                param="model",
                code="model_not_found",
            )
        try:
            conversation = read_conversation(body.get("messages"))
        except UnreadableConversationError as error:
            return refusal(400, str(error), param=error.where)
        part = self._part_in(model, conversation, body.get("tools"))
        if part is None:
            return refusal(
                400,
                "the conversation is not one of this benchmark's: serve the controls "
                "over the benchmark that is evaluated, and send its messages unchanged",
                param="messages",
                code="unknown_conversation",
            )
        return Response(200, self._completion(model, body, part, conversation))

    def expectation(self, model: str, task_id: str, mode: Mode) -> Expectation:
        """Return what an evaluator must say, tasks with one prefix considered.

        Raises KeyError for an unknown control or task.
        """
        task = self.tasks[task_id]
        plan = self._plan_met_by(model, task)
        return Expectation(
            touched=plan is not None,
            mistake_turn=None if plan is None else plan.mistake_turn,
            failed=failed_gates(task, plan, mode),
            open=open_gates(task, plan, mode),
        )

    def _plan_met_by(self, model: str, task: ControlTask) -> Plan | None:
        """Walk the gold conversation of a task to the mistake it meets, if any."""
        for turn in task.turns:
            conversation = _gold_conversation(task, turn.turn_index)
            tools = list(task.script.tools)
            part = self._part_in(model, conversation, tools)
            if part is not None and part.errs_at(turn.turn_index):
                return part.plan
        return None

    def _part_in(
        self, model: str, conversation: Conversation, tools: Json
    ) -> _Part | None:
        turn_index = len(conversation.answers)
        fitting = [
            part
            for task in self._openings.get(conversation.opening, ())
            if _users_fit(part := self._part(model, task), conversation)
            and _answers_fit(part, conversation)
        ]
        if len(fitting) > 1:
            fitting.sort(
                key=lambda part: (
                    list(part.task.script.tools) != tools,
                    not _results_fit(part.task, conversation),
                    not part.errs_at(turn_index),
                )
            )
        return fitting[0] if fitting else None

    def _part(self, model: str, task: ControlTask) -> _Part:
        key = (model, task.task_id)
        part = self._parts.get(key)
        if part is None:
            part = _Part(task, plan_of(model, task, self.seed))
            self._parts[key] = part
        return part

    def _completion(
        self,
        model: str,
        body: dict[str, Json],
        part: _Part,
        conversation: Conversation,
    ) -> dict[str, Json]:
        digest = content_hash([self.seed, body]).removeprefix("sha256:")
        turn_index = len(conversation.answers)
        answer = _planned(part, turn_index)
        message = _message(part.task, answer, conversation, digest[:16])
        prompt = len(canonical_bytes([body.get("messages"), body.get("tools")]))
        completion = len(canonical_bytes(message))
        usage = {
            "prompt_tokens": prompt // CHARACTERS_PER_TOKEN,
            "completion_tokens": completion // CHARACTERS_PER_TOKEN,
        }
        return {
            "id": f"chatcmpl-{digest[:24]}",
            "object": "chat.completion",
            "created": CREATED_AT,
            "model": model,
            "system_fingerprint": f"control-{self.seed}",
            "choices": [
                {
                    "index": 0,
                    "message": message,
                    "finish_reason": answer.finish_reason,
                    "logprobs": None,
                }
            ],
            "usage": {**usage, "total_tokens": sum(usage.values())},
        }


def refusal(
    status: int, message: str, *, param: str | None = None, code: str | None = None
) -> Response:
    """Return an error in the form that OpenAI-compatible servers use."""
    error = {
        "message": message,
        "type": "server_error" if status >= 500 else "invalid_request_error",
        "param": param,
        "code": code,
    }
    return Response(status, {"error": error})


def _users_fit(part: _Part, conversation: Conversation) -> bool:
    scripted = part.task.script.user_turns
    return conversation.users == scripted[: len(conversation.users)]


def _answers_fit(part: _Part, conversation: Conversation) -> bool:
    """Tell whether the earlier answers are those that this part gave."""
    return all(
        _said_as_planned(part, said, conversation, index)
        for index, said in enumerate(conversation.answers)
    )


def _said_as_planned(
    part: _Part, said: Said, conversation: Conversation, turn_index: int
) -> bool:
    """Compare one earlier answer with the plan.

    The words of a text turn do not count: tasks that share a prefix may word the same
    step differently, and the other task's words may have been said.
    """
    answer = _planned(part, turn_index)
    if not answer.calls:
        return not said.calls and bool(said.text) == bool(answer.text.strip())
    spoken = [(call.name, call.arguments) for call in said.calls]
    planned = [
        (
            call.name,
            canonical_arguments(
                _argument_text(part.task, call, conversation, turn_index)
            ),
        )
        for call in answer.calls
    ]
    if part.task.script.call_order == "any":
        return sorted(spoken) == sorted(planned)
    return spoken == planned


def _planned(part: _Part, turn_index: int) -> Answer:
    answers = part.answers
    return answers[turn_index] if turn_index < len(answers) else Answer(CLOSING_TEXT)


def _results_fit(task: ControlTask, conversation: Conversation) -> bool:
    """Tell whether the tool messages are those that the gold run recorded."""
    return all(
        turn.turn_index >= len(conversation.answers)
        or conversation.result_of(
            turn.turn_index,
            call.position_in_group,
            call.function_name,
            canonical_json(call.arguments),
        )
        == decode(call.recorded_result)
        for turn in task.turns
        for call in turn.calls
    )


def _message(
    task: ControlTask, answer: Answer, conversation: Conversation, key: str
) -> dict[str, Json]:
    if not answer.calls:
        return {"role": "assistant", "content": answer.text}
    turn_index = len(conversation.answers)
    tool_calls = [
        {
            "id": f"call_{key}_{0 if answer.repeats_ids else position}",
            "type": "function",
            "function": {
                "name": call.name,
                "arguments": _argument_text(task, call, conversation, turn_index),
            },
        }
        for position, call in enumerate(answer.calls)
    ]
    return {
        "role": "assistant",
        "content": answer.text or None,
        "tool_calls": tool_calls,
    }


def _argument_text(
    task: ControlTask, call: PlannedCall, conversation: Conversation, turn_index: int
) -> str:
    text = canonical_json(live_arguments(task, call, conversation, turn_index))
    return f"{text[:-1]},}}" if call.is_broken else text


def _gold_conversation(task: ControlTask, turn_index: int) -> Conversation:
    """Return what a gold candidate of this task has before one turn."""
    past = task.turns[:turn_index]
    users = task.turns[turn_index].user_turn_index + 1
    return Conversation(
        system=opening_of(task.script.seed_messages)[0],
        users=task.script.user_turns[:users],
        answers=tuple(
            Said(
                (turn.expected_assistant_content or "").strip(),
                tuple(
                    SaidCall(
                        str(call.call_index),
                        call.function_name,
                        canonical_json(call.arguments),
                    )
                    for call in turn.calls
                ),
            )
            for turn in past
        ),
        results=tuple(
            {str(call.call_index): call.recorded_result or "" for call in turn.calls}
            for turn in past
        ),
    )
