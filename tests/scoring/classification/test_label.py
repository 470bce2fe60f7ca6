"""The comparer of classification: folding, and nothing beyond folding."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.scoring.classification.label import Vocabulary, fold, score_label

LABELS = ["billing", "Card arrival", "Straße", "ATM"]
VOCABULARY = Vocabulary(LABELS)
SPACES = st.text("\u0020\u00a0\u2003\t\n\x1c\x85", min_size=1, max_size=3)


@given(st.text())
def test_folded_words_stand_one_space_apart(text):
    folded = fold(text)

    assert folded == " ".join(folded.split())


@given(st.sampled_from(LABELS))
def test_gold_answers_itself(label):
    found = score_label(label, label, VOCABULARY)

    assert (found.valid, found.correct, found.pred) == (True, True, label)


@given(st.sampled_from(LABELS), st.sampled_from(LABELS))
def test_sides_may_be_exchanged(one, other):
    there = score_label(one, other, VOCABULARY)
    back = score_label(other, one, VOCABULARY)

    assert there.correct == back.correct == (one == other)


@given(st.data(), st.sampled_from(LABELS))
def test_width_case_and_spacing_are_ignored(data, label):
    other = data.draw(st.sampled_from([label, label.upper(), label.lower()]))
    other = data.draw(SPACES) + other.replace(" ", data.draw(SPACES))
    other = unicodedata.normalize("NFD", other) + data.draw(SPACES)

    found = score_label(other, label, VOCABULARY)

    assert (found.correct, found.pred) == (True, label)


@pytest.mark.parametrize(
    "raw",
    [
        "billing.",
        '"billing"',
        "`billing`",
        "- billing",
        "label: billing",
        "bil ling",
        "billing\n\nbecause",
        "billing\u200b",
        "\ufeffbilling",
        "b1lling",
        "",
    ],
)
def test_anything_around_a_label_is_another_text(raw):
    found = score_label(raw, "billing", VOCABULARY)

    assert not found.valid
    assert not found.correct
    assert found.pred == raw.strip()


def test_later_of_two_spellings_names_the_label():
    assert score_label("YES", "Yes", Vocabulary(["Yes", "yes"])).pred == "yes"


def test_gold_outside_the_vocabulary_is_never_met():
    found = score_label("shipping", "shipping", VOCABULARY)

    assert not found.correct


def test_answer_may_be_valid_and_wrong():
    found = score_label("atm", "billing", VOCABULARY)

    assert (found.valid, found.correct, found.predicted_class) == (True, False, "atm")


def test_no_output_is_failed():
    found = score_label(None, "billing", VOCABULARY)

    assert found.as_record() == {
        "failed": True,
        "valid": False,
        "correct": False,
        "pred": None,
    }


@pytest.mark.parametrize("raw", [1, True, [], {"label": "billing"}, b"billing"])
def test_output_that_is_no_text_names_no_label(raw):
    found = score_label(raw, "billing", VOCABULARY)

    assert (found.failed, found.valid, found.pred) == (False, False, None)


@given(st.none() | st.text(), st.text())
def test_every_input_has_a_score(raw, gold):
    found = score_label(raw, gold, VOCABULARY)

    assert found.correct <= found.valid <= (not found.failed)
