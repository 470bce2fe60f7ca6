"""Baselines beside the candidate: other engines, other prompts, nearest texts."""

import json
from fractions import Fraction
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import CandidateError, EngineError
from harness.predict.nearest import cosine, nearest
from tests.predict.asking import (
    Workspace,
    chat,
    embeddings,
    label_rows,
    record_rows,
    right_or_vectors,
    server,
)
from tests.servers import Reply, completion, json_reply


@pytest.fixture
def endpoint():
    with server(right_or_vectors) as running:
        yield running


def compared(tmp_path, endpoint, contract="classification", **comparator):
    """A workspace with one comparator over the embeddings of the endpoint."""
    space = Workspace(tmp_path, contract, url=endpoint.url)
    space.document["engines"]["vectors"] = embeddings(endpoint.url)
    space.document["comparators"] = [
        {
            "name": "nearest",
            "kind": "embedding",
            "engine": "vectors",
            "train": None,
            **comparator,
        }
    ]
    return space


def embedded(running):
    """All texts that the endpoint was asked to embed."""
    return [
        text
        for received in running.requests
        if received.path.endswith("/embeddings")
        for text in received.json()["input"]
    ]


def test_nearest_label_is_the_answer_of_a_classification_baseline(tmp_path, endpoint):
    space = compared(tmp_path, endpoint)

    space.predict()

    assert [line["raw"] for line in space.lines("nearest")] == [
        row["gold"] for row in space.rows
    ]


def test_gold_of_the_nearest_training_row_is_the_answer_of_records(tmp_path, endpoint):
    rows = record_rows(2)
    (tmp_path / "train.jsonl").write_text(json.dumps(rows[1]) + "\n")
    space = compared(tmp_path, endpoint, "json-records", train="train.jsonl")

    space.predict()

    assert {line["raw"] for line in space.lines("nearest")} == {
        '{"city":"Rome","nights":1}'
    }
    kept = (space.output / "train.nearest.jsonl").read_bytes()
    assert kept == (tmp_path / "train.jsonl").read_bytes()


def test_every_comparator_has_predictions_receipt_and_scores(tmp_path, endpoint):
    space = compared(tmp_path, endpoint)

    space.predict()

    names = {path.name for path in space.output.iterdir()}
    assert {
        "predictions.nearest.jsonl",
        "predictions.nearest.jsonl.manifest.json",
    } <= names
    assert (space.output / "scores/nearest/aggregate.json").exists()


def test_comparator_by_an_engine_has_its_own_system_text(tmp_path, endpoint):
    space = Workspace(tmp_path, url=endpoint.url)
    (tmp_path / "plain.txt").write_text("Say {contract}")
    space.document["comparators"] = [
        {"name": "plain", "kind": "engine", "engine": "main", "system": "plain.txt"}
    ]

    space.predict()

    systems = {each.json()["messages"][0]["content"] for each in endpoint.requests}
    assert "Say billing\ndelivery\nreturns" in systems
    assert len(endpoint.requests) == 2 * len(space.rows)


def test_comparator_with_the_same_prompt_is_asked_for_itself(tmp_path, endpoint):
    space = Workspace(tmp_path, url=endpoint.url)
    space.document["comparators"] = [
        {"name": "again", "kind": "engine", "engine": "main", "system": None}
    ]

    space.predict()

    assert len(endpoint.requests) == 2 * len(space.rows)


def test_finished_comparators_are_worked_out_without_a_request(tmp_path, endpoint):
    space = compared(tmp_path, endpoint)
    space.predict()
    before = len(endpoint.requests)

    assert space.predict().replayed
    assert len(endpoint.requests) == before


def test_recorded_vectors_are_not_asked_for_again(tmp_path):
    batches = []

    def failing(received):
        if received.path.endswith("/embeddings"):
            batches.append(received.json()["input"])
            if len(batches) == 4:
                return Reply(501, {}, b"")
        return right_or_vectors(received)

    with server(failing) as running:
        space = compared(tmp_path, running)
        with pytest.raises(EngineError):
            space.predict()
        before = set(chain.from_iterable(batches[:3]))
        space.predict(resume=True)

    assert not before & set(chain.from_iterable(batches[4:]))


def test_refused_key_of_the_embeddings_stops_the_run(tmp_path):
    def refusing(received):
        if received.path.endswith("/embeddings"):
            return json_reply({}, status=401)
        return right_or_vectors(received)

    with server(refusing) as running, pytest.raises(CandidateError):
        compared(tmp_path, running).predict()


