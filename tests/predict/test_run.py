"""A run from rows to scores: what is asked, what is kept, what follows."""

import json

import pytest

from harness.errors import ArtifactError, EvidenceError
from harness.predictions.action_ir import score_files
from harness.predictions.answers import score_classification, score_json_records
from harness.scoring.action_ir.refusal import ActionIrError
from tests.predict.asking import (
    CONTRACTS,
    DECODING,
    LABELS,
    SCHEMA,
    Workspace,
    asked,
    label_rows,
    right,
    server,
    tree,
)
from tests.servers import completion, json_reply


@pytest.fixture
def endpoint():
    with server() as running:
        yield running


@pytest.fixture
def space(tmp_path, endpoint):
    return Workspace(tmp_path, url=endpoint.url)


@pytest.mark.parametrize("contract", CONTRACTS)
def test_predictions_stand_in_manifest_order(tmp_path, endpoint, contract):
    space = Workspace(tmp_path, contract, url=endpoint.url)

    space.predict()

    assert [line["id"] for line in space.lines()] == [row["id"] for row in space.rows]


@pytest.mark.parametrize("contract", CONTRACTS)
def test_right_answers_are_scored_as_right(tmp_path, endpoint, contract):
    space = Workspace(tmp_path, contract, url=endpoint.url)

    space.predict()
    scores = json.loads((space.output / "scores/candidate/aggregate.json").read_text())

    if contract == "action-ir":
        assert scores["policy_safe_executable_success"]["value"] == 1.0
    else:
        assert scores["primary"]["value"] == 1.0


@pytest.mark.parametrize("contract", CONTRACTS)
def test_scoring_the_files_of_the_folder_gives_the_same_bytes(
    tmp_path, endpoint, contract
):
    space = Workspace(tmp_path, contract, url=endpoint.url)
    space.predict()
    again, folder = tmp_path / "again", space.output
    predictions = folder / "predictions.jsonl"

    if contract == "action-ir":
        score_files(folder / "manifest.jsonl", predictions, again)
    elif contract == "json-records":
        score_json_records(folder / "declaration.json", predictions, again)
    else:
        score_classification(folder / "declaration.json", predictions, again)

    assert tree(again) == tree(folder / "scores/candidate")


def test_labels_are_written_into_the_system_text(space, endpoint):
    space.predict()

    system, user = endpoint.requests[0].json()["messages"]
    assert system == {
        "role": "system",
        "content": "Only one of:\n" + "\n".join(LABELS) + "\n",
    }
    assert user["content"].startswith("Text: about ")


def test_schema_is_written_into_the_system_text(tmp_path, endpoint):
    space = Workspace(tmp_path, "json-records", url=endpoint.url)

    space.predict()

    system = endpoint.requests[0].json()["messages"][0]["content"]
    assert json.loads(system.removeprefix("Only one of:\n")) == SCHEMA


def test_action_ir_prompt_is_the_only_message_as_it_stands(tmp_path, endpoint):
    space = Workspace(tmp_path, "action-ir", url=endpoint.url)

    space.predict()

    prompts = {row["prompt"] for row in space.rows}
    messages = [received.json()["messages"] for received in endpoint.requests]
    assert {message["content"] for (message,) in messages} == prompts


def test_every_setting_that_the_interface_has_is_sent(space, endpoint):
    space.document["decoding"] |= {"stop": ["\n\n"], "presence_penalty": 0.5}

    space.predict()

    body = endpoint.requests[0].json()
    assert {name: body[name] for name in body.keys() & DECODING.keys()} == {
        "max_tokens": 64,
        "temperature": 0.0,
        "top_p": 1.0,
        "seed": 7,
        "stop": ["\n\n"],
        "presence_penalty": 0.5,
        "frequency_penalty": 0.0,
    }
    assert "tools" not in body


def test_cap_of_tokens_is_sent_under_the_name_of_the_config(space, endpoint):
    engines = space.document["engines"]
    engines["main"]["max_tokens_field"] = "max_completion_tokens"

    space.predict()

    body = endpoint.requests[0].json()
    assert body["max_completion_tokens"] == 64
    assert "max_tokens" not in body


def test_texts_of_the_prompt_are_kept_with_their_hashes(space):
    space.predict()

    kept = json.loads((space.output / "prompt.json").read_text())
    candidate = kept["subjects"]["candidate"]
    assert candidate["user"]["text"] == "Text: {input}"
    assert len(candidate["system_message"]["sha256"]) == 64


def test_finished_folder_is_worked_out_again_without_a_request(space, endpoint):
    first = space.predict()
    before, files = len(endpoint.requests), tree(space.output)

    again = space.predict()

    assert again.replayed
    assert again.record == first.record
    assert len(endpoint.requests) == before
    assert tree(space.output) == files


def test_edited_prediction_of_a_finished_folder_is_refused(space):
    space.predict()
    predictions = space.output / "predictions.jsonl"
    predictions.write_text(predictions.read_text().replace("billing", "returns"))

    with pytest.raises(ArtifactError):
        space.predict()


