"""One episode under the declared policies: three values, and why."""

import random
from dataclasses import replace

import pytest

from harness.scoring.reading import ScorableTask
from harness.scoring.sensitivity import (
    POLICY_NAMES,
    Judged,
    Verdict,
    verdicts,
)
from harness.scoring.sensitivity_table import SensitivityTally
from tests.evidence.samples import attempt
from tests.scoring.episodes import (
    POLICY,
    STRICT_002,
    Evidence,
    calls,
    episode,
    gold,
    made,
    part,
    rescore,
    says,
    script,
    task,
    unavailable,
)

FIND = [gold("find", title="Dune", limit=3)]


def judged(spec, *answers, policy=POLICY, attempts=None, **more):
    of = episode(spec, *answers, policy=policy, **more)
    strict_002 = replace(policy, attribution="strict-002")
    return Judged(
        ScorableTask.of(spec),
        of,
        rescore(of, spec, policy),
        rescore(of, spec, strict_002),
        attempts or ((),) * len(of.turns),
    )


def values(*args, **more):
    found = verdicts(judged(*args, **more))
    return {name: verdict.value for name, verdict in found.items()}


def moved(*args, **more):
    """The policies whose verdict is another one than `typed` has."""
    found = values(*args, **more)
    return {n: v for n, v in found.items() if v != found["typed"]}


def test_declared_set_is_the_one_of_the_contract():
    assert POLICY_NAMES == (
        "typed",
        "int-equals-float",
        "defaults-inserted",
        "defaults-ignored",
        "extra-arguments",
        "strings-folded",
        "order-free",
        "groups-free",
        "strict-002",
    )


def test_gold_is_a_success_under_every_policy():
    found = values(
        task(script(FIND, "done")),
        calls(made("find", title="Dune", limit=3)),
        says("x"),
    )

    assert set(found.values()) == {"success"}


@pytest.mark.parametrize(
    ("arguments", "policy"),
    [
        ({"title": "Dune", "limit": 3.0}, "int-equals-float"),
        ({"title": "Dune", "limit": 3, "note": "x"}, "extra-arguments"),
        ({"title": " DUNE", "limit": 3}, "strings-folded"),
    ],
)
def test_forgiven_turn_leaves_the_rest_unknown(arguments, policy):
    spec = task(script(FIND, "done"))

    assert moved(spec, calls(made("find", **arguments))) == {policy: "unknown"}


def test_forgiven_last_turn_of_a_trace_is_a_success():
    spec = task(script(FIND))

    assert moved(spec, calls(made("find", title="dune", limit=3))) == {
        "strings-folded": "success"
    }


def test_two_habits_at_once_are_forgiven_by_no_single_rule():
    spec = task(script(FIND))

    assert moved(spec, calls(made("find", title="dune", limit=3.0))) == {}


def test_order_free_forgives_the_order_within_a_turn():
    group = [gold("status", book_id="a"), gold("status", book_id="b")]
    spec = task(script(group))

    assert moved(
        spec, calls(made("status", book_id="b"), made("status", book_id="a"))
    ) == {"order-free": "success"}


def test_half_a_group_may_go_on_where_groups_are_free():
    group = [gold("status", book_id="a"), gold("status", book_id="b")]
    spec = task(script(group, "done"))

    assert moved(spec, calls(made("status", book_id="a"))) == {"groups-free": "unknown"}


def test_joined_groups_that_end_the_script_are_a_success():
    spec = task(script([gold("status", book_id="a")], [gold("status", book_id="b")]))

    assert moved(
        spec, calls(made("status", book_id="a"), made("status", book_id="b"))
    ) == {"groups-free": "success"}


def test_wrong_half_of_a_group_stays_wrong():
    group = [gold("status", book_id="a"), gold("status", book_id="b")]
    spec = task(script(group, "done"))

    assert moved(spec, calls(made("status", book_id="c"))) == {}


def test_words_instead_of_a_call_are_forgiven_by_nothing():
    assert moved(task(script(FIND, "done")), says("I will not")) == {}


