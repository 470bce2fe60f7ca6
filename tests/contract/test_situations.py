"""The 35 situations that every evaluator must judge right, as whole runs.

Each test is one situation of `spec/executable-evaluator.md` 6.1, by its number. The
candidate is scripted and behind HTTP, the oracle is the desk pack in real workers,
and the verdict is read from the run folder. Most situations are tickets of one run.
"""

import pytest

from harness.benchmark.source import verify_source
from harness.causes import (
    CAUSES,
    EXIT_CANDIDATE,
    EXIT_CONFLICT,
    EXIT_CONTAMINATION,
    exit_status,
)
from harness.errors import (
    ArtifactError,
    CandidateError,
    ConfigError,
    ContaminationError,
    SourceError,
)
from harness.evidence.candidate_log import CandidateLog
from harness.run.replay import replay_run
from harness.run.seclusion import secluded
from tests.contract.desk import (
    WORDS,
    Desk,
    calls,
    failing,
    find,
    metric,
    outcome,
)
from tests.servers import completion, json_reply, tool_call

DOWN = json_reply({"error": {"message": "later"}}, status=503)
SHELF = ("shelf_of", {"book_id": "BK-101"})
LEND = {"book_id": "BK-100", "days": 14}
ANSWERS = {
    "few-1": [calls(find(limit="1"))],
    "look-1": [calls(find(limit=3))],
    "ten-1": [calls(find())],
    "lend-1": [WORDS, calls(("lend_book", {"book_id": "BK-100", "confirm": True}))],
    "pair-1": [calls(SHELF, find())],
    "pair-2": [calls(find(), ("ring_bell", {}))],
    "pair-3": [calls(find()), calls(SHELF)],
    "hidden-1": [calls(find())],
    "decline-1": [completion("No, sorry.")],
    "decline-2": [calls(find())],
    "decline-3": [completion(None)],
    "look-2": [calls(find(), finish_reason="length")],
    "pair-4": [
        completion(calls=[tool_call("find_book", {"title": "Salt"}, "c")] * 2),
    ],
    "look-3": [DOWN],
    "lend-2": [calls(("lend_book", {**LEND, "confirm": True}))],
    "lend-3": [calls(("lend_book", {**LEND, "confirm": False}))],
    "ring-1": [calls(("ring_bell", {"mood": "hang"}))],
    "look-4": [calls(find(mood="hang"))],
    "look-5": [calls(find(mood="list"))],
    "look-6": [calls(find(mood="rejected"))],
    "look-7": [calls(find(mood="empty_error"))],
    "look-8": [calls(find(mood="null_error"))],
    "chain-1": [
        calls(find(mood="other_id:BK-101")),
        calls(("shelf_of", {"book_id": "BK-100"})),
    ],
    "chain-2": [
        calls(find(mood="other_id:BK-101")),
        calls(("shelf_of", {"book_id": "BK-101"})),
    ],
    "chain-3": [calls(find(mood="no_id"))],
    "ring-2": [calls(("ring_bell", {"mood": "verdict:true"}))],
    "ring-3": [calls(("ring_bell", {"mood": "verdict:skip"}))],
}
ENDS_BEFORE_THE_ORACLE = (
    *("few-1", "look-1", "ten-1", "lend-1", "hidden-1", "look-2", "look-3"),
    *("pair-1", "pair-2", "pair-3", "pair-4"),
    *("decline-1", "decline-2", "decline-3", "lend-2", "lend-3"),
)
"""Tickets whose trace verdict no tool result decides."""
TRACE_END = ["trace_completion"]
END = [*TRACE_END, "executable_completion"]


@pytest.fixture(scope="module")
def desk(publication, tmp_path_factory):
    folder = tmp_path_factory.mktemp("situations")
    return Desk(folder, publication.copy(folder / "source", ANSWERS))


@pytest.fixture(scope="module")
def ran(desk):
    """One run in which each ticket is answered in its own way."""
    return desk.play(ANSWERS, "situations")


