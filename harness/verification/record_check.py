"""What the records of a run state about themselves and each other.

A line's hash says that nobody changed it since it was written; these checks say that
it was written by somebody who had the bytes. A request's hashes follow from its body,
an attempt's from the raw response, the recorded answer from decoding that response
again, a result's from the result.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Final

from harness.candidates.recovery import recovered_outcome
from harness.canonical import content_hash, hash_bytes
from harness.conversation.script import ConversationScript
from harness.conversation.task import TaskSpec
from harness.errors import EvidenceError
from harness.evidence.candidate_log import CANDIDATE_LOG, is_completion
from harness.evidence.episode import Attempt, Episode, Outcome
from harness.evidence.log_line import Entry
from harness.strict_json import StrictJsonError, decode_document
from harness.verification.findings import Findings

_BODY: Final = b'{"request":{"body":'
_AFTER_BODY: Final = b',"body_hash":"sha256:'
_SHARED: Final = ("request_id", "task_id", "trial", "turn_index")


def check_request(entry: Entry) -> None:
    """Refuse a request whose key does not follow from its head and its body.

    The body is hashed as it stands in the record: the bytes that were sent. Raises
    EvidenceError.
    """
    payload = entry.payload_bytes
    at = payload.rfind(_AFTER_BODY)
    if at < 0 or not payload.startswith(_BODY) or not payload.endswith(b"}}"):
        raise entry.refusal("the request does not have the form of one")
    body_hash = hash_bytes(payload[len(_BODY) : at])
    try:
        request = decode_document(b"{" + payload[at + 1 : -1])
        head = request["head"]
        stated = [request["body_hash"], head["request_body_hash"]]
        keys = [request["request_hash"], content_hash(head)]
        shared = [(request[name], head[name]) for name in _SHARED]
    except (StrictJsonError, LookupError, TypeError, ValueError) as error:
        raise entry.refusal(f"the request cannot be read ({error})") from None
    if stated != [body_hash, body_hash]:
        raise entry.refusal(f"body_hash is {stated[0]}; the body hashes to {body_hash}")
    if keys != [entry.key, entry.key]:
        raise entry.refusal(f"request_hash does not follow from the head: {keys[1]}")
    if any(own != other for own, other in shared):
        raise entry.refusal("the request and its head name different turns")


def request_task(entry: Entry) -> str:
    """Return the task that a request record belongs to."""
    return str(entry.member("request")["task_id"])


def check_attempt(attempt: Attempt, where: str, findings: Findings) -> None:
    """Hash the raw response of an attempt again."""
    if attempt.raw_response is None:
        return
    findings.count("raw responses hashed")
    try:
        body = (
            base64.b64decode(attempt.raw_response, validate=True)
            if attempt.raw_response_encoding == "base64"
            else attempt.raw_response.encode("utf-8")
        )
    except (binascii.Error, ValueError) as error:
        findings.differs(
            where, "the raw response is no text of its encoding", "bytes", str(error)
        )
        return
    actual = hash_bytes(body)
    if actual != attempt.raw_response_hash:
        findings.differs(
            where,
            "raw_response_hash is not the hash of the raw response",
            actual,
            str(attempt.raw_response_hash),
        )


def check_response(
    outcome: Outcome,
    attempts: Sequence[Attempt],
    where: str,
    findings: Findings,
    *,
    echo_reasoning: bool,
) -> None:
    """Decode the raw response again and compare it with the recorded answer."""
    if not is_completion(outcome):
        return
    findings.count("answers decoded again from raw responses")
    try:
        again = recovered_outcome(
            outcome.request_hash, attempts, echo_reasoning=echo_reasoning
        )
    except EvidenceError as error:
        findings.add(error.violations)
        return
    if again is None:
        findings.differs(
            where, "no raw response of a recorded answer", "its newest attempt", "none"
        )
    elif _meaning(again) != _meaning(outcome):
        findings.differs(
            where,
            "the recorded answer is not what its raw response says",
            str(_meaning(again))[:400],
            str(_meaning(outcome))[:400],
        )


def _meaning(outcome: Outcome) -> dict[str, object]:
    """Return everything of an outcome but how often it was asked and read."""
    payload = outcome.semantic_payload()
    for name in Outcome.OUTSIDE_IDENTITY:
        del payload[name]
    return payload


def check_episode(
    episode: Episode, script: ConversationScript, where: str, findings: Findings
) -> None:
    """Hash what an executable episode's own hashes stand for."""
    execution = episode.execution
    if execution is None:
        return
    for each in execution.executions:
        if each.result_hash is None:
            continue
        findings.count("tool results hashed")
        actual = content_hash(each.result)
        if actual != each.result_hash:
            findings.differs(
                f"{where}, execution {each.execution_index}",
                "result_hash is not the hash of the result",
                actual,
                each.result_hash,
            )
    for turn, scripted in zip(episode.turns, script.turns, strict=False):
        released = turn.released_user_message_hash
        if released is None:
            continue
        findings.count("released user messages hashed")
        actual = content_hash(scripted.releases_user_message)
        if actual != released:
            findings.differs(
                f"{where}, turn {turn.turn_index}",
                "released_user_message_hash is not that of the scripted message",
                actual,
                released,
            )


READ_BY_SCORING: Final = ("attempt", "completion", "failure", "task")
"""Record types of any log whose content a score may rest on."""


def read_unused(entry: Entry, findings: Findings) -> None:
    """Decode a record that no planned episode needed; raise EvidenceError."""
    where = f"{entry.log.file_name}, record {entry.sequence}"
    findings.count("other records decoded")
    if entry.record_type == "task":
        TaskSpec.from_payload(entry.member("task"), where)
    elif entry.log is not CANDIDATE_LOG:
        Episode.from_payload(entry.member("episode"), where)
    elif entry.record_type == "attempt":
        attempt = Attempt.from_payload(entry.member("attempt"), where)
        check_attempt(attempt, where, findings)
    else:
        Outcome.from_payload(entry.member("outcome"), where)
