"""The command line: exit statuses, what is shown, and what is refused at once."""

import json
import os
import signal
import subprocess
import sys

import pytest

from harness.cli.main import main
from harness.evidence.candidate_log import CandidateLog
from harness.predict.folder import PredictFolder
from tests.predict.asking import (
    CONTRACTS,
    DECODING,
    Flaky,
    Workspace,
    asked,
    chat,
    embeddings,
    label_rows,
    right,
    right_or_vectors,
    server,
)
from tests.servers import json_reply

REFUSED = json_reply({"error": {"message": "no"}}, status=401)


@pytest.fixture
def endpoint():
    with server(right_or_vectors) as running:
        yield running


@pytest.fixture
def space(tmp_path, endpoint):
    return Workspace(tmp_path, url=endpoint.url)


def predict(space, *words, output=None):
    config = space.write()
    folder = output or space.output
    return main(["predict", str(config), "--output", str(folder), *words])


def record_of(folder):
    return json.loads((folder / "eval_record.json").read_text())


def tree(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_record_is_shown_as_json(space, capsys):
    status = predict(space, "--json")

    assert status == 0
    assert json.loads(capsys.readouterr().out) == record_of(space.output)


def test_metrics_are_shown_with_their_counts(space, capsys):
    predict(space)

    shown = capsys.readouterr().out
    assert "accuracy (primary)  1.0000  6/6" in shown
    assert "Evaluation original: completed" in shown


def test_finished_folder_is_said_to_be_finished(space, endpoint, capsys):
    predict(space)
    before = len(endpoint.requests)

    assert predict(space) == 0
    assert "worked out from its evidence" in capsys.readouterr().err
    assert len(endpoint.requests) == before


def test_record_says_what_was_asked_and_what_nobody_can_tell(space):
    predict(space)

    record = record_of(space.output)
    (candidate,) = record["subjects"]
    assert record["record_id"] == "original"
    assert record["protocol"]["fields"]["decoding"]["max_tokens"] == 64
    assert candidate["decoding"]["applied"]["temperature"] == "unknown"
    assert candidate["conditions"]["device"] == {
        "mixed": False,
        "rows": [6],
        "values": ["unknown"],
    }
    assert record["rescorable"] == {"rescorable": True, "reasons": []}


def test_two_served_models_are_a_mixture(tmp_path):
    def changing(received):
        envelope = json.loads(right(received).body)
        late = "1" in received.json()["messages"][-1]["content"]
        envelope["model"] = "new" if late else "old"
        return json_reply(envelope)

    with server(changing) as running:
        space = Workspace(tmp_path, url=running.url)
        predict(space)

    (candidate,) = record_of(space.output)["subjects"]
    assert candidate["conditions"]["served_model"] == {
        "mixed": True,
        "rows": [1, 5],
        "values": ["new", "old"],
    }


def test_refused_key_is_an_endpoint_stop_with_a_failed_record(tmp_path):
    flaky = Flaky("2", reply=REFUSED)
    with server(flaky) as running:
        space = Workspace(tmp_path, url=running.url)

        assert predict(space) == 5
        assert record_of(space.output)["status"] == "failed"
        flaky.words.clear()
        assert predict(space) == 7
        assert predict(space, "--resume") == 0
    assert record_of(space.output)["status"] == "completed"


def scored_again(space, root):
    folder, again = space.output, root / "again"
    if space.contract == "action-ir":
        rows = ("--manifest", folder / "manifest.jsonl", "--predictions")
    else:
        labels = space.contract == "classification"
        rows = ("--labels" if labels else "--schema", folder / "declaration.json")
        rows = (*rows, "--rows")
    words = (*rows, folder / "predictions.jsonl", "--output", again)
    return main(["score", space.contract, *map(str, words)]), again


@pytest.mark.parametrize("contract", CONTRACTS)
def test_score_command_gives_the_same_bytes(tmp_path, endpoint, contract):
    space = Workspace(tmp_path, contract, url=endpoint.url)
    predict(space)

    status, again = scored_again(space, tmp_path)

    assert status == 0
    for name in ("sample_scores.jsonl", "aggregate.json"):
        kept = space.output / "scores" / "candidate" / name
        assert kept.read_bytes() == (again / name).read_bytes()


def test_receipt_beside_the_predictions_is_compared(tmp_path, endpoint):
    space = Workspace(tmp_path, "action-ir", url=endpoint.url)
    predict(space)
    predictions = space.output / "predictions.jsonl"
    predictions.write_text(predictions.read_text().replace("true", "false"))
    predictions.write_text(predictions.read_text() + "\n")

    status, _ = scored_again(space, tmp_path)

    assert status == 3


def test_too_many_stops_have_their_own_status(tmp_path):
    with server(Flaky("about")) as running:
        space = Workspace(tmp_path, url=running.url)

        assert predict(space) == 9
    assert record_of(space.output)["error"]["code"] == "stops.share_over_cap"


def test_measurements_of_an_endpoint_say_what_they_measure(space):
    space.document["measure"] = {"rows": 4}

    predict(space)

    (candidate,) = record_of(space.output)["subjects"]
    figures = {each["name"]: each for each in candidate["measurements"]}
    assert figures["tokens_per_second"]["value"] > 0
    assert "4 recorded rows" in figures["tokens_per_second"]["boundary"]
    assert figures["first_token_cold_s"]["value"] is None
    assert "not measured" in figures["peak_memory_bytes"]["boundary"]


@pytest.mark.parametrize("command", ["replay", "verify"])
def test_folder_alone_is_worked_out_again(tmp_path, endpoint, command, capsys):
    space = Workspace(tmp_path, url=endpoint.url)
    space.document["engines"]["vectors"] = embeddings(endpoint.url)
    (tmp_path / "plain.txt").write_text("Say {contract}")
    space.document["comparators"] = [
        {"name": "near", "kind": "embedding", "engine": "vectors", "train": None},
        {"name": "plain", "kind": "engine", "engine": "main", "system": "plain.txt"},
    ]
    predict(space)
    folder = tmp_path / "elsewhere" / "moved"
    folder.parent.mkdir()
    space.output.rename(folder)
    for path in tmp_path.iterdir():
        if path.is_file():
            path.unlink()
    capsys.readouterr()

    assert main([command, str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "differences": [],
        "equal": True,
        "rows": 6,
        "subjects": ["candidate", "near", "plain"],
    }


@pytest.mark.parametrize("command", ["replay", "verify"])
def test_edited_folder_is_not_equal(space, command, capsys):
    predict(space)
    predictions = space.output / "predictions.jsonl"
    predictions.write_text(predictions.read_text().replace("stop", "length"))

    assert main([command, str(space.output)]) == 1
    assert "predictions.jsonl" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("seal", "--output", "sealed"),
        ("rescore", "--output", "new"),
        ("sensitivity",),
        ("explain", "row-0"),
    ],
)
def test_command_for_episodes_refuses_a_predict_run_by_name(space, words, capsys):
    predict(space)
    command, *rest = words

    assert main([command, str(space.output), *rest]) == 3
    assert "does not serve predict runs" in capsys.readouterr().err