@pytest.mark.parametrize(
    "data",
    [
        [],
        [{"index": 0, "embedding": [1.0]}],
        [{"index": 0, "embedding": []}, {"index": 1, "embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}],
        [{"index": 0, "embedding": [0, 0]}, {"index": 1, "embedding": [1.0, 1]}],
        [{"index": {}, "embedding": [1.0]}, {"index": 1, "embedding": [1.0]}],
        [{"index": 0, "embedding": ["1"]}, {"index": 1, "embedding": [True]}],
        "text",
    ],
)
def test_envelope_without_one_vector_a_text_is_no_answer(tmp_path, data):
    def broken(received):
        if received.path.endswith("/embeddings"):
            return json_reply({"data": data})
        return right_or_vectors(received)

    with (
        server(broken) as running,
        pytest.raises(EngineError, match="envelope_malformed"),
    ):
        compared(tmp_path, running).predict()


def test_failing_embeddings_are_asked_again_within_the_retries(tmp_path):
    failures = [Reply(429, {"Retry-After": "0"}, b"")]

    def once_busy(received):
        if received.path.endswith("/embeddings") and failures:
            return failures.pop()
        return right_or_vectors(received)

    with server(once_busy) as running:
        space = compared(tmp_path, running)
        space.document["engines"]["vectors"]["max_retries"] = 1
        space.predict()

    assert len(space.lines("nearest")) == len(space.rows)


def test_vectors_of_other_lengths_are_refused(tmp_path):
    def growing(received):
        if received.path.endswith("/embeddings") and len(received.json()["input"]) == 1:
            return json_reply({"data": [{"index": 0, "embedding": [1.0]}]})
        return right_or_vectors(received)

    with server(growing) as running, pytest.raises(EngineError, match="lengths"):
        compared(tmp_path, running).predict()


def test_vector_of_another_length_is_asked_for_again(tmp_path):
    short = [json_reply({"data": [{"index": 0, "embedding": [1.0]}]})]

    def once_short(received):
        one = len(received.json().get("input", [])) == 1
        return short.pop() if one and short else right_or_vectors(received)

    with server(once_short) as running:
        space = compared(tmp_path, running)
        space.document["engines"]["vectors"]["batch_size"] = 2
        with pytest.raises(EngineError, match="lengths"):
            space.predict()
        space.predict(resume=True)

    assert len(space.lines("nearest")) == len(space.rows)


def test_each_text_is_embedded_once(tmp_path, endpoint):
    rows = [{**row, "input": "about billing"} for row in label_rows()]
    space = compared(tmp_path, endpoint)
    space.write_rows(rows)

    space.predict()

    assert sorted(embedded(endpoint)) == [
        "about billing",
        "billing",
        "delivery",
        "returns",
    ]


def test_other_endpoint_answers_as_a_comparator(tmp_path, endpoint):
    with server([completion("returns")]) as other:
        space = Workspace(tmp_path, url=endpoint.url)
        space.document["engines"]["other"] = chat(other.url)
        space.document["comparators"] = [
            {"name": "rival", "kind": "engine", "engine": "other", "system": None}
        ]
        space.predict()

    assert {line["raw"] for line in space.lines("rival")} == {"returns"}


def test_first_of_equally_near_vectors_counts():
    assert nearest([1.0, 0.0], [[0.0, 1.0], [2.0, 0.0], [3.0, 0.0]]) == 1


COORDINATES = st.lists(st.integers(-4, 4), min_size=3, max_size=3)


@given(COORDINATES, st.lists(COORDINATES, min_size=1, max_size=6))
def test_first_of_the_exactly_nearest_counts(vector, others):
    def exact(other):
        dot = sum(a * b for a, b in zip(vector, other, strict=True))
        return Fraction(dot * abs(dot), sum(b * b for b in other) or 1)

    expected = max(range(len(others)), key=lambda place: (exact(others[place]), -place))
    floats = [list(map(float, other)) for other in others]

    assert nearest(list(map(float, vector)), floats) == expected


def test_cosine_of_huge_and_tiny_vectors_is_finite():
    assert cosine([1e300, 1e300], [1e-300, 1e-300]) == pytest.approx(1.0)


def test_cosine_with_nothing_is_nothing():
    assert cosine([0.0, 0.0], [1.0, 0.0]) == 0.0


def test_embedding_endpoint_is_asked_by_its_model(tmp_path, endpoint):
    compared(tmp_path, endpoint).predict()

    body = next(r for r in endpoint.requests if r.path.endswith("/embeddings")).json()
    assert body["model"] == "scripted"
    assert body["encoding_format"] == "float"
