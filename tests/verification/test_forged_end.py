"""An executed episode ends as its own parts say, and nothing else is believed."""

import json

import pytest

from harness.errors import EvidenceError
from harness.evidence.episode_log import EPISODE_LOG
from harness.run.replay import replay_run
from harness.verification.verify import verify
from tests.verification.runs import forge_record, lines_of, make_consistent

LOG = EPISODE_LOG.file_name
ANSWERED = ("completed", "candidate_mismatch")
FORGED = (
    "oracle_reset_failed",
    "oracle_call_failed",
    "oracle_timeout",
    "oracle_result_malformed",
    "unknown_commit_state",
    "episode_timeout",
    "candidate_call_failed",
    "malformed_response",
    "unusable_tool_call_ids",
    "confirmation_not_earned",
    "max_turns_exceeded",
    "dependency_resolution_failed",
    "oracle_state_failed",
    "assertion_infrastructure_failed",
)


def first_record(run, status):
    for number, line in enumerate(lines_of(run / LOG), 1):
        payload = json.loads(line)["payload"]
        episode = payload.get("episode")
        if (
            episode
            and episode["status"] == status
            and episode["execution"]["executions"]
        ):
            return number
    raise AssertionError(f"no episode with calls is {status}")


def forge(run, status, edit):
    def changed(payload):
        edit(payload["episode"])
        return payload

    forge_record(run / LOG, first_record(run, status), changed)
    make_consistent(run)


def refused(run):
    with pytest.raises(EvidenceError) as caught:
        replay_run(run)
    (violation,) = caught.value.violations
    named = verify(run).findings.violations
    assert violation.where in [each.where for each in named]
    return violation


@pytest.mark.slow
@pytest.mark.parametrize("known", ANSWERED)
@pytest.mark.parametrize("status", FORGED)
def test_status_without_its_cause_is_refused(run, known, status):
    def edit(episode):
        reason = "timeout" if status == "episode_timeout" else status
        episode["status"] = status
        episode["reason_code"] = f"episode.{reason}"
        episode["events"][-1]["reason_code"] = f"episode.{reason}"

    forge(run, known, edit)

    assert refused(run).where.endswith("status")


@pytest.mark.parametrize(
    "edit",
    [
        lambda episode: episode.update(events=[]),
        lambda episode: episode["events"].pop(1),
        lambda episode: episode["events"][-1].update(reason_code="episode.completed."),
        lambda episode: episode["events"][0].update(event_index=7),
    ],
    ids=["none", "one is missing", "another end", "another number"],
)
def test_events_are_those_of_the_course(run, edit):
    forge(run, "completed", edit)

    assert refused(run).where.endswith("events")


def test_no_assertion_is_left_out(run):
    forge(run, "completed", lambda episode: episode["execution"]["assertions"].pop())

    assert refused(run).where.endswith("assertions")


@pytest.mark.parametrize(
    ("edit", "where"),
    [
        (lambda e: e.update(schema_version="9"), "schema_version"),
        (lambda e: e["turns"][0].update(reason_code="turn.fine"), "reason_code"),
        (
            lambda e: e["execution"]["executions"][0].update(status="timeout"),
            "execution 0",
        ),
    ],
    ids=["version", "turn", "call"],
)
def test_nothing_says_what_it_cannot(run, edit, where):
    forge(run, "completed", edit)

    assert refused(run).where.endswith(where)


def test_reason_is_that_of_the_status(run):
    forge(run, "completed", lambda episode: episode.update(reason_code="well done"))

    assert refused(run).where.endswith("status")
