"""`fairtrial run` with a config of kind mlperf-agentic, as a user calls it."""

import json
import socket

import pytest

from harness.cli.main import main
from harness.verify_bundle import main as verify_alone
from tests.run.teacher_forced.conversations import ASKED, Teacher, TurnBench
from tests.servers import json_reply


@pytest.fixture
def turns(tmp_path):
    return TurnBench(tmp_path)


def init(turns, *words):
    return main(
        [
            *("config", "init", "--kind", "mlperf-agentic", "--model", "gold"),
            *("--dataset", str(turns.dataset), "--base-url", turns.base_url),
            *("--output", str(turns.file), *words),
        ]
    )


def serve(turns, bend=lambda *_: None):
    teacher = Teacher(bend=bend)
    return teacher, teacher.served()


def test_init_run_and_score_give_the_same_scores(turns, tmp_path, capsys):
    def bend(name, turn, _):
        failed = (name, turn) == ("repo-a", 5)
        return json_reply({}, 400) if failed else None

    _, server = serve(turns, bend)
    with server:
        turns.base_url = server.url
        assert init(turns) == 0
        assert main(["run", str(turns.file)]) == 9
    scored = main(
        [
            *("score", "mlperf-agentic", "--dataset", str(turns.dataset)),
            *("--report-dir", str(turns.output), "--output", str(tmp_path / "s")),
        ]
    )

    assert scored == 0
    for name in ("scores.json", "diagnostics.json"):
        ours = (turns.output / name).read_bytes()
        assert (tmp_path / "s" / name).read_bytes() == ours
    printed = capsys.readouterr().out
    assert "unanswered       1: 1 provider_rejected" in printed
    assert "no headline: turns_missing" in printed
    assert "not publishable: stops.share_over_cap" in printed


def test_progress_goes_to_stderr_and_the_report_to_stdout(turns, capsys):
    _, server = serve(turns)
    with server:
        turns.base_url = server.url
        init(turns)
        capsys.readouterr()
        assert main(["run", str(turns.file), "--json"]) == 0

    out, err = capsys.readouterr()
    assert json.loads(out) == turns.json("eval_report.json")
    assert err.splitlines()[-1] == (
        f"gold: {ASKED}/{ASKED} turns, 3/3 conversations, score so far 1.0000"
    )