def test_later_evaluation_is_worked_out_again_alone(tmp_path, endpoint):
    space = Workspace(tmp_path, url=endpoint.url)
    predict(space)
    words = ("--evaluate", str(space.output), "--engine", "main")
    predict(space, *words, output=tmp_path / "later")
    space.output.rename(tmp_path / "gone")

    assert main(["verify", str(tmp_path / "later")]) == 0


def test_other_engine_answers_by_its_name(space, endpoint):
    space.document["engines"]["other"] = chat(
        endpoint.url, candidate={"model": "second"}
    )

    predict(space, "--engine", "other")

    assert {each.json()["model"] for each in endpoint.requests} == {"second"}


def test_everything_that_is_wrong_is_told_in_one_pass(tmp_path, endpoint, capsys):
    space = Workspace(tmp_path, url=endpoint.url)
    document = space.document
    document["surprise"] = 1
    document["engine"] = "missing"
    document["manifest"]["declaration"] = "nowhere.json"
    document["manifest"]["sha256"] = "F" * 64
    document["decoding"] = {**DECODING, "top_k": 5, "num_beams": 2}
    document["evaluation"]["metric"] = "bleu"
    document["engines"]["greedy"] = {
        "kind": "torch_local",
        "model": "checkpoint",
        "checkpoint_sha256": None,
        "device": "cpu",
        "dtype": "float64",
        "batch_size": 2,
        "model_identity": "local:tiny@main",
        "chat_template": True,
    }
    document["engines"]["odd"] = {"kind": "quill"}
    document["comparators"] = [
        {"name": "candidate", "kind": "engine", "engine": "main", "system": None},
        {"name": "near", "kind": "embedding", "engine": "main", "train": "rows.jsonl"},
        {"name": "x", "kind": "engine", "engine": "main", "system": None, "y": 1},
    ]

    assert predict(space, "--json") == 2

    report = json.loads(capsys.readouterr().out)["error"]["violations"]
    places = [violation["where"].split(" (")[0] for violation in report]
    assert sorted(places) == sorted(
        [
            "surprise",
            "engine",
            "manifest.declaration",
            "manifest.sha256",
            "decoding.top_k",
            "decoding.num_beams",
            "evaluation.metric",
            "engines.greedy.dtype",
            "engines.odd.kind",
            "comparators[0].name",
            "comparators[1].engine",
            "comparators[1].train",
            "comparators[2].y",
        ]
    )
    assert endpoint.requests == []
    assert not space.output.exists()


