"""Small builders: a task, a conversation with it, and the episode that it leaves."""

import json
from dataclasses import dataclass, field, replace

from harness.canonical import content_hash
from harness.conversation.dependencies import substitute
from harness.conversation.matching import match_turn
from harness.conversation.script import (
    ConversationScript,
    ScriptedCall,
    ScriptedTurn,
)
from harness.conversation.task import (
    AssertionSpec,
    Dependency,
    ExecutablePart,
    ScoringPolicy,
    TaskSpec,
    ToolPolicy,
)
from harness.evidence.episode import (
    AssertionOutcome,
    DependencyOutcome,
    Episode,
    Execution,
    ExecutionEvidence,
    ObservedTurn,
    ToolCall,
)
from harness.json_schema import compile_tools
from harness.scoring.score import score_episode

HASH = "sha256:" + "0" * 64
SOURCE = "sha256:" + "1" * 64
ORACLE = "sha256:" + "2" * 64
PLAN = "sha256:" + "3" * 64
CONFIG = "sha256:" + "4" * 64


def tool(name, properties, required=(), closed=True):
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": name,
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": list(required),
                "additionalProperties": not closed,
            },
        },
    }


TOOLS = (
    tool(
        "find",
        {
            "title": {"type": "string"},
            "limit": {"type": "integer", "default": 10},
            "exact": {"type": "boolean", "default": False},
        },
        ["title"],
    ),
    tool("status", {"book_id": {"type": "string"}}, ["book_id"]),
    tool(
        "checkout",
        {
            "book_id": {"type": "string"},
            "days": {"type": "integer", "default": 14},
            "confirm": {"type": "boolean"},
        },
        ["book_id", "days"],
    ),
)
POLICY = ScoringPolicy(
    contract_hash=HASH,
    argument_matching="schema_then_canonical",
    insert_declared_defaults=True,
    respect_call_order=True,
    respect_call_group=True,
    allow_llm_repair=False,
    task_success="all_applicable_gates",
    intermediate_text_matching="structural",
    attribution="wire-1",
)
STRICT_002 = replace(POLICY, attribution="strict-002")


def gold(name, **arguments):
    return name, arguments


def script(*turns, order="strict", prefix=None, required=None, tools=TOOLS):
    """Build a script: a list of gold calls is a call turn, a text is a text turn."""
    scripted = []
    issued = 0
    groups = 0
    for index, turn in enumerate(turns):
        calls = []
        if not isinstance(turn, str):
            for position, (name, arguments) in enumerate(turn):
                calls.append(ScriptedCall(issued, position, name, arguments, "{}"))
                issued += 1
        last = index == len(turns) - 1
        scripted.append(
            ScriptedTurn(
                turn_index=index,
                user_turn_index=0,
                call_group=groups if calls else None,
                calls=tuple(calls),
                expected_assistant_content=None if calls else turn,
                releases_user_message=None,
                is_terminal=last,
            )
        )
        groups += bool(calls)
    names = [call.function_name for turn in scripted for call in turn.calls]
    return ConversationScript(
        schema_version="1.0",
        task_id="task-1",
        source_verification_identity=SOURCE,
        seed_messages=({"role": "user", "content": "hello"},),
        tools=tuple(tools),
        turns=tuple(scripted),
        user_turns=("hello",),
        required_tools=tuple(required or dict.fromkeys(names)),
        call_order=order,
        call_order_prefix=prefix,
    )


def task(of, *, executable=None, task_id="task-1"):
    return TaskSpec(
        schema_version="1.0",
        script=replace(of, task_id=task_id),
        template_id="t",
        category=None,
        difficulty=None,
        turn_policy="single_turn",
        slot_bindings=None,
        executable=executable,
    )


def part(*assertions, dependencies=(), confirmed=(), mutating=("checkout",)):
    """Build an executable part; an assertion is a name or (name, category)."""
    specs = [(a, "unclassified") if isinstance(a, str) else a for a in assertions]
    return ExecutablePart(
        oracle_verification_identity=ORACLE,
        oracle_clock="2026-01-01T00:00:00Z",
        seed=1,
        fixture_refs=(),
        assertions=tuple(AssertionSpec(i, n, c) for i, (n, c) in enumerate(specs)),
        confirmed_call_turns=tuple(confirmed),
        dependencies=tuple(dependencies),
        tool_policies=tuple(
            ToolPolicy(
                name,
                name in mutating,
                name == "checkout",
                "confirm" if name == "checkout" else None,
            )
            for name in ("find", "status", "checkout")
        ),
        assertion_task={},
    )