def test_dry_run_asks_nobody_and_makes_nothing(turns, capsys):
    init(turns)
    capsys.readouterr()

    assert main(["run", str(turns.file), "--dry-run"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert found["candidate_network_used"] is False
    assert found["planned_turns"] == found["dataset"]["turns"] == ASKED
    assert found["dataset"]["scorable_turns"] == ASKED - 1
    assert not turns.output.exists()


def test_finished_folder_replays_with_no_socket(turns, capsys, monkeypatch):
    _, server = serve(turns)
    with server:
        turns.base_url = server.url
        init(turns)
        main(["run", str(turns.file)])
        first = capsys.readouterr().out

    def refuse(*_, **__):
        raise AssertionError("a replay opened a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    assert main(["run", str(turns.file)]) == 0

    out, err = capsys.readouterr()
    assert first.endswith(out)
    assert "replayed from its evidence" in err


def test_endpoint_that_refuses_the_key_ends_with_5_and_resume_needs_a_word(
    turns, capsys
):
    refusing = [True]

    def bend(*_):
        return json_reply({}, 401) if refusing[0] else None

    _, server = serve(turns, bend)
    with server:
        turns.base_url = server.url
        init(turns)
        assert main(["run", str(turns.file)]) == 5
        refusing.clear()
        refusing.append(False)
        assert main(["run", str(turns.file)]) == 7
        assert main(["run", str(turns.file), "--resume"]) == 0

    assert "eval_run_unfinished" in capsys.readouterr().err


def test_broken_data_set_ends_with_3_before_anything_is_made(turns, capsys):
    init(turns)
    turns.dataset.write_text('{"conversation_id": "a", "turn": 2, "role": "tool"}\n')

    assert main(["run", str(turns.file)]) == 3
    assert main(["run", str(turns.file), "--dry-run"]) == 3
    assert not turns.output.exists()
    assert "eval_predictions_invalid" in capsys.readouterr().err


def test_broken_config_ends_with_2_and_names_every_key(turns, capsys):
    init(turns)
    text = turns.file.read_text()
    turns.file.write_text(
        text.replace("repeats: 1", "repeats: 0").replace("salt: null", "pepper: null")
    )

    assert main(["run", str(turns.file)]) == 2
    err = capsys.readouterr().err
    assert "asking.repeats" in err
    assert "asking.pepper" in err


def test_init_says_what_is_missing_and_what_belongs_elsewhere(turns, capsys):
    missing = main(
        [*("config", "init", "--kind", "mlperf-agentic"), "--output", "x.yaml"]
    )
    foreign = init(turns, "--manifest", "rows.jsonl")

    assert (missing, foreign) == (2, 2)
    err = capsys.readouterr().err
    assert "--dataset is missing" in err
    assert "--manifest belongs to --kind predict" in err


def test_init_as_json_names_file_and_hash(turns, capsys):
    assert init(turns, "--json") == 0

    found = json.loads(capsys.readouterr().out)
    assert found["output"] == str(turns.file)
    assert found["eval_config_hash"].startswith("sha256:")


@pytest.fixture
def finished(turns, capsys):
    """A finished run."""
    _, server = serve(turns)
    with server:
        turns.base_url = server.url
        init(turns)
        assert main(["run", str(turns.file)]) == 0
    capsys.readouterr()
    return turns


@pytest.mark.parametrize(
    ("command", "word"), [("replay", "replayed"), ("verify", "verified")]
)
def test_folder_alone_is_worked_out_again(finished, capsys, command, word):
    finished.file.unlink()
    finished.dataset.unlink()

    assert main([command, str(finished.output)]) == 0

    out = capsys.readouterr().out
    assert out.startswith(f"{word} {ASKED} turns")
    assert out.endswith("result: equal\n")


@pytest.mark.parametrize("command", ["replay", "verify"])
def test_folder_that_states_something_else_ends_with_1(finished, capsys, command):
    scores = finished.output / "scores.json"
    scores.write_text(scores.read_text().replace('"score": 1.0', '"score": 0.9', 1))

    assert main([command, str(finished.output), "--json"]) == 1

    out, err = capsys.readouterr()
    places = {each["where"] for each in json.loads(out)["differences"]}
    assert "scores.json" in places
    assert "eval_artifact_invalid" in err


@pytest.mark.parametrize(
    "name",
    [
        "scores.json",
        "events.jsonl",
        "eval_report.json",
        "eval_record.json",
        "candidate_io_cache.jsonl",
        "resolved_eval_config.json",
    ],
)
def test_lost_file_is_named_and_ends_with_1(finished, capsys, name):
    (finished.output / name).unlink()

    assert main(["verify", str(finished.output), "--json"]) == 1

    (lost,) = json.loads(capsys.readouterr().out)["differences"]
    assert (lost["where"], lost["actual"]) == (name, '"no such file"')


def test_verification_by_the_standard_library_refuses_the_kind(finished, capsys):
    assert verify_alone([str(finished.output)]) == 3

    assert "runs of kind mlperf-agentic" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["explain", "repo-a"],
        ["sensitivity"],
        ["rescore", "--output", "new"],
        ["seal", "--output", "new"],
    ],
    ids=lambda words: words[0],
)
def test_commands_for_other_runs_refuse_the_kind_by_name(finished, capsys, words):
    command, *rest = words
    rest = [str(finished.folder / "new") if w == "new" else w for w in rest]

    assert main([command, str(finished.output), *rest]) == 3

    assert "eval_runner_mode_unsupported" in capsys.readouterr().err
