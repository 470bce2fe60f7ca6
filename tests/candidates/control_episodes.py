"""Controls in real episodes: real client, real socket, real driver."""

from functools import partial

import anyio

from harness.candidates.chat_http import ChatHttpCandidate
from harness.candidates.control_server import answer
from harness.candidates.loopback_http import LOOPBACK, listen, port_of, serve
from harness.candidates.request import Endpoint
from harness.conversation.driver import EpisodeRequest, drive
from harness.conversation.execution import LiveOracle
from harness.conversation.script import script_from_row
from harness.conversation.task import TASK_SPEC_VERSION, ScoringPolicy, TaskSpec
from harness.oracle.contracts import SessionContext
from harness.scoring.reading import ScorableTask
from harness.scoring.score import score_episode
from tests.candidates.recording import Records

NO_HASH = "sha256:" + "0" * 64
DEADLINE_S = 50
MODELS_AT_ONCE = 4
POLICY = ScoringPolicy(
    contract_hash=NO_HASH,
    argument_matching="schema_then_canonical",
    insert_declared_defaults=True,
    respect_call_order=True,
    respect_call_group=True,
    allow_llm_repair=False,
    task_success="all_applicable_gates",
    intermediate_text_matching="structural",
    attribution="wire-1",
)


def script_of(row):
    return script_from_row(row, NO_HASH)


def task_of(row, executable=None):
    return ScorableTask.of(
        TaskSpec(
            schema_version=TASK_SPEC_VERSION,
            script=script_of(row),
            template_id=row.get("template_id", "by_hand"),
            category=None,
            difficulty=None,
            turn_policy=row["turn_policy"],
            slot_bindings=None,
            executable=executable,
        )
    )


def endpoint(model, base_url):
    return Endpoint(
        alias=model,
        canonical_id="control:gold@1",
        provider="openai",
        provider_api_version="v1",
        base_url=base_url,
        model=model,
        api_key_env=None,
        inference={"temperature": 0, "max_tokens": 1000, "tool_choice": "auto"},
        echo_reasoning=False,
    )


async def hold(base_url, model, tasks, host=None):
    """Return the episode of one control on each task, by task id."""
    episodes = {}
    target = endpoint(model, base_url)
    async with ChatHttpCandidate(
        target,
        None,
        candidate_timeout_s=DEADLINE_S,
        max_retries=0,
        recorder=Records(),
    ) as candidate:
        for task in tasks:
            deadline = anyio.current_time() + DEADLINE_S
            request = EpisodeRequest(
                task=task,
                endpoint=target,
                policy=POLICY,
                plan_identity=NO_HASH,
                trial=0,
                attempt=1,
                max_turns=20,
            )
            episodes[task.spec.task_id] = await drive(
                request,
                candidate,
                deadline=deadline,
                oracle=None if host is None else live_oracle(task, host, deadline),
            )
    return episodes


def live_oracle(task, host, deadline):
    part = task.spec.executable
    context = SessionContext(task.spec.task_id, part.seed, part.oracle_clock)
    opened = partial(host.open_session, context, deadline=deadline)
    return LiveOracle(opened, part, task.catalog, deadline)


async def hold_all(controls, models, tasks, host=None):
    """Serve the controls and return each model's episodes, by (model, task id)."""
    episodes = {}
    at_once = anyio.CapacityLimiter(MODELS_AT_ONCE)
    listener = await listen(0)
    base_url = f"http://{LOOPBACK}:{port_of(listener)}/v1"

    async def hold_one(model):
        async with at_once:
            held = await hold(base_url, model, tasks(model), host)
        episodes.update({(model, task_id): e for task_id, e in held.items()})

    async with listener, anyio.create_task_group() as serving:
        serving.start_soon(serve, listener, partial(answer, controls))
        async with anyio.create_task_group() as holding:
            for model in models:
                holding.start_soon(hold_one, model)
        serving.cancel_scope.cancel()
    return episodes


def score(episode, task):
    """Score one episode under the published policy."""
    return score_episode(
        episode, task, POLICY, eval_config_hash=NO_HASH, scoring_policy_hash=NO_HASH
    )


def failed_gates(episode, task):
    return {
        gate.gate for gate in score(episode, task).gates if gate.outcome == "failed"
    }