def test_manifest_of_another_hash_is_a_source_refusal(space, endpoint):
    space.document["manifest"]["sha256"] = "f" * 64

    assert predict(space) == 3
    assert endpoint.requests == []


def test_settings_are_refused_for_every_engine_that_would_answer(
    tmp_path, endpoint, capsys
):
    space = Workspace(tmp_path, url=endpoint.url)
    space.document["decoding"] = {
        **DECODING,
        "temperature": 0.7,
        "greedy": False,
        "top_k": 40,
        "repetition_penalty": 1.1,
    }
    space.document["engines"]["greedy"] = {
        "kind": "torch_local",
        "model": "checkpoint",
        "checkpoint_sha256": None,
        "device": "cpu",
        "dtype": "float32",
        "batch_size": 2,
        "model_identity": "local:tiny@main",
        "chat_template": True,
    }
    space.document["comparators"] = [
        {"name": "base", "kind": "engine", "engine": "greedy", "system": None}
    ]

    assert predict(space, "--json") == 2

    report = json.loads(capsys.readouterr().out)["error"]
    assert report["code"] == "eval_engine_setting_unsupported"
    named = {
        (violation["problem"].split()[2], violation["problem"].split()[-1])
        for violation in report["violations"]
    }
    assert named == {
        ("main", "top_k"),
        ("main", "repetition_penalty"),
        ("greedy", "temperature"),
        ("greedy", "greedy"),
        ("greedy", "top_k"),
    }
    assert endpoint.requests == []


def test_engine_of_an_embedding_baseline_has_no_decoding(tmp_path, endpoint):
    space = Workspace(tmp_path, url=endpoint.url)
    space.document["engines"]["vectors"] = embeddings(endpoint.url)
    space.document["comparators"] = [
        {"name": "near", "kind": "embedding", "engine": "vectors", "train": None}
    ]

    assert predict(space) == 0

    baseline = record_of(space.output)["subjects"][1]
    assert baseline["role"] == "comparator"
    assert baseline["decoding"] == {"requested": None, "applied": None}
    assert "nearest" in baseline["model"]["baseline"]


def test_metric_of_another_contract_is_refused_with_the_choices(space, capsys):
    space.document["evaluation"]["metric"] = "whole_record_accuracy"

    assert predict(space) == 2
    assert "choose from accuracy, macro_f1" in capsys.readouterr().err


def test_template_without_the_input_is_refused(space, tmp_path, capsys):
    (tmp_path / "user.txt").write_text("Classify!")

    assert predict(space) == 2
    assert "prompt.user" in capsys.readouterr().err