def statuses(ran, ticket):
    """The status of every proposed call of a ticket."""
    return [e.status for e in ran.episode(ticket).execution.executions]


def assertion_statuses(ran, ticket):
    return [a.status for a in ran.episode(ticket).execution.assertions]


def test_text_for_an_integer_fails_schema_and_arguments_and_releases_nothing(ran):
    """Situation 1."""
    score = ran.score("few-1")

    assert failing(score) == [
        "arguments",
        "schema_valid",
        "trace_completion",
        "oracle_execution",
        "executable_completion",
    ]
    assert statuses(ran, "few-1") == ["not_executed"]
    assert len(ran.asked("few-1")) == 1


def test_default_that_gold_states_nowhere_is_unconstrained(ran):
    """Situation 2."""
    assert ran.score("look-1").task_success
    assert outcome(ran.score("look-1"), "arguments") == "passed"


def test_stated_default_may_be_left_out_where_defaults_are_inserted(ran):
    """Situation 3, insertion on."""
    assert ran.score("ten-1").task_success


@pytest.mark.slow
def test_stated_default_may_not_be_left_out_where_defaults_are_not_inserted(desk_of):
    """Situation 3, insertion off."""
    ran = desk_of("ten-1").play(ANSWERS, scoring={"insert_declared_defaults": False})

    assert failing(ran.score("ten-1")) == ["arguments", *END]


def test_required_parameter_is_required_although_it_has_a_default(ran):
    """Situation 4."""
    failed = failing(ran.score("lend-1"))

    assert {"schema_valid", "arguments"} <= set(failed)
    assert "tool_selection" not in failed
    assert statuses(ran, "lend-1") == ["not_executed"]


def test_swapped_strict_pair_fails_the_order_alone(ran):
    """Situation 5."""
    assert failing(ran.score("pair-1")) == ["call_ordering", *END]


def test_wrong_tool_in_a_pair_fails_selection_and_coverage_alone(ran):
    """Situation 6."""
    assert failing(ran.score("pair-2")) == ["tool_selection", "arguments", *END]


def test_pair_spread_over_two_turns_fails_grouping_and_ends_the_episode(ran):
    """Situation 7."""
    assert outcome(ran.score("pair-3"), "call_grouping") == "failed"
    assert len(ran.asked("pair-3")) == 1


def test_call_before_the_hidden_slot_is_known_fails_and_never_learns_it(ran):
    """Situation 8."""
    failed = failing(ran.score("hidden-1"))

    assert {"text_turn", "tool_selection"} <= set(failed)
    assert "The one called" not in str(ran.asked("hidden-1"))


def test_declining_in_words_is_success_without_arguments_to_judge(ran):
    """Situation 9."""
    score = ran.score("decline-1")

    assert score.task_success
    assert outcome(score, "tool_selection") == "passed"
    assert outcome(score, "arguments") == "not_applicable"


def test_call_on_an_irrelevant_request_fails_selection_and_text(ran):
    """Situation 10."""
    assert failing(ran.score("decline-2")) == ["tool_selection", "text_turn", *END]


def test_silence_on_a_text_turn_fails_the_text(ran):
    """Situation 11."""
    assert failing(ran.score("decline-3")) == ["text_turn", *END]


def test_cut_generation_executes_nothing_although_its_call_is_right(ran):
    """Situation 12."""
    score = ran.score("look-2")

    assert score.episode_status == "candidate_mismatch"
    assert score.cause == "episode.incomplete_finish"
    assert score.gate("trace_completion").reason_code == "trace_completion.mismatch"
    assert statuses(ran, "look-2") == ["not_executed"]
    assert len(ran.asked("look-2")) == 1


def test_repeated_call_ids_execute_nothing(ran):
    """Situation 13."""
    assert ran.score("pair-4").episode_status == "unusable_tool_call_ids"
    assert statuses(ran, "pair-4") == ["not_executed", "not_executed"]


