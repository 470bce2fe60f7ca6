"""Episodes that share a task are scored as if each had the task for itself."""

import dataclasses
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ScoringError
from harness.evidence.episode import Episode, ObservedTurn
from harness.scoring.courses import MOST_KEPT, NAMING_EPISODE, NAMING_TURN
from harness.scoring.reading import ScorableTask
from harness.scoring.score import judge_episode
from tests.scoring.episodes import (
    CONFIG,
    HASH,
    POLICY,
    End,
    calls,
    episode,
    gold,
    made,
    malformed,
    rescore,
    says,
    script,
    task,
    unavailable,
)

SPEC = task(script("Which one?", [gold("status", book_id="b-1")], "Done."))
FIRST = [says("Which one?"), says("which"), says(""), unavailable(), malformed()]
SECOND = [
    calls(made("status", book_id="b-1")),
    calls(made("status", book_id="b-1", call_id="other")),
    calls(made("status", book_id="b-2")),
    calls(made("status", book_id="b-1"), made("status", book_id="b-1")),
    calls(made("status", raw="{", status="invalid_json")),
    says("no call"),
    unavailable(),
]
THIRD = [says("Done."), says("Bye."), says(" "), malformed(), unavailable("timeout")]
VERBATIM = replace(POLICY, intermediate_text_matching="verbatim")


def played(answers, policy, trial, end):
    """Play answers until the conversation ends."""
    for length in range(1, len(answers) + 1):
        try:
            of = episode(SPEC, *answers[:length], policy=policy, trial=trial)
        except AssertionError:
            break
    return replace(of, status=end, reason_code=f"episode.{end}") if end else of


EPISODES = st.builds(
    played,
    st.tuples(*map(st.sampled_from, (FIRST, SECOND, THIRD))),
    st.sampled_from([POLICY, VERBATIM]),
    st.integers(0, 3),
    # An end that the turns contradict is refused, however often it is asked about.
    st.sampled_from([None, None, None, "candidate_mismatch", "completed"]),
)


def verdict(of, scored_with, policy):
    try:
        return rescore(of, scored_with, policy)
    except ScoringError as refusal:
        return str(refusal)


@pytest.mark.slow
@given(st.lists(st.tuples(EPISODES, st.sampled_from([POLICY, VERBATIM])), max_size=6))
def test_score_of_a_shared_task_is_that_of_a_task_alone(asked):
    shared = ScorableTask.of(SPEC)

    for of, policy in asked + asked:
        assert verdict(of, shared, policy) == verdict(of, SPEC, policy)


@pytest.mark.slow
@given(st.lists(EPISODES, max_size=6))
def test_hash_of_a_shared_score_is_that_of_the_score(asked):
    shared = ScorableTask.of(SPEC)

    for of in asked + asked:
        try:
            judged = judge_episode(
                of, shared, POLICY, eval_config_hash=CONFIG, scoring_policy_hash=HASH
            )
        except ScoringError:
            continue
        assert judged.score_hash == judged.score.score_hash
        assert judged.score == rescore(of, SPEC)


def test_trials_that_went_the_same_way_share_all_but_their_name():
    shared = ScorableTask.of(SPEC)
    answers = (FIRST[0], SECOND[0], THIRD[0])
    one, two = (rescore(episode(SPEC, *answers, trial=n), shared) for n in (0, 1))

    assert one.gates is two.gates
    assert (one.trial, two.trial) == (0, 1)
    assert one.episode_hash != two.episode_hash


@pytest.mark.slow
def test_number_of_kept_courses_is_bounded():
    shared = ScorableTask.of(SPEC)
    for number in range(MOST_KEPT + 5):
        answers = (FIRST[0], calls(made("status", book_id=f"x-{number}")))
        rescore(episode(SPEC, *answers, end=End("candidate_mismatch")), shared)

    assert len(shared.courses._verdicts) <= MOST_KEPT


@pytest.mark.parametrize(
    ("record", "names"), [(Episode, NAMING_EPISODE), (ObservedTurn, NAMING_TURN)]
)
def test_what_is_no_part_of_a_course_is_a_field(record, names):
    assert names <= {field.name for field in dataclasses.fields(record)}
