"""Reason keys stay, and say what they mean."""

import pytest

from harness.report.publication import reason_in_words


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("publication.requested", "does not ask"),
        ("candidates[gold].model_identity", "pins the weights"),
        ("contamination.unresolved[gold]", "nobody can tell"),
        ("contamination.exposed[gold]", "read benchmark rows"),
        ("scoring.respect_call_order", "locks"),
        ("contamination.on_violation", "locks"),
        ("stops.share_over_cap", "too many episodes"),
    ],
)
def test_known_reason_has_its_meaning_behind_the_key(reason, words):
    text = reason_in_words(reason)

    assert text.startswith(f"{reason}: ")
    assert words in text


def test_unknown_reason_stands_alone():
    assert reason_in_words("something.else") == "something.else"
