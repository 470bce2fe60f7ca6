"""Every case of `mlperf-agentic/`: intermediate values, whole runs, odd input.

A turn case is scored directly and through the log; its action lists and intents
compare, not only its score. Where the original gives up on what a candidate or a
server wrote, the run is scored here and the reason is counted by name.
"""

import hashlib
import json
from collections import defaultdict

import pytest

from harness.causes import exit_status
from harness.cli.main import main
from harness.errors import FairtrialError
from harness.predictions.mlperf_agentic import score_report
from harness.predictions.mlperf_dataset import read_dataset
from harness.scoring.mlperf_agentic.actions import COMMAND_KEYS, TOOL_NAME, bash_actions
from harness.scoring.mlperf_agentic.aggregate import (
    score_rows,
    score_run,
)
from harness.scoring.mlperf_agentic.aliases import ALIASES, WRAPPERS
from harness.scoring.mlperf_agentic.coding import overlap
from harness.scoring.mlperf_agentic.conversation_ids import Domain
from harness.scoring.mlperf_agentic.events import read_event
from harness.scoring.mlperf_agentic.recorded import Recorded
from harness.scoring.mlperf_agentic.turn_log import TurnLog
from harness.scoring.mlperf_agentic.turns import answer_of, truth_of, turn_score
from tests.parity.folders import fixture_lines, fixture_path
from tests.parity.mlperf_edges import event, log_bytes, output, run_of

FOLDER = "mlperf-agentic"
IDS_STAY_TEXT = {"numeric_ids"}
"""The original makes numbers of the ids, then finds none of them in the log."""
TABLES_WORK = {"parquet_coding", "parquet_coding_no_text"}
SKIPPED = {
    "huge_integer": {"arguments_integer_too_long": 1},
    "deep_nesting": {"arguments_too_deep": 1},
    "null_delta": {"delta_not_object": 1},
    "string_delta": {"delta_not_object": 1},
    "object_fragment": {"delta_fragment_not_text": 1},
    "mixed_index": {"delta_index_unordered": 1, "command_not_text": 1},
    "list_index": {"delta_index_unusable": 1},
    "function_string": {"delta_function_not_object": 1},
    "chunk_then_flat": {"delta_chunk_not_array": 1},
    "event_type_number": {"event_type_not_text": 1},
    "event_type_null": {"event_type_not_text": 1},
    "event_type_list": {"event_type_not_text": 1},
    "invalid_utf8": {"line_not_utf8": 1},
}
"""What stands in the diagnostics where the original ended its run."""


def lines_of(config, name):
    if not fixture_path(config, FOLDER, name).is_file():
        return []
    return fixture_lines(config, FOLDER, name)


def aggregate_folders(config):
    root = fixture_path(config, FOLDER, "aggregates")
    return sorted(path for path in root.glob("*") if path.is_dir())


def edges(config, kind):
    lines = lines_of(config, "upstream_edge_behaviour.jsonl")
    about_files = [
        edge
        for edge in lines
        if edge["name"].startswith(("dataset_", "no_", "index_map_"))
    ]
    kept = [
        edge
        for edge in lines
        if edge not in about_files
        and ("raised" in edge["upstream"]) == (kind == "skipped")
        and edge["name"] not in TABLES_WORK | IDS_STAY_TEXT
    ]
    better = [e for e in lines if e["name"] in TABLES_WORK | IDS_STAY_TEXT]
    return {"refused": about_files, "better": better}.get(kind, kept)


def pytest_generate_tests(metafunc):
    config, named = metafunc.config, metafunc.fixturenames
    for name in {"case", "logged_case"} & set(named):
        cases = [
            case
            for case in lines_of(config, "parity.jsonl")
            if name == "case" or case["end_to_end"]
        ]
        metafunc.parametrize(name, cases, ids=[case["id"] for case in cases])
    if "folder" in named:
        folders = aggregate_folders(config)
        metafunc.parametrize("folder", folders, ids=[path.name for path in folders])
    for kind in ("refused", "skipped", "returned", "better"):
        if f"{kind}_edge" in named:
            found = edges(config, kind)
            metafunc.parametrize(
                f"{kind}_edge", found, ids=[edge["name"] for edge in found]
            )