def test_endpoint_that_stays_down_is_no_verdict_and_no_success(ran):
    """Situation 14."""
    score = ran.score("look-3")

    assert score.episode_status == "candidate_call_failed"
    assert score.non_candidate_stop
    assert not score.task_success
    assert {gate.failure_class for gate in score.gates} <= {None, "infrastructure"}
    assert ran.episode("look-3").reason_code == (
        "episode.candidate_call_failed.provider_unavailable"
    )
    assert outcome(score, "arguments") == "not_applicable"


@pytest.mark.slow
def test_refused_key_stops_the_run_and_leaves_no_answer(desk_of):
    """Situation 15."""
    desk = desk_of("look-1", "look-2", "look-3")
    refusal = json_reply({"error": {"message": "no"}}, status=401)
    with desk.served({ticket: [refusal] for ticket in ANSWERS}) as server:
        config = desk.config(server.url, limits={"max_parallel_tasks": 1})
        with pytest.raises(CandidateError) as caught:
            desk.run(config)

    assert exit_status(caught.value.code) == EXIT_CANDIDATE
    assert len(server.requests) == 1
    path = config.paths.output_dir / "candidate_io_cache.jsonl"
    with CandidateLog.open(path, writable=False) as log:
        assert [e.record_type for e in log.log.entries()] == ["request", "attempt"]


def test_confirmed_call_before_the_answer_runs_no_pack_code(ran):
    """Situation 16."""
    (execution,) = ran.episode("lend-2").execution.executions

    assert ran.score("lend-2").episode_status == "confirmation_not_earned"
    assert execution.reason_code == "tool_execution.confirmation_not_earned"
    assert execution.state_before_hash is None
    assert assertion_statuses(ran, "lend-2") == ["failed"]


def test_probe_without_confirmation_executes(ran):
    """Situation 17."""
    (execution,) = ran.episode("lend-3").execution.executions

    assert execution.result == {"status": "awaiting_confirmation"}
    assert execution.state_commit == "not_committed"
    assert ran.score("lend-3").episode_status == "candidate_mismatch"


def test_hanging_mutation_is_unknown_and_never_sent_again(ran):
    """Situation 18."""
    score = ran.score("ring-1")

    assert score.episode_status == "unknown_commit_state"
    assert statuses(ran, "ring-1") == ["unknown_commit_state"]
    assert metric(score, "path_success_rate") == "metric.path_evidence_incomplete"
    assert score.non_candidate_stop


def test_hanging_reader_is_a_timeout_of_the_oracle(ran):
    """Situation 19."""
    assert ran.score("look-4").episode_status == "oracle_timeout"
    assert statuses(ran, "look-4") == ["timeout"]


def test_result_that_is_a_list_is_malformed(ran):
    """Situation 20."""
    (execution,) = ran.episode("look-5").execution.executions

    assert ran.score("look-5").episode_status == "oracle_result_malformed"
    assert execution.status == "malformed_result"
    assert execution.malformed_result == [1, 2]
    assert execution.malformed_result_type == "array"


def test_business_rejection_is_an_answer_like_any_other(ran):
    """Situation 21."""
    (execution,) = ran.episode("look-6").execution.executions
    released = ran.asked("look-6")[1][-1]

    assert execution.status == "business_rejection"
    assert execution.released_to_model
    assert released["content"] == '{"error":{"code":"not_found","id":"BK-100"}}'
    assert ran.score("look-6").task_success


def test_error_without_a_code_is_the_oracles_fault(ran):
    """Situation 22."""
    score = ran.score("look-7")

    assert statuses(ran, "look-7") == ["tool_error"]
    assert score.non_candidate_stop
    assert score.gate("oracle_execution").failure_class == "infrastructure"


def test_error_field_that_is_null_is_an_ordinary_value(ran):
    """Situation 22, its other side (spec 1.5)."""
    assert statuses(ran, "look-8") == ["completed"]
    assert ran.score("look-8").task_success


