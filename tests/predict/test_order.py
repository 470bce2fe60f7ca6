"""Whatever rows and answers are, predictions stand in order and score the same."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.cli.main import main
from tests.predict.asking import LABELS, Workspace, asked, server
from tests.servers import completion

texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12
)
row_lists = st.lists(
    st.tuples(texts.filter(bool), texts, st.sampled_from(LABELS)),
    min_size=1,
    max_size=6,
    unique_by=lambda row: row[0],
)
replies = st.lists(
    st.one_of(
        texts,
        st.sampled_from(LABELS),
        st.just('{"city":"Rome","nights":1}'),
        st.just("```json\n{}\n```"),
    ),
    min_size=1,
    max_size=3,
)


def answering(answers):
    """Answer every request by its own text, in whatever order requests come."""

    def answer(received):
        place = sum(asked(received).encode()) % len(answers)
        reason = "length" if place == 1 else "stop"
        return completion(answers[place], finish_reason=reason)

    return answer


def scored_again(space, contract, root):
    option = "--labels" if contract == "classification" else "--schema"
    again = root / "again"
    status = main(
        [
            *("score", contract, option, str(space.output / "declaration.json")),
            *("--rows", str(space.output / "predictions.jsonl")),
            *("--output", str(again)),
        ]
    )
    assert status == 0
    return again


def check(contract, rows, answers, width):
    with tempfile.TemporaryDirectory() as scratch, server(answering(answers)) as at:
        root = Path(scratch)
        space = Workspace(root, contract, url=at.url, rows=rows)
        space.document["engines"]["main"]["max_in_flight"] = width
        space.predict()
        again = scored_again(space, contract, root)
        ids = [line["id"] for line in space.lines()]
        for name in ("sample_scores.jsonl", "aggregate.json"):
            kept = space.output / "scores/candidate" / name
            assert kept.read_bytes() == (again / name).read_bytes()
    assert ids == [row["id"] for row in rows]


few = settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.mark.slow
@few
@given(rows=row_lists, answers=replies, width=st.integers(1, 5))
def test_labels_stand_in_order_and_score_the_same(rows, answers, width):
    made = [{"id": i, "input": text, "gold": gold} for i, text, gold in rows]

    check("classification", made, answers, width)


@pytest.mark.slow
@few
@given(rows=row_lists, answers=replies, width=st.integers(1, 5))
def test_records_stand_in_order_and_score_the_same(rows, answers, width):
    made = [
        {"id": i, "input": {"text": text}, "gold": {"city": gold, "nights": 1}}
        for i, text, gold in rows
    ]
    check("json-records", made, answers, width)