def test_tables_are_the_contracts(request):
    text = fixture_path(request.config, FOLDER, "alias_table.json").read_text()
    table = json.loads(text)

    assert dict(ALIASES) == table["aliases"]
    assert sorted(set(ALIASES.values())) == table["canonical"]
    assert sorted(WRAPPERS) == table["shell_wrappers"]
    assert table["tool_name"] == TOOL_NAME
    assert list(COMMAND_KEYS) == table["command_keys"]


def test_turn_has_the_expected_parts_and_score(case):
    truth = truth_of(case["conversation_id"], case["gt_turn"])
    answer = answer_of(truth.domain, case["model_turn"])

    found = {
        "domain": truth.domain.value,
        "has_ground_truth": bool(truth.names),
        "score": turn_score(truth, answer) if truth.names else None,
    }
    found["score_4dp"] = found["score"] and round(found["score"], 4)
    if truth.domain is Domain.WORKFLOW:
        found |= {"gt_intents": list(truth.names), "model_intent": answer.intent}
    else:
        names = answer.actions.names
        found |= {"gt_actions": list(truth.names), "model_actions": list(names)}
        found |= overlap(truth.names, names)._asdict()
    assert case["expected"] == found


def test_turn_scores_alike_through_the_log(logged_case):
    """The other cases hold a model turn that the log cannot carry."""
    name, expected = logged_case["conversation_id"], logged_case["expected"]
    recorded = Recorded()
    user = {"role": "user", "turn": 1}
    recorded.add_conversation(name, [user, {**logged_case["gt_turn"], "turn": 2}])
    recorded.sort()
    log = TurnLog(recorded)
    data = as_recorded(None, logged_case["model_turn"])
    for line in (
        event("sample.issued", None, name),
        event("sample.complete", data, name),
    ):
        log.add(read_event(json.dumps(line)))
    log.close()
    rows = list(score_rows(score_run(log)))

    if not expected["has_ground_truth"]:
        assert rows == []
        return
    parts = ("gt_intents", "model_intent", "gt_actions", "model_actions")
    row = {part: expected[part] for part in parts if part in expected}
    assert rows == [
        {
            "conversation_id": name,
            "repeat": 1,
            "turn": 2,
            "domain": expected["domain"],
            **row,
            "score": expected["score_4dp"],
        }
    ]


def test_command_writes_the_score_file_of_a_run(folder, tmp_path, capsys):
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    made = tmp_path / "out"

    status = main(
        [
            *("score", "mlperf-agentic", "--dataset", str(folder / "dataset.jsonl")),
            *("--report-dir", str(folder), "--output", str(made), "--json"),
        ]
    )

    assert status == 0
    text = (made / "scores.json").read_text(encoding="ascii")
    assert text == json.dumps(expected["scores_json"], indent=2)
    printed = json.loads(capsys.readouterr().out)
    assert {name: printed[name] for name in ("score", "n_repeats")} == (
        expected["returned"]
    )
    assert sorted(path.name for path in made.iterdir()) == [
        "diagnostics.json",
        "eval_record.json",
        "scores.json",
    ]


def score(run, folder):
    report = folder / "report"
    report.mkdir()
    return score_report(run.write(report), report, folder / "out")


def test_odd_input_scores_as_upstream(returned_edge, tmp_path):
    expected = returned_edge["upstream"]

    scored = score(run_of(returned_edge), tmp_path)

    assert [scored.score, scored.n_repeats] == expected["returned"]
    assert scored.head["turns"] == expected["turns"]


def test_input_that_ends_upstreams_run_is_a_named_skip(skipped_edge, tmp_path):
    scored = score(run_of(skipped_edge), tmp_path)

    details = scored.diagnostics
    skips = details["calls_skipped"] | details["lines"]["skipped"]
    assert skips
    assert skips == SKIPPED.get(skipped_edge["name"], skips)
    assert scored.head["turns"] == {
        "issued": 1,
        "expected": 1,
        "observed": 1,
        "missing": 0,
        "scored": 1,
    }


