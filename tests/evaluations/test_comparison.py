"""Labels, reasons and rankings, from any side and over any number of entries."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.evaluations.comparison import compare, rank
from harness.evaluations.entry import Entry
from harness.evaluations.pairs import Label, judge
from harness.evaluations.protocol import GROUPS, REASON_CODES
from harness.evaluations.record import build_record
from harness.evaluations.stored import StoredRecord
from tests.evaluations.records import DECODING, conditions, inputs, protocol, subject


def made(name, *subjects, **changes):
    """Return the entry of a record that lies nowhere."""
    record = build_record(inputs(*subjects, **changes))
    stored = StoredRecord(None, record, "sha256:" + "0" * 64)
    return Entry(name, name, stored, record["subjects"][0])


UNKNOWN_DEVICE = {"conditions": conditions(device="unknown")}
VARIANTS = {
    "plain": {},
    "better": {"subject": {"correct": 4}},
    "equal": {"subject": {"correct": 3}},
    "unscored": {"subject": {"correct": None}},
    "other_model": {"subject": {"conditions": conditions(model_identity="n")}},
    "other_device": {"subject": {"conditions": conditions(device="cuda")}},
    "hosted": {"subject": UNKNOWN_DEVICE},
    "unknown_prompts": {"groups": {"prompts": {"stated": "unknown"}}},
    "no_conditions": {"subject": {"conditions": {}}},
    **{f"other_{group}": {"groups": {group: {"a": 1}}} for group in GROUPS},
}
NAMES = st.sampled_from(sorted(VARIANTS))


def variant(kind, name):
    """Return an entry that differs from the plain one in one thing."""
    told = VARIANTS[kind]
    return made(
        name,
        subject(**told.get("subject", {})),
        protocol=protocol(**told.get("groups", {})),
    )


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        ("plain", Label.COMPARABLE),
        ("better", Label.COMPARABLE),
        ("other_model", Label.COMPARABLE),
        ("other_device", Label.CROSS_RUNTIME),
        ("hosted", Label.CROSS_RUNTIME),
        ("no_conditions", Label.CROSS_RUNTIME),
        ("unknown_prompts", Label.CROSS_RUNTIME),
        *((f"other_{group}", Label.INCOMPATIBLE) for group in GROUPS),
    ],
)
def test_label_of_one_difference(kind, label):
    assert judge(variant("plain", "a"), variant(kind, "b")).label is label


def test_two_hosted_endpoints_are_never_comparable():
    pair = judge(variant("hosted", "a"), variant("hosted", "b"))

    assert pair.label is Label.CROSS_RUNTIME
    assert [each.condition for each in pair.differences] == ["device"]


def test_rows_of_two_kinds_within_one_run_are_mixed():
    mixed = conditions()
    mixed["device"] = {"values": ["cpu", "cuda"], "rows": [3, 1], "mixed": True}
    both = [made(name, subject(conditions=mixed)) for name in "ab"]

    (difference,) = judge(*both).differences
    assert (difference.condition, difference.kind) == ("device", "mixed")


def test_two_models_behind_one_name_are_a_mixture():
    mixed = conditions()
    mixed["served_model"] = {"values": ["m-1", "m-2"], "rows": [3, 1], "mixed": True}

    pair = judge(made("a"), made("b", subject(conditions=mixed)))
    assert pair.label is Label.CROSS_RUNTIME
    assert [each.condition for each in pair.differences] == ["served_model"]


@pytest.mark.parametrize("code", GROUPS)
def test_reason_is_the_group_that_differs(code):
    pair = judge(variant("plain", "a"), variant(f"other_{code}", "b"))

    assert [reason.code for reason in pair.reasons] == [code]


def test_all_reasons_are_told_in_their_order():
    groups = {name: {"a": 1} for name in GROUPS}
    other = made("b", protocol=protocol(**groups))
    other.record.payload["protocol"]["version"] = "0"

    pair = judge(made("a"), other)

    assert [reason.code for reason in pair.reasons] == list(REASON_CODES)


def test_reason_names_each_field_with_both_values():
    decoding = {**DECODING, "max_tokens": 32, "seed": 1}
    pair = judge(made("a"), made("b", protocol=protocol(decoding=decoding)))

    (reason,) = pair.reasons
    assert [(f.field, f.left, f.right) for f in reason.fields] == [
        ("max_tokens", 16, 32),
        ("seed", "absent", 1),
    ]


def test_group_without_members_is_no_field_of_its_own():
    pair = judge(
        made("a", protocol=protocol(plan={})),
        made("b", protocol=protocol(plan={"repeats": 1})),
    )

    (reason,) = pair.reasons
    assert [field.field for field in reason.fields] == ["repeats"]


def test_number_forms_are_one_protocol():
    whole = made("b", protocol=protocol(decoding={**DECODING, "temperature": 0}))

    assert judge(made("a"), whole).label is Label.COMPARABLE


def test_truth_and_one_are_two_values():
    one = made("b", protocol=protocol(decoding={**DECODING, "greedy": 1}))

    assert judge(made("a"), one).label is Label.INCOMPATIBLE


def test_own_protocol_of_a_subject_replaces_the_shared_one():
    own = subject(protocol={"decoding": {**DECODING, "seed": 5}})
    shared = protocol(decoding={"stated": "by subject"})

    pair = judge(made("a"), made("b", own, protocol=shared))

    assert [reason.code for reason in pair.reasons] == ["decoding"]


def test_settings_as_applied_are_conditions():
    warm = subject(applied={**DECODING, "temperature": 0.7})

    (difference,) = judge(made("a"), made("b", warm)).differences
    assert difference.condition == "applied.temperature"


def test_ties_share_a_place_and_the_next_one_is_skipped():
    entries = [
        made(name, subject(correct=n))
        for name, n in zip("abcd", (2, 4, 4, 1), strict=True)
    ]

    places = [(p.place, [e.name for e in p.members]) for p in rank(entries)]
    assert places == [(1, ["b", "c"]), (3, ["a"]), (4, ["d"])]


def test_missing_score_is_outside_the_ranking():
    comparison = compare([made("a"), variant("unscored", "b")])

    (group,) = comparison.groups
    assert [p.members[0].name for p in group.ranking] == ["a"]
    assert [e.name for e in group.not_scored] == ["b"]


def test_withheld_headline_is_not_ranked():
    withheld = made("b", subject(withheld="stops.share_over_cap"))

    assert withheld.score is None
    assert withheld.not_scored == "stops.share_over_cap"


def test_incompatible_runs_have_no_ranking():
    comparison = compare([variant("plain", "a"), variant("other_rows", "b")])

    assert comparison.label is Label.INCOMPATIBLE
    assert comparison.reasons == ("rows",)
    assert all(group.ranking == () for group in comparison.groups)


def test_runs_that_agree_rank_beside_one_that_does_not():
    kinds = {"a": "plain", "b": "other_metric", "c": "better"}
    comparison = compare([variant(kind, name) for name, kind in kinds.items()])

    assert comparison.label is Label.INCOMPATIBLE
    first, alone = comparison.groups
    assert [p.members[0].name for p in first.ranking] == ["c", "a"]
    assert alone.ranking == ()


def test_candidates_of_one_run_are_not_ranked_against_each_other_alone():
    left, right = made("run/a"), made("run/b", subject(correct=4))
    one_run = [replace(each, run="run") for each in (left, right)]
    comparison = compare([*one_run, variant("other_rows", "b")])

    assert all(group.ranking == () for group in comparison.groups)


@given(NAMES, NAMES)
def test_label_and_reasons_are_the_same_from_either_side(left, right):
    there = judge(variant(left, "a"), variant(right, "b"))
    back = judge(variant(right, "b"), variant(left, "a"))

    assert there.label is back.label
    assert [r.code for r in there.reasons] == [r.code for r in back.reasons]
    assert there.unknown_fields == back.unknown_fields
    assert [d.condition for d in there.differences] == [
        d.condition for d in back.differences
    ]


@given(st.lists(NAMES, min_size=2, max_size=5))
def test_every_pair_is_judged_and_no_group_holds_a_clash(kinds):
    entries = [variant(kind, f"r{n}") for n, kind in enumerate(kinds)]
    comparison = compare(entries)

    assert len(comparison.pairs) == len(kinds) * (len(kinds) - 1) // 2
    members = [{e.name for e in group.members} for group in comparison.groups]
    assert set().union(*members) == {entry.name for entry in entries}
    assert not any(one < other for one in members for other in members)
    for pair in comparison.pairs:
        together = any({pair.left.name, pair.right.name} <= each for each in members)
        assert together == (pair.label is not Label.INCOMPATIBLE)


@given(st.permutations(["plain", "unknown_prompts", "other_prompts", "other_rows"]))
def test_groups_do_not_hang_on_the_order_of_the_runs(kinds):
    comparison = compare([variant(kind, kind) for kind in kinds])

    assert {frozenset(e.name for e in g.members) for g in comparison.groups} == {
        frozenset({"plain", "unknown_prompts"}),
        frozenset({"other_prompts", "unknown_prompts"}),
        frozenset({"other_rows"}),
    }


@given(st.lists(st.integers(0, 4) | st.none(), min_size=2, max_size=6))
def test_ranking_is_that_of_the_scores_and_turns_around_with_them(correct):
    entries = [made(f"r{n}", subject(correct=each)) for n, each in enumerate(correct)]
    place = {e.name: p.place for p in rank(entries) for e in p.members}

    for left in entries:
        for right in entries:
            if left.score is not None and right.score is not None:
                assert (place[left.name] < place[right.name]) == (
                    left.score > right.score
                )
                assert (place[left.name] == place[right.name]) == (
                    left.score == right.score
                )
    assert {e.name for e in entries if e.score is None}.isdisjoint(place)
