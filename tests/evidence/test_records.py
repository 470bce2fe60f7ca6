"""Records are closed and strict, and identity is everything but own diagnostics."""

import copy
import dataclasses
import functools
import inspect
import json
import types
import typing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.canonical import canonical_bytes, canonical_json, content_hash
from harness.conversation import script, task
from harness.errors import EvidenceError
from harness.evidence import episode, record_code, records
from harness.evidence.episode import (
    MAX_DURATION_S,
    Attempt,
    CandidateResponse,
    DependencyOutcome,
    Episode,
    Moment,
    Seconds,
)
from harness.evidence.records import Record
from harness.scoring import records as scores
from harness.scoring.metric import Metric
from tests.evidence.samples import attempt
from tests.test_canonical import KEYS

RECORD_CLASSES = tuple(
    sorted(
        {
            member
            for module in (episode, script, task, scores)
            for _, member in inspect.getmembers(module, inspect.isclass)
            # A random metric contradicts itself, and so a random score.
            if issubclass(member, Record)
            and dataclasses.is_dataclass(member)
            and member not in (Metric, scores.TaskScore)
        },
        key=lambda member: member.__name__,
    )
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(0, 1)
DATA = (
    SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(KEYS, SCALARS, max_size=2)
)
LEAVES = {
    bool: st.booleans(),
    int: st.integers(-3, 5),
    float: st.floats(0, 9, allow_nan=False),
    str: st.text(st.characters(exclude_categories=("Cs",)), max_size=5),
    Seconds: st.floats(0, MAX_DURATION_S),
    Moment: st.datetimes().map(lambda m: m.isoformat(timespec="milliseconds") + "Z"),
}


def values_of(hint):
    """Build a strategy for what one annotated field may hold."""
    arguments = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if hint is typing.Any:
        return DATA
    if origin is typing.Literal:
        return st.sampled_from(arguments)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(
            st.none() if part is types.NoneType else values_of(part)
            for part in arguments
        )
    if hint in LEAVES:
        return LEAVES[hint]
    if origin is tuple:
        return st.lists(values_of(arguments[0]), max_size=2).map(tuple)
    if origin is dict:
        return st.dictionaries(KEYS, values_of(arguments[1]), max_size=2)
    return records_of(hint)


@functools.cache
def records_of(cls):
    """Build a strategy for whole records of one class."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return st.builds(
        cls, **{f.name: values_of(hints[f.name]) for f in dataclasses.fields(cls)}
    )


few = settings(max_examples=12)
"""One example touches every field, so a dozen say as much as a hundred."""


def classes(test):
    return pytest.mark.parametrize("cls", RECORD_CLASSES, ids=lambda c: c.__name__)(
        test
    )


def test_evidence_classes_are_found():
    assert {Episode, CandidateResponse, task.TaskSpec} <= set(RECORD_CLASSES)


@classes
def test_class_is_frozen_and_slotted(cls):
    assert cls.__dataclass_params__.frozen
    assert "__dict__" not in dir(cls)


@classes
def test_names_outside_identity_are_fields(cls):
    fields = {field.name for field in dataclasses.fields(cls)}

    assert cls.OUTSIDE_IDENTITY - fields <= {"detail"}


@classes
@few
@given(data=st.data())
def test_payload_reads_back_as_the_same_record(cls, data):
    record = data.draw(records_of(cls))
    text = canonical_json(record.semantic_payload())

    again = cls.from_payload(json.loads(text))

    assert again == record
    assert canonical_json(again.semantic_payload()) == text


@classes
@few
@given(data=st.data())
def test_text_is_the_canonical_json_of_the_payload(cls, data):
    record = data.draw(records_of(cls))

    assert record.semantic_bytes() == canonical_bytes(record.semantic_payload())
    assert record.identity_hash() == content_hash(record.identity_payload())


def bent(payload, data):
    """Put something else somewhere into a payload."""
    if isinstance(payload, dict) and payload:
        name = data.draw(st.sampled_from(sorted(payload)))
        change = data.draw(st.sampled_from(["value", "deep", "drop", "add"]))
        rest = {key: value for key, value in payload.items() if key != name}
        if change == "drop":
            return rest
        if change == "add":
            return {**payload, f"{name}_": None}
        inner = bent(payload[name], data) if change == "deep" else data.draw(DATA)
        return {**rest, name: inner}
    if isinstance(payload, list) and payload:
        at = data.draw(st.integers(0, len(payload) - 1))
        return [*payload[:at], bent(payload[at], data), *payload[at + 1 :]]
    return data.draw(DATA)


@classes
@settings(max_examples=25)
@given(data=st.data())
def test_written_code_reads_what_the_walk_reads(cls, data):
    payload = bent(data.draw(records_of(cls)).semantic_payload(), data)
    assert outcome_of(cls.from_payload, payload) == outcome_of(
        lambda value: records._walk(cls, value, "$"), payload
    )


def outcome_of(read, payload):
    """Return the text of the record, or of the refusal."""
    try:
        return text_of(read(payload))
    except EvidenceError as refusal:
        return str(refusal)


@classes
@few
@given(data=st.data())
def test_written_code_needs_no_walk_for_what_fits(cls, data):
    record = data.draw(records_of(cls))
    payload = json.loads(text_of(record))

    assert record_code.code_of(cls).read(payload) == record


@classes
@few
@given(data=st.data())
def test_record_is_locked_once_it_is_filled_in(cls, data):
    record = data.draw(records_of(cls))
    name = dataclasses.fields(cls)[0].name

    assert type(record) is cls
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(record, name, None)


@classes
@few
@given(data=st.data())
def test_record_with_other_values_is_what_replace_makes(cls, data):
    record, other = data.draw(records_of(cls)), data.draw(records_of(cls))
    name = data.draw(st.sampled_from([f.name for f in dataclasses.fields(cls)]))
    change = {name: getattr(other, name)}

    assert record.but(**change) == dataclasses.replace(record, **change)


@classes
@few
@given(data=st.data())
def test_changed_copy_of_a_hashed_record_has_its_own_hash(cls, data):
    record, other = data.draw(records_of(cls)), data.draw(records_of(cls))
    name = data.draw(st.sampled_from([f.name for f in dataclasses.fields(cls)]))
    before = record.identity_hash()

    changed = record.but(**{name: getattr(other, name)})

    assert copy.copy(record).identity_hash() == before
    assert changed.identity_hash() == content_hash(changed.identity_payload())
    assert record.identity_hash() == before


def test_post_init_is_held():
    with pytest.raises(EvidenceError, match="contradicts itself"):
        Metric("m", 2, 1, 2.0, None)


def test_value_outside_its_annotation_is_written_as_any_value():
    record = dataclasses.replace(OUTCOME, dependency_index=True)

    assert record.semantic_bytes() == canonical_bytes(record.semantic_payload())


def holds_records(value):
    items = value if isinstance(value, tuple) else (value,)
    return any(isinstance(item, Record) for item in items)


def text_of(record):
    return canonical_json(record.semantic_payload())


@classes
@few
@given(data=st.data())
def test_one_changed_field_changes_identity_unless_it_is_outside(cls, data):
    one = data.draw(records_of(cls))
    second = data.draw(records_of(cls))
    for field in dataclasses.fields(cls):
        other = dataclasses.replace(one, **{field.name: getattr(second, field.name)})
        kept = one.identity_hash() == other.identity_hash()
        if field.name in cls.OUTSIDE_IDENTITY or text_of(one) == text_of(other):
            assert kept, field.name
        elif not holds_records(getattr(one, field.name)) and not holds_records(
            getattr(other, field.name)
        ):
            assert not kept, field.name


@classes
@few
@given(data=st.data())
def test_unknown_and_missing_fields_are_refused(cls, data):
    payload = data.draw(records_of(cls)).semantic_payload()
    for name in payload:
        with pytest.raises(EvidenceError, match="unknown"):
            cls.from_payload({**payload, f"{name}_": 1})
        with pytest.raises(EvidenceError, match=f"missing=.'{name}'"):
            cls.from_payload({k: v for k, v in payload.items() if k != name})


@classes
@few
@given(data=st.data())
def test_field_of_another_type_is_refused_with_its_place(cls, data):
    hints = typing.get_type_hints(cls)
    payload = data.draw(records_of(cls)).semantic_payload()
    for name in payload:
        hint = hints[name]
        if hint is typing.Any:
            continue
        wrong = {int: True, float: 1, bool: 1, str: 1}.get(hint, 0.5)
        if float in typing.get_args(hint):
            wrong = 1
        with pytest.raises(EvidenceError, match=rf"where: \$\.{name}"):
            cls.from_payload({**payload, name: wrong})


@pytest.mark.parametrize("payload", [None, [], "x", 1])
def test_what_is_no_object_is_no_record(payload):
    with pytest.raises(EvidenceError, match="an object"):
        Episode.from_payload(payload)


OUTCOME = DependencyOutcome(0, 1, 1, 0, "resolved", {"detail": "a"}, "r", "first")


def test_own_detail_is_outside_identity():
    reworded = dataclasses.replace(OUTCOME, detail="second")

    assert reworded.identity_hash() == OUTCOME.identity_hash()
    assert reworded.semantic_payload() != OUTCOME.semantic_payload()


def test_detail_inside_data_is_data():
    changed = dataclasses.replace(OUTCOME, value={"detail": "b"})

    assert changed.identity_hash() != OUTCOME.identity_hash()


def test_identity_hash_is_over_the_identity_payload():
    assert OUTCOME.identity_hash() == content_hash(OUTCOME.identity_payload())
    assert OUTCOME.identity_payload().keys() == OUTCOME.semantic_payload().keys() - {
        "detail"
    }


@few
@given(records_of(Episode), records_of(DependencyOutcome))
def test_diagnostics_of_nested_records_are_outside_too(whole, outcome):
    def holding(detail):
        inner = dataclasses.replace(outcome, detail=detail)
        execution = episode.ExecutionEvidence("o", "t", (), (inner,), (), None, {})
        return dataclasses.replace(whole, execution=execution).identity_hash()

    assert holding("first") == holding("second")


@few
@given(records_of(Episode), records_of(DependencyOutcome))
def test_meaning_of_nested_records_is_inside(whole, outcome):
    def holding(reason_code):
        inner = dataclasses.replace(outcome, reason_code=reason_code)
        execution = episode.ExecutionEvidence("o", "t", (), (inner,), (), None, {})
        return dataclasses.replace(whole, execution=execution).identity_hash()

    assert holding("first") != holding("second")


def test_word_outside_its_closed_set_is_refused():
    payload = OUTCOME.semantic_payload() | {"status": "guessed"}

    with pytest.raises(EvidenceError, match="one of"):
        DependencyOutcome.from_payload(payload)


def test_refusal_names_the_place_inside_a_list():
    payload = {
        "provider_response_id": None,
        "provider_request_id": None,
        "served_model": None,
        "server": None,
        "message": None,
        "text": None,
        "tool_calls": [{}],
        "finish_reason": None,
        "usage": None,
        "selected_attempt": 0,
        "raw_response_hash": "",
    }

    with pytest.raises(EvidenceError, match=r"where: \$\.tool_calls\[0\]"):
        CandidateResponse.from_payload(payload)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("observed_at", "x"),
        ("observed_at", ""),
        ("observed_at", "2026-13-01T00:00:00Z"),
        ("observed_at", "2026-01-01T00:00:00"),
        ("observed_at", "2026-01-01T24:30:00Z"),
        ("latency_s", -0.25),
        ("latency_s", 1e300),
        ("latency_s", MAX_DURATION_S * 2),
    ],
)
def test_value_that_breaks_the_rule_of_its_field_is_refused_with_its_place(name, value):
    payload = attempt().semantic_payload() | {name: value}

    with pytest.raises(EvidenceError, match=rf"where: here\.{name}"):
        Attempt.from_payload(payload, "here")


@pytest.mark.parametrize("moment", ["2026-01-01T00:00:00Z", "2024-02-29T23:59:59.999Z"])
def test_moment_is_read_back(moment):
    payload = attempt().semantic_payload() | {"observed_at": moment}

    assert Attempt.from_payload(payload).observed_at == moment