def dependency(consumer, turn, path, producer, result_path="id"):
    return Dependency(
        dependency_index=0,
        consumer_call_index=consumer,
        consumer_turn_index=turn,
        consumer_position_in_turn=0,
        argument_path=(path,),
        producer_call_index=producer,
        producer_turn_index=0,
        result_path=(result_path,),
        expected_value_type="string",
    )


def resolved(declared, value, status="resolved"):
    return DependencyOutcome(
        declared.dependency_index,
        declared.consumer_call_index,
        declared.consumer_turn_index,
        declared.producer_call_index,
        status,
        value,
        f"dependency.{status}",
        "",
    )


def made(
    call_name, *, raw=None, status=None, call_id="auto", kind="function", **arguments
):
    """Build a call of the candidate; `raw` with `status` for broken arguments."""
    return ToolCall(
        index=0,
        id=call_id,
        type=kind,
        function_name=call_name,
        raw_arguments=json.dumps(arguments) if status is None else raw,
        parsed_arguments=arguments if status is None else None,
        arguments_status=status or "valid_object",
        parse_code=None if status is None else "invalid_json",
    )


@dataclass
class Answer:
    """What came back for one turn."""

    calls: tuple = ()
    text: str | None = ""
    wire_class: str | None = "ok"
    call_status: str = "completed"
    detail_code: str | None = None
    finish_reason: str | None = "stop"
    companions: tuple = ()
    executions: tuple = ()
    """For each call a status, or (status, changes); () for all `completed`."""

    @property
    def answered(self):
        return self.call_status == "completed"

    @property
    def incomplete(self):
        return self.wire_class in ("truncated", "content_filter")


def calls(*of, **more):
    numbered = tuple(
        replace(call, index=i, id=f"c{i}" if call.id == "auto" else call.id)
        for i, call in enumerate(of)
    )
    return Answer(calls=numbered, finish_reason="tool_calls", **more)


def says(text, **more):
    return Answer(text=text, **more)


def unavailable(detail="provider_unavailable", status="provider_unavailable"):
    return Answer(
        text=None,
        wire_class="transport_retryable",
        call_status=status,
        detail_code=detail,
        finish_reason=None,
    )


def malformed(detail="legacy_function_call", text=None, calls=()):
    return Answer(
        calls=calls,
        text=text,
        wire_class="candidate_malformed",
        call_status="malformed_response",
        detail_code=detail,
    )


@dataclass
class End:
    """How the episode ended, where the answers alone do not say."""

    status: str
    reason_code: str | None = None
    cause_detail: str | None = None


@dataclass
class Evidence:
    """The oracle's half of an episode."""

    assertions: tuple = ()
    """A status for each assertion that ran."""
    dependencies: tuple = ()
    state: str | None = HASH


ORACLE_FAULT = {
    "unknown_commit_state": "unknown_commit_state",
    "malformed_result": "oracle_result_malformed",
    "timeout": "oracle_timeout",
    "tool_error": "oracle_call_failed",
    "infrastructure_error": "oracle_call_failed",
}


@dataclass
class _Walk:
    """Plays answers against a task by the driver's rules."""

    spec: TaskSpec
    policy: ScoringPolicy
    evidence: Evidence | None
    turns: list = field(default_factory=list)
    executions: list = field(default_factory=list)
    issued: list = field(default_factory=list)

    def take(self, index, answer):
        """Return the end of the episode, if this turn is it."""
        turn = self.spec.script.turns[index]
        match = None
        if answer.answered and answer.detail_code != "unusable_tool_call_ids":
            match = self.match(turn, answer)
            self.issued += [call.function_name for call in answer.calls]
        fault = self.execute(index, answer) if self.evidence is not None else None
        advanced = match is not None and match.matched and fault is None
        count = len(answer.calls) if self.evidence and answer.answered else 0
        self.turns.append(
            ObservedTurn(
                turn_index=index,
                request_hash=HASH,
                call_status=answer.call_status,
                wire_class=answer.wire_class,
                detail_code=answer.detail_code,
                response_hash=HASH if answer.answered else None,
                finish_reason=answer.finish_reason,
                text=answer.text,
                tool_calls=answer.calls,
                paired_call_indexes=() if match is None else match.paired_call_indexes,
                execution_indexes=tuple(
                    range(len(self.executions) - count, len(self.executions))
                ),
                released_user_message_hash=None,
                advanced=advanced,
                matched=None if match is None else match.matched,
                companions=answer.companions,
                reason_code="turn.observed",
                detail="",
            )
        )
        if fault is not None:
            return End(fault)
        return None if advanced else self.held(answer)

    def match(self, turn, answer):
        expected = turn.calls
        if self.evidence is not None:
            expected = substitute(
                expected,
                self.spec.executable.dependencies,
                self.evidence.dependencies,
            )
        return match_turn(
            turn,
            expected,
            text=answer.text,
            tool_calls=answer.calls,
            incomplete=answer.incomplete,
            catalog=compile_tools(self.spec.script.tools),
            policy=self.policy,
            script=self.spec.script,
            issued_names=tuple(self.issued),
        )

    def held(self, answer):
        if answer.call_status == "malformed_response":
            return End("malformed_response")
        if not answer.answered:
            return End("candidate_call_failed", cause_detail=answer.detail_code)
        if answer.detail_code == "unusable_tool_call_ids":
            return End("unusable_tool_call_ids")
        if answer.incomplete:
            return End("candidate_mismatch", "episode.incomplete_finish")
        return End("candidate_mismatch")

    def execute(self, index, answer):
        if not answer.answered:
            return None
        fault = None
        for position, call in enumerate(answer.calls):
            status, changes = "completed", {}
            if answer.executions:
                status = answer.executions[position]
                if not isinstance(status, str):
                    status, changes = status
            if fault is not None or answer.incomplete:
                status = "not_executed"
            self.executions.append(
                replace(
                    execution(len(self.executions), index, position, call, status),
                    **changes,
                )
            )
            fault = fault or ORACLE_FAULT.get(status)
            if changes.get("reason_code") == "tool_execution.confirmation_not_earned":
                fault = "confirmation_not_earned"
        return fault


