"""Bugs that users of other harnesses met, run whole against the desk pack.

The numbers are those of `spec/wire-contract.md`, part B. What one component decides
alone is held where that component is tested:

| case | held by |
| --- | --- |
| B01-B04, B11, B14, B15 | `tests/parity/test_provider_quirks.py`, and B06 here |
| B20, B23, B24, B26, B29, B30 | the same, and `tests/candidates/test_wire.py` |
| B07 | `tests/candidates/test_message.py`, any JSON in any place of a call |
| B08 | ends like B09; a run sends no request that is not part of an episode |
| B09 | situation 13 in `test_situations.py` |
| B27 | `tests/candidates/test_retry_timing.py` |
| B28, B35 | `tests/candidates/test_transport.py`, `test_chat_http.py` |
| B31 | `tests/candidates/test_content_coding.py` |
| B40, B41 | `tests/conversation/test_matching.py` |
| B44 | no verdict compares states; what equal states are is the assertion's word |
| B48 | `tests/oracle/test_deadlines.py`, daemons of a killed worker |
| B49 | `tests/oracle/test_session.py`, printing changes no result |
| B52 | `tests/evidence/test_log.py` and `test_kill.py`, a log cut anywhere |
"""

import json
import threading
from itertools import count

import anyio
import pytest

from harness.benchmark.pack import load_pack
from harness.benchmark.publication import publish
from harness.canonical import canonical_json
from harness.causes import EXIT_CANDIDATE, EXIT_OVER_CAP
from harness.cli.main import main
from harness.errors import ArtifactError
from harness.evidence.candidate_log import CandidateLog
from harness.evidence.task_table import connect_task_table
from harness.oracle.certifying import CertifyingOracle
from harness.run.replay import replay_run
from tests.contract.desk import (
    PACK,
    WORDS,
    Desk,
    calls,
    failing,
    find,
    metric,
    outcome,
)
from tests.parity.folders import DEFAULT_ROOT
from tests.servers import Reply, completion, json_reply, tool_call

DOWN = json_reply({"error": {"message": "later"}}, status=503)
LOOKS = [f"look-{number}" for number in range(1, 21)]
BIG = 9007199254740993


def quirk(number):
    """The response S0xx of the wire contract's fixtures, as it came."""
    path = DEFAULT_ROOT / "provider-quirks" / "responses.jsonl"
    for line in path.read_text("utf-8").splitlines():
        case = json.loads(line)
        if case["id"] == f"S{number:03}":
            return Reply(case["http_status"], case["headers"], case["body"].encode())
    raise LookupError(number)


class Counted:
    """Hands out replies in the order in which requests come, from any thread."""

    def __init__(self, reply_to):
        self._numbers = count(1)
        self._lock = threading.Lock()
        self._reply_to = reply_to

    def __call__(self, received):
        with self._lock:
            number = next(self._numbers)
        return self._reply_to(number, received)


MALFORMED = range(34, 57)
BATCH = dict(zip([*LOOKS, "few-1", "few-2", "ten-1"], MALFORMED, strict=True))
FINE = {"amount": 33.0, "reference": BIG}
CUT = tool_call("ring_bell", '{"times": 1', "c1")
PARTS = [
    {"type": "thinking", "thinking": "hm"},
    {"type": "text", "text": "Which "},
    {"type": "text", "text": "book?"},
]
ANSWERS = {
    "ring-1": [completion(calls=[CUT])],
    "ring-2": [completion(calls=[tool_call("ring_bell", {}, "c0"), CUT])],
    "ring-3": [calls(("ring_bell", {}), finish_reason="length")],
    "ring-4": [calls(("ring_bell", {"mood": "verdict:import"}))],
    "ring-5": [calls(("ring_bell", {"mood": "verdict:sleep"}))],
    "ring-6": [calls(("ring_bell", {"mood": "verdict:word"}))],
    "look-1": [calls(("find_boook", {"title": "Salt"}))],
    "look-2": [calls(find(), find())],
    "look-3": [quirk(91)],
    "look-4": [quirk(92)],
    "look-5": [quirk(26)],
    "hidden-1": [completion(PARTS, refusal=None, annotations=[])],
    "decline-1": [quirk(54)],
    "decline-2": [quirk(41)],
    "decline-3": [quirk(27)],
    "decline-4": [quirk(55)],
    "decline-5": [quirk(64)],
    "decline-6": [quirk(65)],
    "fine-1": [calls(("quote_fine", {**FINE, "reference": BIG - 1}))],
    "fine-2": [calls(("quote_fine", FINE))],
    "fine-3": [calls(("quote_fine", {**FINE, "amount": 33}))],
}