@pytest.mark.parametrize(("ticket", "right"), [("chain-1", False), ("chain-2", True)])
def test_dependent_value_is_the_live_one_and_not_golds(ran, ticket, right):
    """Situation 23."""
    score = ran.score(ticket)

    assert (outcome(score, "arguments") == "passed") is right
    assert score.task_success is right
    assert outcome(score, "dependency_resolution") == "passed"


def test_producer_without_its_field_ends_the_episode_as_infrastructure(ran):
    """Situation 24."""
    score = ran.score("chain-3")
    gate = score.gate("dependency_resolution")

    assert score.episode_status == "dependency_resolution_failed"
    assert ran.episode("chain-3").reason_code == (
        "episode.dependency.result_path_missing"
    )
    assert (gate.outcome, gate.failure_class) == ("failed", "infrastructure")
    assert len(ran.asked("chain-3")) == 1


@pytest.mark.slow
def test_assertion_that_reads_an_unresolved_slot_is_infrastructure(desk_of):
    """Situation 25: a foreign row, whose ticket nothing can recover."""
    desk = desk_of("ticketed-1")

    def foreign(row):
        metadata = {**row["metadata"], "surface_source": "paraphrase"}
        return {**row, "metadata": metadata, "slot_bindings": None}

    desk.publication.edit_rows(foreign)
    ran = desk.play({})

    score = ran.score("ticketed-1")
    assert score.episode_status == "assertion_infrastructure_failed"
    assert assertion_statuses(ran, "ticketed-1") == ["infrastructure_error"]
    assert score.non_candidate_stop
    assert not score.task_success


def test_assertion_that_returns_true_is_infrastructure(ran):
    """Situation 26."""
    assert ran.score("ring-2").episode_status == "assertion_infrastructure_failed"
    assert assertion_statuses(ran, "ring-2") == ["infrastructure_error"]


def test_assertions_that_all_do_not_apply_leave_their_gate_not_applicable(ran):
    """Situation 27."""
    score = ran.score("ring-3")

    assert outcome(score, "assertions") == "not_applicable"
    assert (
        metric(score, "assertion_success_rate")
        == "metric.all_assertions_not_applicable"
    )
    assert score.task_success


def test_one_byte_of_the_packs_readme_refuses_an_executable_run(desk_of):
    """Situation 28."""
    desk = desk_of("look-1")
    with (desk.publication.pack / "README.md").open("ab") as stream:
        stream.write(b" ")

    with desk.served({}) as server:
        config = desk.config(server.url)
        with pytest.raises(SourceError) as caught:
            desk.run(config)

        trace = desk.config(server.url, "trace", executable=False)

    assert caught.value.code == "eval_source_oracle_pack_drift"
    assert "tree/README.md (changed" in str(caught.value)
    assert not server.requests
    assert verify_source(trace).oracle is None


@pytest.mark.slow
def test_recorded_answers_need_neither_key_nor_network(desk_of, monkeypatch):
    """Situation 29."""
    monkeypatch.setenv("DESK_KEY", "desk-key-1234567890")
    desk = desk_of("look-1", "decline-2", "ring-4")
    ran = desk.play(ANSWERS, key_env="DESK_KEY")
    before = {t: ran.row(t).score_hash for t in ("look-1", "decline-2", "ring-4")}
    monkeypatch.delenv("DESK_KEY")

    with secluded():
        again = desk.run(ran.config)
        replayed = replay_run(ran.folder)

    assert again.replayed
    assert replayed.is_equal
    assert {t: ran.score(t).score_hash for t in before} == before


def judged_by(desk, model, **facts):
    """Say in the manifest that a model judged the surface of every row."""

    def edit(manifest):
        manifest["models"]["surface_judge"].update(enabled=True, model=model, **facts)

    desk.publication.edit_manifest(edit)


def refused(desk, **options):
    """Return the refusal of a run and how many requests arrived."""
    with desk.served({}) as server:
        config = desk.config(server.url, "refused", **options)
        with pytest.raises(ContaminationError) as caught:
            desk.run(config)
    assert not server.requests
    return caught.value