def test_unusable_files_are_refused(refused_edge, tmp_path):
    with pytest.raises(FairtrialError) as refusal:
        score(run_of(refused_edge), tmp_path)

    assert exit_status(refusal.value.code) == 3
    assert not (tmp_path / "out").exists()


def test_input_that_upstream_should_have_scored_is_scored(better_edge, tmp_path):
    assert score(run_of(better_edge), tmp_path).score == 1.0


@pytest.fixture(scope="module")
def recorded_rows(realdata):
    rows = defaultdict(list)
    with realdata.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            rows[row["conversation_id"]].append(row)
    for conversation in rows.values():
        conversation.sort(key=lambda row: row["turn"])
    return rows


def test_recorded_turns_have_the_expected_actions(request, realdata, recorded_rows):
    turns = {
        (turn.source_id, turn.client_turn): turn
        for turn in read_dataset(realdata).turns
    }
    lines = lines_of(request.config, "realdata/expected_actions_shared.jsonl")
    shared = [line for line in lines if line["conversation_id"] in recorded_rows]

    assert shared
    for line in shared:
        turn = turns[line["conversation_id"], line["client_turn"]]
        answer = recorded_rows[turn.source_id][turn.assistant_turn - 1]
        found = {
            "conversation_id": turn.source_id,
            "client_turn": turn.client_turn,
            "assistant_turn": turn.assistant_turn,
            "n_tool_calls": len(answer.get("tool_calls") or ()),
            "actions": list(turn.truth.names),
        }
        assert line == found


def replayed(recorded_rows, realdata, answer_with, folder):
    """Score a run in which a rule answers every expected turn."""
    events = []
    for turn in read_dataset(realdata).turns:
        rows = recorded_rows[turn.source_id]
        data = answer_with(rows, rows[turn.assistant_turn - 1])
        place = (turn.source_id, turn.client_turn, f"u{len(events)}")
        events.append(event("sample.issued", None, *place))
        events.append(event("sample.complete", data, *place))
    report = folder / "report"
    report.mkdir()
    (report / "events.jsonl").write_bytes(log_bytes(events))
    (report / "sample_idx_map.json").write_text('{"performance": {}}')
    return score_report(realdata, report, folder / "out")


def as_recorded(_, answer):
    return output(
        answer.get("content") or "",
        answer.get("reasoning_content"),
        answer.get("tool_calls"),
    )


def first_line(_, answer):
    calls = answer.get("tool_calls")
    text, reasoning = answer.get("content") or "", answer.get("reasoning_content")
    if not calls:
        return output(text, reasoning)
    arguments = calls[0]["function"]["arguments"]
    if isinstance(arguments, str):
        arguments = json.loads(arguments)
    command = json.dumps({"command": arguments["command"].split("\n")[0]})
    function = {"name": "bash", "arguments": command}
    return output(
        text, reasoning, [{"id": "c0", "type": "function", "function": function}]
    )


REPLAYS = {"self": as_recorded, "firstline": first_line}


@pytest.mark.slow
@pytest.mark.parametrize("rule", REPLAYS)
def test_replay_of_the_whole_file_has_the_published_figures(
    rule, request, realdata, recorded_rows, tmp_path
):
    """Of a part of the file only the replay of the truth is known: 1.0 everywhere."""
    path = fixture_path(request.config, FOLDER, "realdata/summary_shared.json")
    summary = json.loads(path.read_text(encoding="utf-8"))
    digest = hashlib.sha256(realdata.read_bytes()).hexdigest()

    scored = replayed(recorded_rows, realdata, REPLAYS[rule], tmp_path)

    if rule == "self":
        assert scored.score == 1.0
    if digest == summary["input"]["sha256"]:
        expected = summary["replays"][rule]
        assert (scored.score, scored.n_repeats) == (
            expected["score"],
            expected["n_repeats"],
        )
        assert scored.head["turns"] == expected["turns"]
        assert scored.head["domains"] == expected["domains"]


def test_stages_of_recorded_commands_are_counted(realdata, recorded_rows):
    stages = [turn.truth.stages for turn in read_dataset(realdata).turns]
    commands = sum(
        bash_actions(row.get("tool_calls")).stages
        for rows in recorded_rows.values()
        for row in rows
        if row["role"] == "assistant"
    )

    assert sum(stages) == commands