@pytest.fixture(scope="module")
def desk(publication, tmp_path_factory):
    folder = tmp_path_factory.mktemp("field-cases")
    return Desk(folder, publication.copy(folder / "source", ANSWERS))


@pytest.fixture(scope="module")
def ran(desk):
    """One run in which each ticket meets a case of its own."""
    return desk.play(ANSWERS)


@pytest.fixture(scope="module")
def batch(publication, tmp_path_factory):
    """Every malformed response of the fixtures, at once."""
    folder = tmp_path_factory.mktemp("batch")
    desk = Desk(folder, publication.copy(folder / "source", BATCH))
    answers = {ticket: [quirk(number)] for ticket, number in BATCH.items()}
    return desk.play(answers, limits={"max_parallel_tasks": 4})


def executions(ran, ticket):
    return ran.episode(ticket).execution.executions


def assertion_of(ran, ticket):
    return ran.episode(ticket).execution.assertions[0]


def test_malformed_call_never_reaches_a_tool_without_required_parameters(ran):
    """B05, one call."""
    (execution,) = executions(ran, "ring-1")

    assert execution.reason_code == "tool_execution.invalid_arguments"
    assert assertion_of(ran, "ring-1").detail == "0"
    assert ran.score("ring-1").episode_status == "candidate_mismatch"


def test_only_the_well_formed_call_of_a_turn_runs(ran):
    """B05, a good and a bad call."""
    assert [e.status for e in executions(ran, "ring-2")] == [
        "completed",
        "not_executed",
    ]
    assert assertion_of(ran, "ring-2").status == "passed"
    assert len(ran.asked("ring-2")) == 1


def test_batch_of_malformed_answers_is_the_candidates_and_stops_nothing(batch):
    """B06 and B07."""
    candidate = batch.candidate

    assert batch.finished.exit_status == 0
    assert candidate["task_count"] == len(BATCH)
    assert candidate["successful_tasks"] == 0
    assert candidate["non_candidate_stops"] == 0
    assert len(batch.requests) == len(BATCH)


@pytest.mark.parametrize("ticket", BATCH)
def test_malformed_answer_is_kept_as_it_came_and_named(batch, ticket):
    """B01 to B04, in a whole run."""
    (attempt,) = batch.attempts(ticket)

    assert attempt.raw_response.encode() == quirk(BATCH[ticket]).body
    assert batch.score(ticket).episode_status in {
        "candidate_mismatch",
        "malformed_response",
        "unusable_tool_call_ids",
    }
    assert all(e.status == "not_executed" for e in executions(batch, ticket)[1:])


def test_empty_arguments_are_counted_beside_the_score(batch):
    """B02."""
    companions = batch.candidate["companions"]

    assert batch.row("look-1").arguments_empty
    assert companions["arguments_empty"] >= 1


def test_parallel_calls_to_one_tool_stay_two(ran):
    """B10."""
    assert len(executions(ran, "look-2")) == 2
    assert {"tool_selection", "call_grouping"} <= set(failing(ran.score("look-2")))


def test_cut_generation_with_a_parseable_call_runs_nothing(ran):
    """B12 and B13."""
    (execution,) = executions(ran, "ring-3")

    assert execution.reason_code == "tool_execution.incomplete_response"
    assert assertion_of(ran, "ring-3").detail == "0"
    assert len(ran.asked("ring-3")) == 1


def test_assistant_turn_is_echoed_exactly_as_received(ran):
    """B16."""
    _, second, *_ = ran.asked("hidden-1")

    assert second[-2]["role"] == "assistant"
    assert canonical_json(second[-2]["content"]) == canonical_json(PARTS)
    assert ran.episode("hidden-1").turns[0].text == "Which book?"


