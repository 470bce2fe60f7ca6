"""What a config may not ask for is told at once, before anything is sent."""

import json

import pytest

from harness.cli.main import main
from tests.predict.asking import (
    DECODING,
    Workspace,
    right_or_vectors,
    run_command,
    server,
)


@pytest.fixture
def endpoint():
    with server(right_or_vectors) as running:
        yield running


@pytest.fixture
def space(tmp_path, endpoint):
    return Workspace(tmp_path, url=endpoint.url)


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

    assert run_command(space, "--json") == 2

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

    assert run_command(space) == 3
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

    assert run_command(space, "--json") == 2

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


def test_metric_of_another_contract_is_refused_with_the_choices(space, capsys):
    space.document["evaluation"]["metric"] = "whole_record_accuracy"

    assert run_command(space) == 2
    assert "choose from accuracy, macro_f1" in capsys.readouterr().err


def test_template_without_the_input_is_refused(space, tmp_path, capsys):
    (tmp_path / "user.txt").write_text("Classify!")

    assert run_command(space) == 2
    assert "prompt.user" in capsys.readouterr().err


def test_contract_mark_is_refused_where_rows_carry_their_tools(
    tmp_path, endpoint, capsys
):
    space = Workspace(tmp_path, "action-ir", url=endpoint.url)
    space.document["prompt"]["system"] = "system.txt"

    assert run_command(space) == 2
    assert "prompt.system" in capsys.readouterr().err


def test_extension_that_sets_the_decoding_is_refused(space, endpoint, capsys):
    extensions = {"local.v1": {"top_k": 5}}
    candidate = space.document["engines"]["main"]["candidate"]
    candidate["provider_extensions"] = extensions

    assert run_command(space) == 2
    assert "top_k" in capsys.readouterr().err
    assert endpoint.requests == []


def test_config_of_another_kind_is_sent_to_its_command(space, capsys):
    space.document["kind"] = "executable"

    assert run_command(space) == 2
    assert "fairtrial run" in capsys.readouterr().err


def test_run_sends_a_predict_config_to_its_command(space, capsys):
    assert main(["run", str(space.write())]) == 2
    assert "fairtrial predict" in capsys.readouterr().err
