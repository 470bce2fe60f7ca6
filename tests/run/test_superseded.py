"""A verdict that stands is replaced by no other; a stop may be held again."""

from dataclasses import replace

import pytest

from harness.errors import EvidenceError
from harness.evidence.candidate_log import CANDIDATE_LOG, CandidateLog
from harness.evidence.episode import AssertionOutcome, ExecutionEvidence, ObservedTurn
from harness.run.superseded import check_superseded
from tests.evidence.samples import attempt, completion, episode, key, request, response

ASKED = request()
ENDED = {"how": "fault", "killed": True}


@pytest.fixture
def log(tmp_path):
    """A log in which the request of every episode was answered."""
    file = tmp_path / CANDIDATE_LOG.file_name
    with CandidateLog.open(file, writable=True) as opened:
        opened.request(ASKED)
        opened.attempt(ASKED.request_hash, attempt())
        opened.outcome(completion(ASKED.request_hash))
        yield opened


def turn(*, text="Yes.", asked=ASKED, matched=True):
    return ObservedTurn(
        turn_index=0,
        request_hash=asked.request_hash,
        call_status="completed",
        wire_class="ok",
        detail_code=None,
        response_hash=response(text).identity_hash(),
        finish_reason="stop",
        text=text,
        tool_calls=(),
        paired_call_indexes=(),
        execution_indexes=(),
        released_user_message_hash=None,
        advanced=matched,
        matched=matched,
        companions=(),
        reason_code="turn.terminal",
        detail="",
    )


def held(number, status="completed", *, assertion="passed", turns=None, **worker):
    judged = AssertionOutcome(
        0, "a", "outcome", assertion, f"assertion.{assertion}", ""
    )
    execution = ExecutionEvidence(key(1), key(2), (), (), (judged,), None, worker)
    return replace(
        episode(number, status=status),
        turns=(turn(),) if turns is None else turns,
        execution=execution,
    )


@pytest.mark.parametrize(
    "before",
    [
        held(1, "candidate_call_failed"),
        held(1, "oracle_call_failed", assertion="failed"),
        held(1, "candidate_mismatch", ended=ENDED),
        held(1, "candidate_mismatch", turns=(turn(text="No."),)),
        held(1, "candidate_mismatch", turns=(turn(asked=request(1)),)),
        held(1),
    ],
    ids=[
        "a stop of the endpoint",
        "a stop of the oracle",
        "its worker was killed",
        "another answer than is recorded",
        "an answer that is not recorded any more",
        "the same verdict",
    ],
)
def test_what_a_resumed_run_holds_again_may_be_superseded(log, before):
    check_superseded([before, held(2)], log)


def test_a_stop_after_a_verdict_replaces_none(log):
    check_superseded([held(1), held(2, "oracle_timeout"), held(3)], log)


@pytest.mark.parametrize(
    "before",
    [
        held(1, assertion="failed"),
        held(1, "candidate_mismatch", turns=(turn(matched=False),)),
    ],
    ids=["an assertion failed", "the turn differed"],
)
@pytest.mark.parametrize("between", [[], [held(2, "oracle_timeout")]])
def test_a_verdict_that_stands_is_not_replaced(log, before, between):
    later = [*between, held(2 + len(between))]

    with pytest.raises(EvidenceError, match="another verdict counts") as caught:
        check_superseded([before, *later], log)

    assert caught.value.code == "eval_tool_trace_cache_conflict"