@pytest.mark.parametrize("ticket", ["decline-1", "decline-2", "decline-4"])
def test_broken_call_is_no_abstention(ran, ticket):
    """B17 and B39: legacy field, cut arguments, call in the content."""
    score = ran.score(ticket)

    assert not score.task_success
    assert not score.non_candidate_stop


def test_markup_in_words_passes_and_is_flagged_beside_the_rate(ran):
    """B18 and B39."""
    assert ran.score("decline-3").task_success
    assert ran.row("decline-3").suspected_call_markup
    assert ran.candidate["companions"]["suspected_call_markup"] == 1


def test_leaked_control_tokens_stay_in_the_name(ran):
    """B19."""
    (call,) = ran.episode("look-5").turns[0].tool_calls

    assert call.function_name == "get_weather<|channel|>commentary"
    assert outcome(ran.score("look-5"), "tool_selection") == "failed"
    assert executions(ran, "look-5")[0].result is None


def test_integers_above_two_to_the_53_are_exact_from_wire_to_table(ran):
    """B21."""
    wrong, right = ran.score("fine-1"), ran.score("fine-2")
    (execution,) = executions(ran, "fine-2")

    assert outcome(wrong, "arguments") == "failed"
    assert right.task_success
    assert execution.result["reference"] == BIG
    assert f'"reference":{BIG}' in ran.asked("fine-2")[1][-1]["content"]
    assert replay_run(ran.folder).is_equal
    with connect_task_table(ran.folder / "eval_task_results.parquet") as tables:
        found = dict(
            tables.sql("select task_id, arguments_correct from tasks").fetchall()
        )
    assert found[wrong.task_id] is False
    assert found[right.task_id] is True


def test_arguments_fail_by_type_while_the_assertion_passes(ran):
    """B22 and B45."""
    score = ran.score("fine-3")

    assert outcome(score, "arguments") == "failed"
    assert outcome(score, "assertions") == "passed"
    assert not score.task_success


@pytest.mark.slow
def test_withheld_output_is_retried_and_then_infrastructure_with_its_row(desk_of):
    """B25."""
    ran = desk_of("look-1").play({"look-1": [quirk(73)]}, limits={"max_retries": 1})

    row = ran.row("look-1")
    assert (row.attempts, row.non_candidate_stop) == (2, True)
    assert row.arguments_correct is None
    assert ran.candidate["metrics"]["argument_accuracy"]["value"] is None


@pytest.mark.parametrize(
    ("ticket", "detail"),
    [("look-3", "context_length"), ("look-4", "provider_rejected")],
)
def test_refused_request_is_sent_once_and_its_words_go_nowhere(ran, ticket, detail):
    """B33."""
    episode = ran.episode(ticket)
    (attempt,) = ran.attempts(ticket)

    assert episode.reason_code == f"episode.candidate_call_failed.{detail}"
    assert (attempt.raw_response, episode.turns[0].text) == (None, None)
    assert len(ran.asked(ticket)) == 1


@pytest.mark.parametrize(
    ("ticket", "stop"), [("decline-5", True), ("decline-6", False)]
)
def test_filter_is_an_own_class_on_either_side_of_the_generation(ran, ticket, stop):
    """B34: the prompt refused, and the output withheld."""
    score = ran.score(ticket)

    assert not score.task_success
    assert score.non_candidate_stop is stop
    assert ran.row(ticket).attempts == 1


def test_hallucinated_tool_is_the_candidates_live_and_replayed(ran):
    """B42."""
    score = ran.score("look-1")

    assert score.episode_status == "candidate_mismatch"
    assert executions(ran, "look-1")[0].reason_code == "tool_execution.undeclared_tool"
    assert ran.row("look-1").score_hash == score.score_hash
    assert replay_run(ran.folder).is_equal


def test_hallucinated_tool_is_the_candidates_in_trace_mode_too(desk_of):
    """B42."""
    ran = desk_of("look-1").play(ANSWERS, executable=False)

    assert ran.score("look-1").episode_status == "candidate_mismatch"
    assert outcome(ran.score("look-1"), "tool_selection") == "failed"


@pytest.mark.parametrize("ticket", ["ring-4", "ring-5", "ring-6"])
def test_grader_that_cannot_run_judges_nothing(ran, ticket):
    """B46: an import that fails, a deadline that passes, a value that is no verdict."""
    score = ran.score(ticket)

    assert score.episode_status == "assertion_infrastructure_failed"
    assert metric(score, "assertion_success_rate") == (
        "metric.assertion_evidence_incomplete"
    )
    assert ran.row(ticket).assertions_passed is None
    assert score.non_candidate_stop