def test_contract_mark_is_refused_where_rows_carry_their_tools(
    tmp_path, endpoint, capsys
):
    space = Workspace(tmp_path, "action-ir", url=endpoint.url)
    space.document["prompt"]["system"] = "system.txt"

    assert predict(space) == 2
    assert "prompt.system" in capsys.readouterr().err


def test_extension_that_sets_the_decoding_is_refused(space, endpoint, capsys):
    extensions = {"local.v1": {"top_k": 5}}
    candidate = space.document["engines"]["main"]["candidate"]
    candidate["provider_extensions"] = extensions

    assert predict(space) == 2
    assert "top_k" in capsys.readouterr().err
    assert endpoint.requests == []


def test_config_of_another_kind_is_sent_to_its_command(space, capsys):
    space.document["kind"] = "executable"

    assert predict(space) == 2
    assert "fairtrial run" in capsys.readouterr().err


def test_run_sends_a_predict_config_to_its_command(space, capsys):
    assert main(["run", str(space.write())]) == 2
    assert "fairtrial predict" in capsys.readouterr().err


def test_evaluation_asks_the_frozen_rows_of_another_engine(tmp_path, endpoint):
    space = Workspace(tmp_path, url=endpoint.url)
    predict(space)
    before, again = tree(space.output), tmp_path / "later"
    space.manifest.write_text("other rows now\n")
    (tmp_path / "system.txt").unlink()
    space.document["engines"]["other"] = chat(
        endpoint.url, candidate={"alias": "other", "model": "second"}
    )

    status = predict(
        space, "--evaluate", str(space.output), "--engine", "other", output=again
    )

    record = record_of(again)
    assert status == 0
    assert tree(space.output) == before
    assert record["record_id"].startswith("eval-")
    assert record["parent"]["record_id"] == "original"
    assert (
        record["protocol"]["fingerprint"]
        == record_of(space.output)["protocol"]["fingerprint"]
    )
    assert (again / "manifest.jsonl").read_bytes() == before["manifest.jsonl"]


def test_evaluation_is_worked_out_again_like_a_run(tmp_path, endpoint):
    space = Workspace(tmp_path, url=endpoint.url)
    predict(space)
    words = ("--evaluate", str(space.output), "--engine", "main")
    predict(space, *words, output=tmp_path / "later")
    before = len(endpoint.requests)

    assert predict(space, *words, output=tmp_path / "later") == 0
    assert len(endpoint.requests) == before


def test_evaluation_that_its_run_does_not_find_is_told(tmp_path, endpoint, capsys):
    space = Workspace(tmp_path, url=endpoint.url)
    predict(space)
    words = ("--evaluate", str(space.output), "--engine", "main")
    predict(space, *words, output=tmp_path / "beside")
    beside = capsys.readouterr().err
    predict(space, *words, output=tmp_path / "far" / "away")

    assert "does not lie beside" not in beside
    assert "away does not lie beside out" in capsys.readouterr().err


def test_evaluation_keeps_the_decoding_of_its_run(tmp_path, endpoint, capsys):
    space = Workspace(tmp_path, url=endpoint.url)
    predict(space)
    space.document["decoding"] |= {"max_tokens": 9, "seed": 8}
    words = ("--evaluate", str(space.output), "--engine", "main")

    assert predict(space, *words, output=tmp_path / "later") == 2

    shown = capsys.readouterr().err
    assert "decoding.max_tokens" in shown
    assert "decoding.seed" in shown


def test_evaluation_needs_an_engine_by_name(space, tmp_path):
    predict(space)
    words = ("--evaluate", str(space.output))

    assert predict(space, *words, output=tmp_path / "later") == 2


def test_evaluation_inside_its_run_is_refused(space):
    predict(space)
    words = ("--evaluate", str(space.output), "--engine", "main")

    assert predict(space, *words, output=space.output / "later") == 2


def test_unfinished_run_is_not_evaluated(tmp_path):
    with server(Flaky("about")) as running:
        space = Workspace(tmp_path, url=running.url)
        predict(space)
        words = ("--evaluate", str(space.output), "--engine", "main")

        assert predict(space, *words, output=tmp_path / "later") == 7