def execution(index, turn_index, position, call, status):
    ran = status in ("completed", "business_rejection")
    mutates = call.function_name == "checkout" and status != "not_executed"
    commit = "not_started" if status == "not_executed" else "not_applicable"
    if mutates:
        commit = "unknown" if status == "unknown_commit_state" else "committed"
    return Execution(
        execution_index=index,
        turn_index=turn_index,
        position_in_turn=position,
        provider_call_index=call.index,
        call_id=call.id,
        function_name=call.function_name,
        parsed_arguments=call.parsed_arguments,
        schema_valid=ran,
        schema_failures=(),
        status=status,
        state_commit=commit,
        state_before_hash=None,
        state_after_hash=None,
        result={"ok": True} if ran else None,
        result_hash=content_hash({"ok": True}) if ran else None,
        released_to_model=False,
        malformed_result=None,
        malformed_result_type=None,
        reason_code=f"tool_execution.{status}",
        detail="",
        duration_s=0.1,
    )


def episode(spec, *answers, policy=POLICY, end=None, evidence=None, trial=0):
    """Play `answers` against a task and return the episode that results."""
    walk = _Walk(spec, policy, evidence)
    reached = None
    for index, answer in enumerate(answers):
        assert reached is None, "the conversation is over"
        reached = walk.take(index, answer)
    end = end or reached or End("completed")
    script_of = spec.script
    return Episode(
        schema_version="1.0",
        scope="trace" if evidence is None else "trace_and_executable",
        candidate_alias="model-a",
        canonical_model_identity="hub:model-a@1",
        task_id=script_of.task_id,
        trial=trial,
        plan_identity=PLAN,
        source_verification_identity=SOURCE,
        script_hash=script_of.identity_hash(),
        status=end.status,
        reason_code=end.reason_code or f"episode.{end.status}",
        cause_detail=end.cause_detail,
        turns=tuple(walk.turns),
        events=(),
        released_user_turns=0,
        released_tool_results=0,
        execution=None
        if evidence is None
        else ExecutionEvidence(
            oracle_verification_identity=ORACLE,
            task_spec_hash=spec.identity_hash(),
            executions=tuple(walk.executions),
            dependencies=evidence.dependencies,
            assertions=tuple(
                AssertionOutcome(
                    declared.assertion_index,
                    declared.name,
                    declared.category,
                    status,
                    f"assertion.{status}",
                    "why",
                )
                for declared, status in zip(
                    spec.executable.assertions, evidence.assertions, strict=False
                )
            ),
            final_state_hash=evidence.state,
            worker={},
        ),
        attempt=1,
        replayed=False,
        duration_s=1.0,
        detail="",
    )


def score(spec, *answers, policy=POLICY, **more):
    """Play the answers and score the episode."""
    return rescore(episode(spec, *answers, policy=policy, **more), spec, policy)


def rescore(of, spec, policy=POLICY):
    return score_episode(
        of, spec, policy, eval_config_hash=CONFIG, scoring_policy_hash=HASH
    )


def outcomes(of):
    return {gate.gate: gate.outcome for gate in of.gates}


def failing(of):
    return [gate.gate for gate in of.gates if gate.outcome == "failed"]


def reasons(of):
    return {gate.gate: gate.reason_code for gate in of.gates}


def metric(of, name):
    """Return (numerator, denominator), or the reason why there is none."""
    one = next(m for m in of.metrics if m.metric == name)
    return one.not_applicable_reason or (one.numerator, one.denominator)