def test_no_artifact_holds_a_number_that_is_none(ran):
    """B54."""
    for name in ("eval_report.json", "eval_manifest.json", "eval_plan.jsonl"):
        text = (ran.folder / name).read_text("utf-8")

        for line in text.splitlines() if name.endswith("l") else [text]:
            json.loads(line, parse_constant=pytest.fail)
    with connect_task_table(ran.folder / "eval_task_results.parquet") as tables:
        columns = tables.sql("describe tasks").fetchall()
    assert not {"FLOAT", "DOUBLE"} & {kind for _, kind, *_ in columns}


@pytest.mark.slow
def test_key_that_goes_bad_in_mid_run_ends_it_and_keeps_what_was_answered(
    desk_of, capsys
):
    """B32: a 401 from the sixth of 20 tasks on."""
    desk = desk_of(*LOOKS)
    refusal = json_reply({"error": {"message": "no"}}, status=401)
    gold = [calls(find()), WORDS]

    def after_ten(number, received):
        turn = sum(m["role"] == "assistant" for m in received.json()["messages"])
        return gold[turn] if number <= 10 else refusal

    answer = Counted(after_ten)
    with desk.served({ticket: [answer, answer] for ticket in LOOKS}) as server:
        config = desk.config(server.url, limits={"max_parallel_tasks": 1})
        status = main(["run", str(desk.folder / "eval.yaml")])

    folder = config.paths.output_dir
    assert status == EXIT_CANDIDATE
    assert "eval_candidate_authentication_failed" in capsys.readouterr().err
    assert len(server.requests) == 11
    assert not (folder / "eval_report.json").exists()
    with CandidateLog.open(folder / "candidate_io_cache.jsonl", writable=False) as log:
        kinds = [entry.record_type for entry in log.log.entries()]
    assert kinds.count("completion") == 10


def played_in_trace(desk, answers, **options):
    return desk.play(answers, executable=False, **options)


def test_candidate_failures_and_stops_are_both_in_the_denominators(desk_of):
    """B36: 6 pass, 2 fail, 2 are stopped."""
    answers = {
        **{ticket: [calls(find(limit="1"))] for ticket in LOOKS[6:8]},
        **{ticket: [DOWN] for ticket in LOOKS[8:10]},
    }
    ran = played_in_trace(desk_of(*LOOKS[:10]), answers)
    metrics = ran.candidate["metrics"]
    gates = {gate["gate"]: gate for gate in ran.candidate["gates"]}
    rows = [ran.row(ticket) for ticket in LOOKS[:10]]

    def counts(name):
        return metrics[name]["numerator"], metrics[name]["denominator"]

    assert counts("task_success_rate") == (6, 10)
    assert counts("task_success_rate_without_stops") == (6, 8)
    assert ran.candidate["non_candidate_stops"] == 2
    assert counts("arguments_pass_rate") == (6, 8)
    assert gates["arguments"]["evidence_missing"] == 2
    assert sum(row.task_success for row in rows) == 6
    assert sum(row.non_candidate_stop for row in rows) == 2
    assert sum(row.arguments_correct is not None for row in rows) == 8


@pytest.mark.slow
def test_one_survivor_of_a_hundred_is_no_perfect_score(desk_of):
    """B37."""
    answer = Counted(lambda number, _: WORDS if number == 1 else DOWN)
    tickets = [f"decline-{number}" for number in range(1, 6)]
    ran = played_in_trace(
        desk_of(*tickets),
        {ticket: [answer] for ticket in tickets},
        eval={"trials": 20},
    )
    report = ran.finished.report
    metrics = ran.candidate["metrics"]

    assert metrics["task_success_rate"]["numerator"] == 1
    assert metrics["task_success_rate"]["denominator"] == 100
    assert metrics["task_success_rate_without_stops"]["denominator"] == 1
    assert ran.finished.exit_status == EXIT_OVER_CAP
    assert report["non_publication_reasons"][-1] == "stops.share_over_cap"


