"""The command line: exit statuses, and what is shown and recorded."""

import json

import pytest

from harness.cli.main import main
from tests.predict.asking import (
    CONTRACTS,
    Flaky,
    Workspace,
    chat,
    embeddings,
    record_of,
    right,
    right_or_vectors,
    run_command,
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


def test_record_is_shown_as_json(space, capsys):
    status = run_command(space, "--json")

    assert status == 0
    assert json.loads(capsys.readouterr().out) == record_of(space.output)


def test_metrics_are_shown_with_their_counts(space, capsys):
    run_command(space)

    shown = capsys.readouterr().out
    assert "accuracy (primary)  1.0000  6/6" in shown
    assert "Evaluation original: completed" in shown


def test_finished_folder_is_said_to_be_finished(space, endpoint, capsys):
    run_command(space)
    before = len(endpoint.requests)

    assert run_command(space) == 0
    assert "worked out from its evidence" in capsys.readouterr().err
    assert len(endpoint.requests) == before


def test_record_says_what_was_asked_and_what_nobody_can_tell(space):
    run_command(space)

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
        run_command(space)

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

        assert run_command(space) == 5
        assert record_of(space.output)["status"] == "failed"
        flaky.words.clear()
        assert run_command(space) == 7
        assert run_command(space, "--resume") == 0
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
    run_command(space)

    status, again = scored_again(space, tmp_path)

    assert status == 0
    for name in ("sample_scores.jsonl", "aggregate.json"):
        kept = space.output / "scores" / "candidate" / name
        assert kept.read_bytes() == (again / name).read_bytes()


@pytest.mark.parametrize("contract", CONTRACTS)
def test_receipt_beside_the_predictions_is_compared(tmp_path, endpoint, contract):
    space = Workspace(tmp_path, contract, url=endpoint.url)
    run_command(space)
    predictions = space.output / "predictions.jsonl"
    predictions.write_text(predictions.read_text() + "\n")

    status, _ = scored_again(space, tmp_path)

    assert status == 3


def test_too_many_stops_have_their_own_status(tmp_path):
    with server(Flaky("about")) as running:
        space = Workspace(tmp_path, url=running.url)

        assert run_command(space) == 9
    assert record_of(space.output)["error"]["code"] == "stops.share_over_cap"


def test_measurements_of_an_endpoint_say_what_they_measure(space):
    space.document["measure"] = {"rows": 4}

    run_command(space)

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
    run_command(space)
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
    run_command(space)
    predictions = space.output / "predictions.jsonl"
    predictions.write_text(predictions.read_text().replace("stop", "length"))

    assert main([command, str(space.output)]) == 1
    assert "predictions.jsonl" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["replay", "verify"])
@pytest.mark.parametrize(
    ("name", "word"),
    [("candidate_io_cache.jsonl", "attempt"), ("generation_log.jsonl", "session")],
)
def test_changed_log_is_named(space, command, name, word, capsys):
    run_command(space)
    log = space.output / name
    log.write_text(log.read_text().replace(word, word.upper(), 1))
    capsys.readouterr()

    assert main([command, str(space.output)]) in (1, 3)
    assert f"where: {name}" in capsys.readouterr().err


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
    run_command(space)
    command, *rest = words

    assert main([command, str(space.output), *rest]) == 3
    assert "does not serve predict runs" in capsys.readouterr().err


def test_other_engine_answers_by_its_name(space, endpoint):
    space.document["engines"]["other"] = chat(
        endpoint.url, candidate={"model": "second"}
    )

    run_command(space, "--engine", "other")

    assert {each.json()["model"] for each in endpoint.requests} == {"second"}


def test_engine_of_an_embedding_baseline_has_no_decoding(tmp_path, endpoint):
    space = Workspace(tmp_path, url=endpoint.url)
    space.document["engines"]["vectors"] = embeddings(endpoint.url)
    space.document["comparators"] = [
        {"name": "near", "kind": "embedding", "engine": "vectors", "train": None}
    ]

    assert run_command(space) == 0

    baseline = record_of(space.output)["subjects"][1]
    assert baseline["role"] == "comparator"
    assert baseline["decoding"] == {"requested": None, "applied": None}
    assert "nearest" in baseline["model"]["baseline"]


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
