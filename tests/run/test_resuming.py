"""What a resumed run does not ask for again."""

import pytest

from harness.evidence.candidate_log import CANDIDATE_LOG, CandidateLog
from harness.run.resuming import ResumingCandidate
from tests.candidates.recording import exchange
from tests.servers import Reply, ScriptedServer, completion, json_reply

REFUSED = json_reply({"error": {"message": "no"}}, status=404)
BUSY = Reply(503, body=b"busy")


@pytest.fixture
def log(tmp_path):
    file = tmp_path / CANDIDATE_LOG.file_name
    with CandidateLog.open(file, writable=True) as opened:
        yield opened


def asked(log, *replies, ended):
    """Ask once for each reply; the last `ended` says which ends were recorded."""
    with ScriptedServer([*replies]) as server:
        found = [exchange(server.url, attempts_made=n) for n in range(len(replies))]
    (request,) = found[0].records.requests
    log.request(request)
    for each, is_recorded in zip(found, ended, strict=True):
        (attempt,) = each.records.attempts
        log.attempt(request.request_hash, attempt)
        if is_recorded:
            log.outcome(each.outcome)
    return request, found[-1].outcome


def known(log, request, *, gave_up=False):
    live = None  # Nobody is asked.
    resuming = ResumingCandidate(live, log, echo_reasoning=False, gave_up=gave_up)
    return resuming.known(request)


def test_a_refusal_stands_unless_the_run_was_given_up(log):
    request, outcome = asked(log, REFUSED, ended=[True])

    assert known(log, request) == outcome.but(replayed=True)
    assert known(log, request, gave_up=True) is None


def test_an_outage_is_asked_again(log):
    request, _ = asked(log, BUSY, ended=[True])

    assert known(log, request) is None


@pytest.mark.parametrize("gave_up", [False, True])
def test_an_answer_that_came_when_a_stop_was_asked_again_is_concluded(log, gave_up):
    request, outcome = asked(log, REFUSED, completion("Hi"), ended=[True, False])

    assert known(log, request, gave_up=gave_up) == outcome
    assert log.outcome_of(request.request_hash) == outcome.but(replayed=True)
