"""Whole episodes come back; begun ones stay visible and are no answer."""

import json
from dataclasses import replace

import pytest

from harness.errors import EvidenceError
from harness.evidence.episode_log import (
    EPISODE_LOG,
    EpisodeLog,
    InterruptedEpisode,
    stream_episodes,
    trace_key,
)
from harness.evidence.log import AppendLog
from tests.evidence.samples import colliding, episode, key

KEY = key(9)
PAYLOAD = {"task_id": "t0", "trial": 0}


@pytest.fixture
def path(tmp_path):
    return tmp_path / EPISODE_LOG.file_name


@pytest.fixture
def log(path):
    with EpisodeLog.open(path, writable=True) as opened:
        yield opened


def play(log, number, *, subject=KEY, status="completed"):
    log.begin(subject, number, PAYLOAD)
    log.complete(subject, episode(number, status=status))


def test_an_unknown_episode_has_neither_attempts_nor_an_end(log):
    assert (log.lookup(KEY), log.attempts(KEY)) == (None, 0)


def test_an_episode_comes_back_whole_and_marked(log, path):
    play(log, 1)
    log.close()

    with EpisodeLog.open(path, writable=False) as again:
        assert again.lookup(KEY) == replace(episode(1), replayed=True)


def test_the_highest_completed_attempt_counts(log):
    play(log, 1, status="oracle_timeout")
    log.begin(KEY, 2, PAYLOAD)
    while_running = log.lookup(KEY).attempt
    log.complete(KEY, episode(2))

    assert (while_running, log.lookup(KEY).attempt, log.attempts(KEY)) == (1, 2, 2)


def test_an_interrupted_attempt_is_listed_and_the_next_one_counts_on(log):
    log.begin(KEY, 1, PAYLOAD)
    found = log.interrupted()
    play(log, 2)

    assert found == (InterruptedEpisode(KEY, 1, PAYLOAD),)
    assert log.interrupted() == found
    assert log.lookup(KEY).attempt == 2


def test_equal_records_again_are_no_change(log):
    play(log, 1)
    size = log.log.size_bytes
    play(log, 1)

    assert log.log.size_bytes == size


def test_another_episode_under_one_number_is_a_conflict(log):
    play(log, 1)
    with pytest.raises(EvidenceError, match="eval_tool_trace_cache_conflict"):
        log.complete(KEY, episode(1, status="candidate_mismatch"))


def test_another_beginning_under_one_number_is_a_conflict(log):
    play(log, 1)
    with pytest.raises(EvidenceError, match="eval_tool_trace_cache_conflict"):
        log.begin(KEY, 1, {"task_id": "t1", "trial": 0})


@pytest.mark.parametrize("number", [0, 2, 7])
def test_attempts_begin_in_turn(log, number):
    with pytest.raises(EvidenceError, match="out of turn"):
        log.begin(KEY, number, PAYLOAD)


def test_an_end_needs_its_beginning(log):
    log.begin(KEY, 1, PAYLOAD)
    with pytest.raises(EvidenceError, match="out of turn"):
        log.complete(KEY, episode(2))


def test_keys_that_share_a_prefix_keep_their_own_episodes(log):
    for number in range(3):
        log.begin(colliding(number), 1, PAYLOAD)
    for number in (0, 2):
        log.complete(colliding(number), episode(1, task_id=f"t{number}"))

    assert [log.attempts(colliding(n)) for n in range(4)] == [1, 1, 1, 0]
    assert log.lookup(colliding(0)).task_id == "t0"
    assert log.lookup(colliding(1)) is None
    assert [found.trace_key for found in log.interrupted()] == [colliding(1)]


@pytest.mark.parametrize(
    "lines",
    [
        [("completion", 1)],
        [("request", 1), ("request", 1)],
        [("request", 1), ("completion", 1), ("completion", 1)],
        [("request", 1), ("completion", 2)],
        [("request", 2)],
        [("request", 1), ("request", 3)],
        [("request", 1), ("request", 2), ("completion", 1)],
        [("request", None)],
        [("request", 1), ("completion", None)],
    ],
    ids=[
        "no beginning",
        "two beginnings",
        "two ends",
        "another's end",
        "a second without a first",
        "a gap",
        "a late end",
        "no number",
        "an end without a number",
    ],
)
def test_an_order_that_no_run_produces_is_refused(path, lines):
    with AppendLog.open(path, EPISODE_LOG, writable=True) as raw:
        for record_type, number in lines:
            raw.append(record_type, KEY, {}, number)
    with pytest.raises(EvidenceError, match=f"record {len(lines)}, byte offset"):
        EpisodeLog.open(path, writable=False)


def test_a_stored_episode_of_another_shape_is_refused(path):
    with AppendLog.open(path, EPISODE_LOG, writable=True) as raw:
        raw.append("request", KEY, {"request": {}}, 1)
        payload = {**episode(1).semantic_payload(), "trial": True}
        raw.append("completion", KEY, {"episode": payload}, 1)
    with (
        EpisodeLog.open(path, writable=False) as log,
        pytest.raises(EvidenceError, match="trial"),
    ):
        log.lookup(KEY)


def test_an_episode_of_another_number_than_its_record_is_refused(path):
    with AppendLog.open(path, EPISODE_LOG, writable=True) as raw:
        raw.append("request", KEY, {"request": {}}, 1)
        raw.append("completion", KEY, {"episode": episode(2).semantic_payload()}, 1)
    with (
        EpisodeLog.open(path, writable=False) as log,
        pytest.raises(EvidenceError, match="says attempt 2"),
    ):
        log.lookup(KEY)


def test_all_completed_attempts_come_back_in_order(log):
    play(log, 1, status="oracle_timeout")
    log.begin(KEY, 2, PAYLOAD)
    play(log, 3)

    assert [each.attempt for each in log.completed(KEY)] == [1, 3]


def test_episodes_stream_in_one_pass(log, path):
    play(log, 1, status="oracle_timeout")
    play(log, 2)
    play(log, 1, subject=key(10))

    assert [(k, e.attempt) for k, e in stream_episodes(path)] == [
        (KEY, 1),
        (KEY, 2),
        (key(10), 1),
    ]


def test_a_log_keeps_the_fields_that_its_contract_names(log, path):
    play(log, 1)
    records = [json.loads(line) for line in path.read_text().splitlines()]

    assert [(r["record_type"], list(r["payload"]), r["attempt"]) for r in records] == [
        ("request", ["request"], 1),
        ("completion", ["episode"], 1),
    ]
    assert {r["trace_key"] for r in records} == {KEY}


PARTS = {
    "candidate_alias": "gold",
    "canonical_model_identity": "local:m@x",
    "task_id": "t0",
    "trial": 0,
    "plan_identity": key(1),
    "eval_config_hash": key(2),
    "scoring_policy_hash": key(3),
    "source_verification_identity": key(4),
    "oracle_verification_identity": None,
    "script_hash": key(5),
    "task_spec_hash": key(6),
}


@pytest.mark.parametrize("name", PARTS)
def test_every_part_of_the_key_matters(name):
    other = 1 if name == "trial" else key(99)

    assert trace_key(**{**PARTS, name: other}) != trace_key(**PARTS)
