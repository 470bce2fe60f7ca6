"""What the controls declare is what the driver and the scorer find.

Every control holds every hand-built conversation over a real socket, in trace mode,
through the real candidate client.
"""

import itertools

import anyio
import pytest

from harness.candidates.chat_http import ChatHttpCandidate
from harness.candidates.control import ControlCandidate
from harness.candidates.control_policies import CONTROL_NAMES
from harness.candidates.control_server import answer
from harness.candidates.loopback_http import LOOPBACK, listen, port_of, serve
from harness.candidates.request import Endpoint
from harness.conversation.driver import EpisodeRequest, drive
from harness.conversation.script import script_from_row
from harness.conversation.task import TASK_SPEC_VERSION, ScoringPolicy, TaskSpec
from harness.scoring.reading import ScorableTask
from harness.scoring.score import score_episode
from tests.candidates.control_rows import ROWS
from tests.candidates.recording import Records

NO_HASH = "sha256:" + "0" * 64
DEADLINE_S = 50
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
SEED = 7


def task_spec(published):
    return TaskSpec(
        schema_version=TASK_SPEC_VERSION,
        script=script_from_row(published, NO_HASH),
        template_id=published["task_id"],
        category=None,
        difficulty=None,
        turn_policy=published["turn_policy"],
        slot_bindings=None,
        executable=None,
    )


def endpoint(model, port):
    return Endpoint(
        alias=model,
        canonical_id="control:gold@1",
        provider="openai",
        provider_api_version="v1",
        base_url=f"http://{LOOPBACK}:{port}/v1",
        model=model,
        api_key_env=None,
        inference={"temperature": 0, "max_tokens": 1000, "tool_choice": "auto"},
        echo_reasoning=False,
    )


async def hold_all():
    """Return the episode of every control on every row."""
    episodes = {}
    controls = ControlCandidate(ROWS, seed=SEED)
    listener = await listen(0)
    async with listener, anyio.create_task_group() as group:
        group.start_soon(serve, listener, lambda request: answer(controls, request))
        for model in CONTROL_NAMES:
            target = endpoint(model, port_of(listener))
            async with ChatHttpCandidate(
                target,
                None,
                candidate_timeout_s=DEADLINE_S,
                max_retries=0,
                recorder=Records(),
            ) as candidate:
                for published in ROWS:
                    request = EpisodeRequest(
                        task=ScorableTask.of(task_spec(published)),
                        endpoint=target,
                        policy=POLICY,
                        plan_identity=NO_HASH,
                        trial=0,
                        attempt=1,
                        max_turns=20,
                    )
                    episodes[model, published["task_id"]] = await drive(
                        request,
                        candidate,
                        deadline=anyio.current_time() + DEADLINE_S,
                    )
        group.cancel_scope.cancel()
    return episodes


@pytest.fixture(scope="module")
def episodes():
    return anyio.run(hold_all)


@pytest.fixture(scope="module")
def controls():
    return ControlCandidate(ROWS, seed=SEED)


TASK_IDS = [published["task_id"] for published in ROWS]
SPECS = {published["task_id"]: task_spec(published) for published in ROWS}


@pytest.mark.slow
def test_untouched_episodes_complete_and_touched_ones_do_not(episodes, controls):
    completed = {key for key, e in episodes.items() if e.status == "completed"}

    assert completed == {
        (model, task_id)
        for model, task_id in itertools.product(CONTROL_NAMES, TASK_IDS)
        if not controls.expectation(model, task_id, "trace").touched
    }


@pytest.mark.slow
def test_no_control_ends_as_another_partys_stop(episodes):
    assert {episode.status for episode in episodes.values()} == {
        "completed",
        "candidate_mismatch",
        "unusable_tool_call_ids",
    }


@pytest.mark.slow
@pytest.mark.parametrize("model", CONTROL_NAMES)
def test_scorer_fails_exactly_the_declared_gates(episodes, controls, model):
    found = {}
    for task_id in TASK_IDS:
        score = score_episode(
            episodes[model, task_id],
            SPECS[task_id],
            POLICY,
            eval_config_hash=NO_HASH,
            scoring_policy_hash=NO_HASH,
        )
        found[task_id] = {g.gate for g in score.gates if g.outcome == "failed"}

    assert found == {
        task_id: set(controls.expectation(model, task_id, "trace").failed)
        for task_id in TASK_IDS
    }


@pytest.mark.slow
@pytest.mark.parametrize("model", CONTROL_NAMES)
def test_conversation_ends_at_the_declared_turn(episodes, controls, model):
    ended = {
        task_id: len(episodes[model, task_id].turns) - 1
        for task_id in TASK_IDS
        if episodes[model, task_id].status != "completed"
    }

    assert ended == {
        task_id: expectation.mistake_turn
        for task_id in TASK_IDS
        if (expectation := controls.expectation(model, task_id, "trace")).touched
    }
