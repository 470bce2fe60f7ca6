"""The first divergence is the innermost difference, and nothing more."""

import pytest

from harness.scoring.divergence import first_divergence, value_diff
from harness.scoring.reading import ScorableTask, read_episode
from tests.scoring.episodes import (
    POLICY,
    calls,
    episode,
    gold,
    made,
    says,
    script,
    task,
    unavailable,
)


def divergence(spec, *answers):
    of = episode(spec, *answers)
    return first_divergence(read_episode(of, ScorableTask.of(spec), POLICY))


FIND = [gold("find", title="Dune", limit=3)]


@pytest.mark.parametrize(
    ("answer", "diff"),
    [
        (
            calls(made("find", title="Dune", limit=4)),
            ("  find", "- limit: 3", "+ limit: 4"),
        ),
        (
            calls(made("status", book_id="x")),
            ('+ status {"book_id":"x"}', '- find {"limit":3,"title":"Dune"}'),
        ),
        (says("no"), ('- find {"limit":3,"title":"Dune"}', '+ text "no"')),
        (
            calls(made("find", raw="{", status="invalid_json")),
            (
                "  find",
                '- arguments {"limit":3,"title":"Dune"}',
                '+ arguments "{" (invalid_json)',
            ),
        ),
    ],
)
def test_diff_names_what_differs(answer, diff):
    found = divergence(task(script(FIND, "done")), answer)

    assert (found.turn_index, found.diff) == (0, diff)


def test_call_on_a_text_turn_is_shown_beside_what_was_said():
    spec = task(script("hello", FIND))

    found = divergence(spec, calls(made("find", title="Dune", limit=3), text="so"))

    assert found.diff[0] == "- a text and no call"
    assert '+ text "so"' in found.diff


def test_wrong_order_is_shown_as_an_order():
    group = [gold("find", title="Dune"), gold("status", book_id="a")]

    found = divergence(
        task(script(group)),
        calls(made("status", book_id="a"), made("find", title="Dune")),
    )

    assert found.diff == ("- order: find, status", "+ order: status, find")


def test_default_that_counts_as_equal_is_no_difference():
    spec = task(script([gold("find", title="Dune", limit=10)], "x"))

    found = divergence(spec, calls(made("find", title="Dun")))

    assert found.diff == ("  find", '- title: "Dune"', '+ title: "Dun"')


@pytest.mark.parametrize(
    "answers",
    [(calls(made("find", title="Dune", limit=3)), says("x")), (unavailable(),)],
)
def test_nothing_diverges_in_a_success_or_a_stop(answers):
    assert divergence(task(script(FIND, "done")), *answers) is None


def test_nested_difference_has_its_path():
    lines = list(value_diff("", {"a": [{"b": 1}]}, {"a": [{"b": 1.0, "c": 2}]}))

    assert lines == ["- a[0].b: 1", "+ a[0].b: 1.0", "+ a[0].c: 2"]