def test_record_in_other_bytes_is_refused(space):
    space.predict()
    record = space.output / "eval_record.json"
    record.write_bytes(record.read_bytes() + b" ")

    with pytest.raises(ArtifactError) as refused:
        space.predict()

    (violation,) = refused.value.violations
    assert (violation.where, violation.actual) == (
        "eval_record.json",
        "its values in other bytes",
    )


@pytest.mark.parametrize(
    "name", ["predictions.jsonl", "scores/candidate/aggregate.json", "prompt.json"]
)
def test_finished_folder_that_lost_a_file_is_refused_and_not_mended(space, name):
    space.predict()
    (space.output / name).unlink()

    with pytest.raises(ArtifactError):
        space.predict()

    assert not (space.output / name).exists()


def test_folder_of_another_config_is_refused(space):
    space.predict()
    space.document["decoding"]["max_tokens"] = 65

    with pytest.raises(ArtifactError, match="another config"):
        space.predict()


def test_folder_of_somebody_else_is_refused(space):
    space.output.mkdir()
    (space.output / "notes.txt").write_text("mine")

    with pytest.raises(ArtifactError, match=r"notes\.txt"):
        space.predict()


def test_cut_answer_has_the_finish_reason_length(tmp_path):
    def cut(received):
        return completion("billing", finish_reason="max_tokens")

    with server(cut) as running:
        space = Workspace(tmp_path, url=running.url)
        space.predict()

    assert {line["finish_reason"] for line in space.lines()} == {"length"}


def test_gold_that_cannot_be_scored_is_told_before_anything_is_asked(
    tmp_path, endpoint
):
    space = Workspace(tmp_path, "action-ir", url=endpoint.url)
    space.write_rows([{**space.rows[0], "target": "no action"}])

    with pytest.raises(ActionIrError):
        space.predict()

    assert endpoint.requests == []
    assert not space.output.exists()


def test_broken_rows_are_told_all_at_once(space, endpoint):
    rows = label_rows()
    rows[1]["gold"], rows[2]["id"] = {"no": "label"}, "row-0"
    space.write_rows(rows)

    with pytest.raises(EvidenceError) as refused:
        space.predict()

    assert [v.where for v in refused.value.violations] == [
        "rows.jsonl:2",
        "rows.jsonl:3",
    ]
    assert endpoint.requests == []


def test_settings_that_a_response_states_are_read_back(tmp_path):
    def telling(received):
        reply = right(received)
        envelope = json.loads(reply.body)
        envelope["generation_settings"] = {"temperature": 0.0, "n_predict": 64}
        return json_reply(envelope)

    with server(telling) as running:
        space = Workspace(tmp_path, url=running.url)
        space.predict()

    receipt = json.loads((space.output / "predictions.jsonl.manifest.json").read_text())
    applied = receipt["decoding_applied"]
    assert (applied["temperature"], applied["max_tokens"]) == (0.0, 64)
    assert applied["top_p"] == "unknown"


def test_server_that_lies_about_the_temperature_is_quoted(tmp_path):
    def lying(received):
        envelope = json.loads(right(received).body)
        hot = "row" if "0" in asked(received) else None
        envelope["temperature"] = 0.9 if hot else 0.0
        return json_reply(envelope)

    with server(lying) as running:
        space = Workspace(tmp_path, url=running.url)
        space.predict()

    receipt = json.loads((space.output / "predictions.jsonl.manifest.json").read_text())
    assert receipt["decoding_applied"]["temperature"] == {"mixed": [0.9, 0.0]}
    assert receipt["decoding_requested"]["temperature"] == 0.0


def test_text_is_kept_as_it_came(tmp_path):
    raw = "\u00a0 billing\n\n"
    with server([completion(raw)]) as running:
        space = Workspace(tmp_path, url=running.url)
        space.predict()

    assert {line["raw"] for line in space.lines()} == {raw}


def test_template_is_filled_once(tmp_path, endpoint):
    rows = [{"id": "a", "input": "billing {input} {contract}", "gold": "billing"}]
    space = Workspace(tmp_path, url=endpoint.url, rows=rows)

    space.predict()

    assert asked(endpoint.requests[0]) == "Text: billing {input} {contract}"


def test_declared_manifest_hash_is_compared_first(space, endpoint):
    space.document["manifest"]["sha256"] = "0" * 64

    with pytest.raises(Exception, match="eval_predictions_drift"):
        space.predict()

    assert endpoint.requests == []


def test_answers_do_not_depend_on_the_order_they_come_in(tmp_path, endpoint):
    for name, width in (("a", 1), ("b", 8)):
        (tmp_path / name).mkdir()
        space = Workspace(tmp_path / name, url=endpoint.url, rows=label_rows(12))
        space.document["engines"]["main"]["max_in_flight"] = width
        space.predict()

    left = (tmp_path / "a/out/predictions.jsonl").read_bytes()
    assert left == (tmp_path / "b/out/predictions.jsonl").read_bytes()