def test_edited_rows_of_a_run_are_not_evaluated(space, tmp_path, endpoint):
    predict(space)
    manifest = space.output / "manifest.jsonl"
    manifest.write_text(manifest.read_text().replace("billing", "returns"))
    words = ("--evaluate", str(space.output), "--engine", "main")

    assert predict(space, *words, output=tmp_path / "later") == 3


def test_uses_of_a_holdout_are_counted(tmp_path, endpoint):
    space = Workspace(tmp_path, url=endpoint.url)
    space.document["evaluation"]["holdout"] = True
    words = ("--evaluate", str(space.output), "--engine", "main")
    predict(space)
    predict(space, *words, output=tmp_path / "second")
    predict(space, *words, output=tmp_path / "third")

    folders = (space.output, tmp_path / "second", tmp_path / "third")
    assert [record_of(each)["holdout"]["uses_before"] for each in folders] == [0, 1, 2]
    assert predict(space) == 0


@pytest.mark.parametrize("contract", CONTRACTS)
def test_starter_config_is_predicted_as_it_stands(tmp_path, endpoint, contract):
    space = Workspace(tmp_path, contract, url=endpoint.url)
    config = tmp_path / "new" / "predict.yaml"
    words = ["--declaration", str(tmp_path / "declared.json")]
    status = main(
        [
            *("config", "init", "--kind", "predict", "--output", str(config)),
            *("--manifest", str(space.manifest), "--contract", contract),
            *("--base-url", endpoint.url, "--model", "scripted"),
            *(words if contract != "action-ir" else []),
        ]
    )

    assert status == 0
    assert main(["predict", str(config), "--output", str(space.output)]) == 0
    assert record_of(space.output)["status"] == "completed"


def test_starter_config_that_cannot_be_read_leaves_nothing(tmp_path, endpoint):
    space = Workspace(tmp_path, url=endpoint.url)
    config = tmp_path / "new" / "predict.yaml"

    status = main(
        [
            *("config", "init", "--kind", "predict", "--output", str(config)),
            *("--manifest", str(space.manifest), "--contract", "classification"),
            *("--base-url", endpoint.url, "--model", "scripted"),
        ]
    )

    assert status == 2
    assert list(config.parent.iterdir()) == []


@pytest.mark.slow
def test_killed_run_asks_nothing_again_that_was_answered(tmp_path):
    killed_at = iter((3, 9, 17, 10_000))
    state = {"limit": next(killed_at), "process": None, "since": 0}

    def answer(received):
        state["since"] += 1
        if state["since"] > state["limit"]:
            os.kill(state["process"].pid, signal.SIGKILL)
            state["process"].wait()
        return right(received)

    with server(answer) as running:
        space = Workspace(tmp_path, url=running.url, rows=label_rows(40))
        space.document["engines"]["main"]["max_in_flight"] = 2
        config = space.write()
        command = [
            *(sys.executable, "-c", "from harness.cli.main import console; console()"),
            *("predict", str(config), "--output", str(space.output), "--resume"),
        ]
        for number in range(4):
            state["since"] = 0
            kept, before = answered_rows(space), len(running.requests)
            state["process"] = subprocess.Popen(command, stderr=subprocess.PIPE)
            _, shown = state["process"].communicate(timeout=50)
            status = state["process"].returncode
            texts = {asked(each) for each in running.requests[before:]}
            assert not kept & texts
            if number < 3:
                assert status == -signal.SIGKILL, shown
                state["limit"] = next(killed_at)

    assert status == 0, shown
    assert [line["raw"] for line in space.lines()] == [r["gold"] for r in space.rows]
    assert PredictFolder(space.output).state() == "finished"


def answered_rows(space):
    """The prompts of rows whose completion a killed run has recorded."""
    log = space.output / "candidate_io_cache.jsonl"
    if not log.exists():
        return set()
    with CandidateLog.open(log, writable=False) as records:
        completed = {
            entry.key
            for entry in records.log.entries()
            if entry.record_type == "completion"
        }
        bodies = [records.request_of(key)["body"] for key in completed]
    return {body["messages"][-1]["content"] for body in bodies}