@pytest.mark.slow
def test_metric_over_nothing_is_null_with_its_reason(desk_of):
    """B38."""
    ran = desk_of("decline-1").play({})

    for name, reason in (
        ("call_order_accuracy", "metric.gate_not_applicable"),
        ("argument_accuracy", "metric.no_expected_call"),
        ("tool_execution_success_rate", "metric.no_attempted_call"),
    ):
        found = ran.candidate["metrics"][name]

        assert (found["numerator"], found["denominator"]) == (0, 0)
        assert (found["value"], found["not_applicable_reason"]) == (None, reason)


@pytest.mark.slow
def test_gold_that_lacks_its_mutating_call_is_never_asked_of_a_candidate(tmp_path):
    """B43: what certification finds wrong is not published."""
    pack = tmp_path / "pack"
    pack.mkdir()
    for file in PACK.iterdir():
        if file.is_file():
            (pack / file.name).write_bytes(file.read_bytes())
    templates = pack / "task_templates.yaml"
    text = templates.read_text("utf-8")
    ring = "- {type: tool_call, tool: ring_bell}"
    assert ring in text
    templates.write_text(
        text.replace(ring, "- {type: tool_call, tool: find_book, args: {title: Salt}}"),
        "utf-8",
    )

    async def published():
        oracle = CertifyingOracle()
        return await publish(load_pack(pack), tmp_path / "benchmark", oracle=oracle)

    anyio.run(published)
    manifest = json.loads((tmp_path / "benchmark" / "run_manifest.json").read_text())

    assert manifest["gold_eligible"] is False
    raw, kept = (
        manifest["publication"][table]["rows"] for table in ("raw", "published")
    )
    assert (raw, kept) == (59, 49)


@pytest.mark.slow
def test_state_of_one_task_never_reaches_another(desk_of):
    """B47: 20 tasks, eight at a time, over a module-level list."""
    ran = desk_of(*LOOKS).play({}, limits={"max_parallel_tasks": 8})

    seen = [executions(ran, ticket)[0].result["calls_seen"] for ticket in LOOKS]
    assert seen == [1] * 20


@pytest.mark.slow
def test_mutating_call_whose_answer_is_lost_is_sent_once(desk_of, tmp_path):
    """B50."""
    counter = tmp_path / "counter"
    desk = desk_of("ring-1")
    ran = desk.play(
        {"ring-1": [calls(("ring_bell", {"mood": f"count_and_die:{counter}"}))]},
        limits={"max_retries": 2},
    )

    assert counter.read_text() == "sent\n"
    assert executions(ran, "ring-1")[0].status == "unknown_commit_state"
    assert ran.score("ring-1").episode_status == "unknown_commit_state"
    assert ran.score("ring-1").non_candidate_stop


@pytest.mark.slow
def test_hanging_tool_costs_only_its_own_episode(desk_of):
    """B51; the lag of the loop is measured in `tests/oracle/test_deadlines.py`."""
    desk = desk_of(*LOOKS[:8])
    done = []

    with desk.served({"look-1": [calls(find(mood="hang"))]}) as server:
        config = desk.config(server.url)
        finished = desk.run(config, watch=lambda progress: done.append(progress.stops))

    candidate = finished.report["candidates"][0]
    assert done == [0, 0, 0, 0, 0, 0, 0, 1]
    assert candidate["successful_tasks"] == 7


@pytest.mark.slow
def test_two_candidates_in_one_folder_never_share_an_answer(desk_of):
    """B53."""
    desk = desk_of("look-1", "decline-1")
    ran = desk.play({}, models=("one", "two"))
    models = [received.json()["model"] for received in ran.requests]

    assert models.count("one") == models.count("two") == 3
    hashes = {
        c["alias"]: c["aggregate_hash"] for c in ran.finished.report["candidates"]
    }
    assert len(set(hashes.values())) == 2


@pytest.mark.slow
def test_another_candidate_is_refused_the_folder_of_the_first(desk_of):
    """B53."""
    desk = desk_of("decline-1")
    first = desk.play({}, models=("one",))
    with desk.served({}) as server:
        other = desk.config(
            server.url, "b", models=("two",), outputs={"output_dir": first.folder.name}
        )
        with pytest.raises(ArtifactError):
            desk.run(other)

    assert not server.requests
