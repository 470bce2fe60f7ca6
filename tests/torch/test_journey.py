"""From a model to a ranking: predict, score and compare, each by its command.

A tiny model learns six rows; it answers them in this process and behind llama.cpp's
server, beside the same model before it learned and a baseline by embeddings.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.torch.gguf_model import convert
from tests.torch.tiny_model import train

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
LABELS = ["question", "order", "other"]
ROWS = [
    ("What is the weather?", "question"),
    ("What is Paris?", "question"),
    ("Set an alarm.", "order"),
    ("Set the weather.", "order"),
    ("Paris", "other"),
    ("An alarm in Paris", "other"),
]
DECODING = {
    "max_tokens": 16,
    "temperature": 0.0,
    "top_p": 1.0,
    "top_k": None,
    "stop": [],
    "seed": 3,
    "greedy": True,
    "num_beams": 1,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "repetition_penalty": 1.0,
    "no_repeat_ngram_size": 0,
}


def _torch(model):
    return {
        "kind": "torch_local",
        "model": model,
        "checkpoint_sha256": None,
        "device": "cpu",
        "dtype": "float32",
        "batch_size": 4,
        "model_identity": f"test:{model}@0",
        "chat_template": True,
    }


def _served():
    script = str(HERE / "llama_server.py")
    return {
        "kind": "vllm_server",
        "model": "trained.gguf",
        "model_identity": "test:trained@0",
        "checkpoint_sha256": None,
        "dtype": "auto",
        "command": [sys.executable, script, "{port}", "{model}"],
        "port": None,
        "start_timeout_s": 60.0,
        "stop_timeout_s": 10.0,
        "max_in_flight": 1,
        "timeout_s": 60.0,
        "max_retries": 0,
    }


def _config(**changes):
    return {
        "schema_version": "1",
        "kind": "predict",
        "manifest": {
            "path": "rows.jsonl",
            "sha256": None,
            "contract": "classification",
            "declaration": "labels.json",
        },
        "prompt": {"system": "system.txt", "user": None},
        "engine": "here",
        "engines": {
            "here": _torch("trained"),
            "untrained": _torch("tiny"),
            "served": _served(),
        },
        "decoding": DECODING,
        "evaluation": {"metric": None, "holdout": False, "max_stop_share": 0.0},
        "comparators": [
            {
                "name": "untrained",
                "kind": "engine",
                "engine": "untrained",
                "system": None,
            },
            {"name": "nearest", "kind": "embedding", "engine": "here", "train": None},
        ],
        "measure": {"rows": 3},
    } | changes


def _fairtrial(folder, *words):
    return subprocess.run(
        [sys.executable, "-m", "harness.cli", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def _record(folder, *words):
    done = _fairtrial(folder, "predict", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(checkpoint, tmp_path_factory):
    """A folder with rows, two models and the configs."""
    place = tmp_path_factory.mktemp("journey")
    (place / "labels.json").write_text(json.dumps(LABELS))
    (place / "system.txt").write_text("Answer with one label.\n{contract}\n")
    (place / "rows.jsonl").write_text(
        "".join(
            json.dumps({"id": f"row-{n}", "input": text, "gold": label}) + "\n"
            for n, (text, label) in enumerate(ROWS)
        )
    )
    (place / "tiny").symlink_to(checkpoint)
    pairs = [(_messages(text), label) for text, label in ROWS]
    convert(train(checkpoint, pairs, place / "trained"), place / "trained.gguf")
    alone = {"comparators": [], "measure": None}
    configs = {
        "predict": _config(),
        "twin": _config(**alone),
        "shorter": _config(**alone, decoding=DECODING | {"max_tokens": 12}),
    }
    for name, config in configs.items():
        (place / f"{name}.yaml").write_text(yaml.safe_dump(config))
    return place


def _messages(text):
    system = "\n".join(["Answer with one label.", *LABELS, ""])
    return [
        {"role": "system", "content": system},
        {"role": "user", "content": text},
    ]


@pytest.fixture(scope="module")
def here(folder):
    """The record of the run in this process."""
    return _record(folder, "predict.yaml", "--output", "here")


@pytest.fixture(scope="module")
def served(folder):
    """The record of the run behind the server."""
    return _record(folder, "predict.yaml", "--engine", "served", "--output", "served")


@pytest.fixture(scope="module")
def twin(folder):
    """Another run of the same in this process, without the baselines."""
    return _record(folder, "twin.yaml", "--output", "twin")


@pytest.fixture(scope="module")
def shorter(folder):
    """A run under another decoding."""
    return _record(folder, "shorter.yaml", "--engine", "served", "--output", "shorter")


def _compared(folder, *words):
    done = _fairtrial(folder, "compare", *words, "--json")
    return done.returncode, json.loads(done.stdout)


def _metrics(record):
    return {each["name"]: each["metrics"]["accuracy"] for each in record["subjects"]}


def test_the_trained_model_is_right_and_the_others_are_not(here):
    found = _metrics(here)

    assert (found["candidate"]["numerator"], found["candidate"]["value"]) == (6, 1.0)
    assert found["untrained"]["numerator"] < 6
    assert found["nearest"]["numerator"] < 6


def test_the_same_model_behind_a_server_answers_the_same(folder, here, served):
    answers = [
        [
            json.loads(line)["raw"]
            for line in (folder / run / "predictions.jsonl").open()
        ]
        for run in ("here", "served")
    ]

    assert answers[0] == answers[1] == [label for _, label in ROWS]


def test_scoring_the_predictions_alone_gives_the_same_bytes(folder, here):
    done = _fairtrial(
        folder,
        *("score", "classification", "--labels", "labels.json"),
        *("--rows", "here/predictions.jsonl", "--output", "scored"),
    )

    assert done.returncode == 0, done.stderr
    for name in ("aggregate.json", "sample_scores.jsonl"):
        own = (folder / "here/scores/candidate" / name).read_bytes()
        assert (folder / "scored" / name).read_bytes() == own


def test_decoding_is_recorded_as_asked_and_as_applied(here):
    decoding = here["subjects"][0]["decoding"]

    assert decoding["applied"] == decoding["requested"]


def test_a_finished_run_is_worked_out_again_without_a_model(folder, here):
    (folder / "trained").rename(folder / "away")
    try:
        again = _record(folder, "predict.yaml", "--output", "here")
    finally:
        (folder / "away").rename(folder / "trained")

    assert again == here


def test_a_finished_run_is_verified_from_its_folder_alone(folder, here):
    done = _fairtrial(folder, "verify", "here")

    assert (done.returncode, done.stderr) == (0, "")


def test_no_record_names_a_place_of_this_machine(folder, here, served):
    named = [
        path.name
        for run in ("here", "served")
        for path in (folder / run).rglob("*.json*")
        if str(folder) in path.read_text(encoding="utf-8")
    ]

    assert named == []


def test_two_runs_of_one_kind_are_comparable_and_tie(folder, here, twin):
    status, found = _compared(folder, "here", "twin", "--require", "comparable")

    assert (status, found["label"]) == (0, "comparable")


def test_another_runtime_is_ranked_with_its_differences(folder, here, served):
    status, found = _compared(folder, "here", "served")

    assert (status, found["label"]) == (0, "cross-runtime")


def test_a_comparison_can_require_one_runtime(folder, here, served):
    status, _ = _compared(folder, "here", "served", "--require", "comparable")

    assert status == 1


def test_another_decoding_is_incompatible(folder, served, shorter):
    status, found = _compared(folder, "served", "shorter")

    assert (status, found["label"]) == (8, "incompatible")


def test_a_later_evaluation_is_a_record_of_its_own(folder, here, twin):
    before = {
        path.relative_to(folder): path.read_bytes()
        for path in (folder / "twin").rglob("*")
        if path.is_file()
    }

    later = _record(
        folder,
        *("twin.yaml", "--evaluate", "twin", "--engine", "served"),
        *("--output", "later"),
    )
    status, found = _compared(
        folder, "here", "twin", "--use", f"twin={later['record_id']}"
    )

    assert (status, found["label"]) == (0, "cross-runtime")
    assert later["parent"] is not None
    assert {
        path.relative_to(folder): path.read_bytes()
        for path in (folder / "twin").rglob("*")
        if path.is_file()
    } == before