def test_ignored_defaults_end_a_recorded_success_earlier():
    spec = task(script([gold("find", title="Dune", limit=10)], "done"))

    found = verdicts(judged(spec, calls(made("find", title="Dune")), says("ok")))

    assert found["typed"].value == "success"
    assert found["defaults-ignored"] == Verdict("failure", "ends_earlier", 0)


def test_inserted_defaults_go_on_where_an_as_sent_run_ended():
    spec = task(script([gold("find", title="Dune", limit=10)], "done"))
    policy = replace(POLICY, insert_declared_defaults=False)

    assert moved(spec, calls(made("find", title="Dune")), policy=policy) == {
        "defaults-inserted": "unknown"
    }


def test_stop_is_a_stop_under_every_policy():
    assert set(values(task(script(FIND, "done")), unavailable()).values()) == {"stop"}


@pytest.mark.parametrize(
    ("assertion", "expected"), [("passed", "success"), ("failed", "failure")]
)
def test_forgiven_last_turn_of_an_executed_task_is_judged_by_its_state(
    assertion, expected
):
    spec = task(script(FIND), executable=part("a"))

    found = values(
        spec,
        calls(made("find", title="dune", limit=3)),
        evidence=Evidence(assertions=(assertion,)),
    )
    assert found["strings-folded"] == expected


def test_forgiven_call_that_never_ran_is_unknown():
    spec = task(script(FIND), executable=part("a"))

    found = verdicts(
        judged(
            spec,
            calls(
                made("find", title="Dune", limit=3.0),
                executions=("not_executed",),
            ),
            evidence=Evidence(assertions=("passed",)),
        )
    )
    assert found["int-equals-float"] == Verdict("unknown", "call_never_ran", 0)


@pytest.mark.parametrize(
    ("detail", "wire_class", "expected"),
    [
        ("envelope_malformed", "transport_retryable", "failure"),
        ("generation_aborted", "transport_retryable", "unknown"),
    ],
)
def test_first_200_decides_under_strict_002(detail, wire_class, expected):
    spec = task(script(FIND))
    first = replace(
        attempt(), http_status=200, wire_class=wire_class, detail_code=detail
    )

    answer = calls(made("find", title="Dune", limit=3))
    assert moved(spec, answer, attempts=((first,),)) == {"strict-002": expected}


def test_retry_after_an_error_status_changes_nothing_under_strict_002():
    spec = task(script(FIND))
    first = replace(
        attempt(),
        http_status=503,
        wire_class="transport_retryable",
        detail_code="provider_unavailable",
    )

    answer = calls(made("find", title="Dune", limit=3))
    assert moved(spec, answer, attempts=((first,),)) == {}


def test_strict_002_policy_is_its_own_baseline():
    spec = task(script(FIND))

    assert (
        moved(spec, calls(made("find", title="Dune", limit=3)), policy=STRICT_002) == {}
    )


def _tally(rows):
    tally = SensitivityTally({"a": ("t1", "t2"), "b": ("t1",)})
    for alias, task_id, value in rows:
        found = dict.fromkeys(POLICY_NAMES, Verdict("failure", "as_recorded", None))
        found["order-free"] = Verdict(value, "why", 0)
        tally.add(alias, task_id, 0, found)
    return tally.result()


ROWS = [("a", "t1", "success"), ("a", "t2", "success"), ("b", "t1", "unknown")]


def test_order_of_adding_changes_nothing():
    expected = _tally(ROWS)

    for seed in range(6):
        rows = random.Random(seed).sample(ROWS, k=len(ROWS))
        assert _tally(rows) == expected


def test_places_are_taken_over_the_shared_tasks():
    result = _tally(ROWS)

    index = POLICY_NAMES.index("order-free")
    first, second = (c.policies[index] for c in result.candidates)
    assert result.shared_tasks == 1
    assert first.bounds == (2, 2)
    assert (second.place.best, second.place.worst) == (1, 2)