def test_exposure_that_names_the_served_model_refuses_the_run(desk_of):
    """Situation 30."""
    desk = desk_of("look-1")
    judged_by(desk, "scripted", provider="local")

    error = refused(desk)

    assert error.code == "eval_contamination_candidate_exposed"
    assert exit_status(error.code) == EXIT_CONTAMINATION


PIN = {"source": "hub", "model": "scripted", "revision": "a" * 40}
PUBLISHED = {"publication": {"requested": True}}


@pytest.mark.slow
def test_name_that_nobody_pins_refuses_publication_and_lets_a_debug_run_go_on(desk_of):
    """Situation 31."""
    desk = desk_of("look-1")
    judged_by(desk, "scripted", provider="elsewhere")

    ran = desk.play({})
    unpinned = None
    try:
        desk.config("http://127.0.0.1:9/v1", "unpinned", **PUBLISHED)
    except ConfigError as error:
        unpinned = error
    unresolved = refused(desk, identity=PIN, **PUBLISHED)

    assert not ran.finished.report["publication_allowed"]
    assert ran.candidate["successful_tasks"] == 1
    assert unpinned.code == "eval_publication_policy_violation"
    assert unresolved.code == "eval_contamination_unresolved"


DIGEST = "5" * 64


def test_equal_digest_matches_with_and_without_its_prefix(desk_of):
    """Situation 32."""
    desk = desk_of("look-1")
    judged_by(desk, "another-name", provider="elsewhere", weights_digest=DIGEST)

    error = refused(desk, identity={"weights_digest": f"sha256:{DIGEST}"})

    assert error.code == "eval_contamination_candidate_exposed"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "exposed"), [("another-name", False), ("scripted", True)]
)
def test_digests_of_two_kinds_leave_the_verdict_to_the_names(desk_of, model, exposed):
    """Situation 33."""
    desk = desk_of("look-1")
    digest = f"bfcl-weight-manifest-v1:{'6' * 64}"
    judged_by(desk, model, provider="local", weights_digest=digest)
    own = {"weights_digest": f"sha256:{DIGEST}"}

    if exposed:
        assert refused(desk, identity=own).code == (
            "eval_contamination_candidate_exposed"
        )
    else:
        assert desk.play({}, identity=own).candidate["successful_tasks"] == 1


@pytest.mark.slow
def test_folder_with_the_report_of_another_config_is_refused(desk_of):
    """Situation 34."""
    desk = desk_of("look-1")
    first = desk.play({})
    other = desk.config(
        "http://127.0.0.1:9/v1", "other", outputs={"output_dir": first.folder.name}
    )

    with pytest.raises(ArtifactError) as caught:
        desk.run(other)

    assert exit_status(caught.value.code) == EXIT_CONFLICT


def test_row_with_one_call_lists_its_order_as_not_applicable(ran):
    """Situation 35."""
    gate = ran.score("look-1").gate("call_ordering")

    assert (gate.outcome, gate.reason_code) == (
        "not_applicable",
        "call_ordering.not_applicable",
    )
    assert ran.row("look-1").call_order_correct is None


def test_trace_mode_judges_the_same_conversations_alike(desk, ran):
    """The trace situations again, with recorded results and without a pack."""
    trace = desk.play(ANSWERS, "trace", executable=False)

    for ticket in ENDS_BEFORE_THE_ORACLE:
        gates = {gate.gate: gate.outcome for gate in trace.score(ticket).gates}
        live = {gate.gate: gate.outcome for gate in ran.score(ticket).gates}
        assert gates.items() <= live.items(), ticket


def test_every_end_is_a_row_of_the_cause_table_and_of_the_task_table(ran):
    for ticket in ANSWERS:
        row = ran.row(ticket)

        assert row.cause == ran.score(ticket).cause
        assert CAUSES[row.cause].owner.value == row.owner
        assert row.score_hash == ran.score(ticket).score_hash
