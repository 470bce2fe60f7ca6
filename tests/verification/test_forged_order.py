"""What was asked again, or held again, and never would have been."""

import copy

import pytest

from harness.canonical import canonical_bytes
from harness.errors import FairtrialError
from harness.evidence.log_line import decode_line, encode_line
from harness.run.replay import replay_run
from harness.run.rescore import rescore_run
from harness.verification.extras import all_extras
from harness.verification.verify import verify
from tests.verification.runs import lines_of, log_formats, make_consistent

TRAFFIC = "candidate_io_cache.jsonl"
EPISODES = "tool_trace_cache.jsonl"


def records(folder, name):
    """Return the records of a log as lists: type, key, number, payload."""
    log = log_formats()[name]
    entries = [decode_line(log, line[:-1], None, 0) for line in lines_of(folder / name)]
    return [[e.record_type, e.key, e.number, e.payload()] for e in entries]


def write(folder, name, written):
    """Write a log anew with all its hashes, and what commits to it."""
    lines = [
        encode_line(
            log_formats()[name],
            sequence=sequence,
            record_type=record_type,
            key=key,
            number=number,
            payload=canonical_bytes(payload),
        )[0]
        for sequence, (record_type, key, number, payload) in enumerate(written, 1)
    ]
    (folder / name).write_bytes(b"".join(lines))
    make_consistent(folder)


def codes(folder):
    found = verify(folder, all_extras()).findings.violations
    return {each.code for each in found}


def refusals(folder, output):
    """Return the codes with which replaying and rescoring refuse."""
    with pytest.raises(FairtrialError) as replayed:
        replay_run(folder)
    with pytest.raises(FairtrialError) as rescored:
        rescore_run(folder, None, output, render_page=lambda _: "")
    return replayed.value.code, rescored.value.code


STOPPED = {
    "status": "retry_exhausted",
    "wire_class": "transport_retryable",
    "detail_code": "timeout",
    "response": None,
}


def answer_becomes_a_stop(folder):
    written = records(folder, TRAFFIC)
    done = next(r for r in written if r[0] == "completion")
    done[0] = "failure"
    done[3]["outcome"].update(STOPPED)
    write(folder, TRAFFIC, written)


def answer_is_asked_again(folder):
    written = records(folder, TRAFFIC)
    place = next(i for i, r in enumerate(written) if r[0] == "attempt")
    again = copy.deepcopy(written[place])
    again[2] = again[3]["attempt"]["attempt_index"] = 1
    end = next(r for r in written if r[:2] == ["completion", again[1]])
    end[3]["outcome"]["attempt_count"] = 2
    end[3]["outcome"]["response"]["selected_attempt"] = 1
    write(folder, TRAFFIC, [*written[: place + 1], again, *written[place + 1 :]])


@pytest.mark.parametrize("forge", [answer_becomes_a_stop, answer_is_asked_again])
@pytest.mark.parametrize("kind", ["run", "traced"])
def test_no_reader_takes_what_no_client_sends(request, tmp_path, forge, kind):
    folder = request.getfixturevalue(kind)
    forge(folder)

    code = "eval_candidate_cache_conflict"
    assert code in codes(folder)
    assert refusals(folder, tmp_path / "rescored") == (code, code)


def test_no_reader_takes_a_judged_episode_that_was_held_again(run, tmp_path):
    written = records(run, EPISODES)
    done = next(
        r
        for r in written
        if r[0] == "completion" and r[3]["episode"]["status"] == "completed"
    )
    begun = next(r for r in written if r[:2] == ["request", done[1]])
    again = copy.deepcopy([begun, done])
    again[0][2] = again[1][2] = again[1][3]["episode"]["attempt"] = 2
    for assertion in done[3]["episode"]["execution"]["assertions"]:
        assertion.update(status="failed", reason_code="assertion.failed")
    write(run, EPISODES, [*written, *again])

    code = "eval_tool_trace_cache_conflict"
    assert code in codes(run)
    assert refusals(run, tmp_path / "rescored") == (code, code)


def test_an_episode_under_the_key_of_another_is_refused(run, tmp_path):
    written = records(run, EPISODES)
    done = next(r for r in written if r[0] == "completion")
    done[3]["episode"]["candidate_alias"] = "nobody"
    write(run, EPISODES, written)

    code = "eval_tool_trace_cache_invalid"
    assert code in codes(run)
    assert refusals(run, tmp_path / "rescored") == (code, code)


def test_traffic_of_a_task_that_the_plan_does_not_have_is_named(traced):
    written = records(traced, TRAFFIC)
    asked = copy.deepcopy(written[0])
    asked[1] = "sha256:" + "a" * 64
    asked[3]["request"]["task_id"] = asked[3]["request"]["head"]["task_id"] = "other"
    write(traced, TRAFFIC, [*written, asked])

    found = verify(traced, all_extras()).findings.violations

    (named,) = [v for v in found if v.problem == "no planned episode asked it"]
    assert named.where == f"{TRAFFIC}, record {len(written) + 1}"
    assert "'other'" in named.actual


def unplanned(folder):
    found = verify(folder, all_extras()).findings.violations
    return [v.where for v in found if v.problem == "no planned episode asked it"]


def test_an_episode_under_a_key_of_none_is_named(run):
    written = records(run, EPISODES)
    more = copy.deepcopy(written[:2])
    for record in more:
        record[1] = "sha256:" + "a" * 64
    write(run, EPISODES, [*written, *more])

    assert unplanned(run) == [f"{EPISODES}, record {len(written) + 1}"]


def test_a_beginning_that_names_no_planned_task_is_named(run):
    written = records(run, EPISODES)
    written[0][3]["request"]["task_id"] = "other"
    write(run, EPISODES, written)

    assert unplanned(run) == [f"{EPISODES}, record 1"]


def test_a_turn_that_its_script_does_not_have_is_named(traced):
    written = records(traced, TRAFFIC)
    asked = copy.deepcopy(written[0])
    asked[1] = "sha256:" + "a" * 64
    asked[3]["request"]["turn_index"] = asked[3]["request"]["head"]["turn_index"] = 99
    write(traced, TRAFFIC, [*written, asked])

    assert unplanned(traced) == [f"{TRAFFIC}, record {len(written) + 1}"]


def test_a_planned_request_that_lost_its_end_is_no_finding(traced):
    """What a killed run leaves of an answer that another one made needless."""
    written = records(traced, TRAFFIC)
    asked = copy.deepcopy(written[0])
    asked[1] = "sha256:" + "a" * 64
    write(traced, TRAFFIC, [*written, asked])

    assert unplanned(traced) == []
