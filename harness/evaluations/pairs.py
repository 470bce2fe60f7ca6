"""What two entries say of each other: one label with all of its reasons.

Different protocol fields make two entries `incompatible`. With equal fields they are
`comparable` where all conditions are known and equal, else `cross-runtime`: a score may
then hold an effect of where it was made. What names the model is different on purpose
and decides nothing. Each pair is judged by itself, the same from either side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from harness.canonical import Json, json_equal
from harness.evaluations.conditions import UNKNOWN
from harness.evaluations.entry import Entry
from harness.evaluations.numbers import plain_numbers
from harness.evaluations.protocol import GROUPS, REASON_CODES, leaves

ESSENTIAL: Final = ("engine", "device", "compute_dtype", "versions")
"""Conditions without which nobody can say that two were alike."""
NAMES_THE_MODEL: Final = frozenset(
    {
        "checkpoint_sha256",
        "chat_template_reads_clock",
        "chat_template_sha256",
        "context_tokens",
        "end_tokens",
        "model_identity",
        "requested_model",
        "served_model",
    }
)
"""Conditions that differ because two models do."""
BOUND_TO_MODEL: Final = "system_fingerprint"
"""A server's word for model and configuration: of one model only it can be compared."""
ABSENT: Final = "absent"


class Label(StrEnum):
    """How two entries may be held against each other."""

    COMPARABLE = "comparable"
    CROSS_RUNTIME = "cross-runtime"
    INCOMPATIBLE = "incompatible"


STRENGTH: Final = {
    Label.COMPARABLE: 2,
    Label.CROSS_RUNTIME: 1,
    Label.INCOMPATIBLE: 0,
}


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One protocol field with both values; `absent` where a side does not have it."""

    field: str
    left: Json
    right: Json


@dataclass(frozen=True, slots=True)
class Reason:
    """Why two entries are incompatible: a code with all fields under it."""

    code: str
    fields: tuple[FieldDifference, ...]


@dataclass(frozen=True, slots=True)
class ConditionDifference:
    """One condition that is not known to be alike."""

    condition: str
    kind: Literal["differs", "unknown", "mixed"]
    left: tuple[Json, ...]
    right: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two entries with their label."""

    left: Entry
    right: Entry
    reasons: tuple[Reason, ...]
    unknown_fields: tuple[str, ...]
    """Protocol fields that a side cannot tell."""
    differences: tuple[ConditionDifference, ...]
    models: tuple[ConditionDifference, ...]
    """What names the models, where it differs; decides nothing."""

    @property
    def label(self) -> Label:
        """The one word."""
        if self.reasons:
            return Label.INCOMPATIBLE
        if self.differences or self.unknown_fields:
            return Label.CROSS_RUNTIME
        return Label.COMPARABLE


def judge(left: Entry, right: Entry) -> Pair:
    """Hold two entries against each other."""
    found: dict[str, list[FieldDifference]] = {}
    unknown: list[str] = []
    ours, theirs = left.groups, right.groups
    for group in GROUPS:
        for difference in _field_differences(ours[group], theirs[group]):
            if UNKNOWN in (difference.left, difference.right):
                unknown.append(f"{group}.{difference.field}".removesuffix(".stated"))
            else:
                found.setdefault(group, []).append(difference)
    if left.protocol_version != right.protocol_version:
        versions = left.protocol_version, right.protocol_version
        found["protocol_version"] = [FieldDifference("version", *versions)]
    conditions = list(_condition_differences(left, right))
    return Pair(
        left,
        right,
        tuple(
            Reason(code, tuple(found[code])) for code in REASON_CODES if code in found
        ),
        tuple(unknown),
        tuple(each for each in conditions if not _is_of_models(each)),
        tuple(each for each in conditions if _is_of_models(each)),
    )


def _is_of_models(difference: ConditionDifference) -> bool:
    """Tell whether only the models differ; two models within one side are a mixture."""
    return difference.condition in NAMES_THE_MODEL and difference.kind != "mixed"


def _field_differences(
    ours: Mapping[str, Json], theirs: Mapping[str, Json]
) -> Iterator[FieldDifference]:
    unstated = UNKNOWN in (ours.get("stated"), theirs.get("stated"))
    if unstated:
        yield FieldDifference("stated", UNKNOWN, UNKNOWN)
        return
    left, right = dict(leaves(ours)), dict(leaves(theirs))
    # A group without members is one leaf without a name: no field to tell of.
    for field in sorted((left.keys() | right.keys()) - {""}):
        values = left.get(field, ABSENT), right.get(field, ABSENT)
        plain = tuple(map(plain_numbers, values))
        if UNKNOWN in plain or not json_equal(*plain):
            yield FieldDifference(field, *values)


def _condition_differences(left: Entry, right: Entry) -> Iterator[ConditionDifference]:
    ours, theirs = left.conditions, right.conditions
    same_model = ours.get("served_model") == theirs.get("served_model")
    stated = ours.keys() | theirs.keys()
    names = stated | {
        name
        for name in ESSENTIAL
        # Versions and the like are spread out into one condition each.
        if not any(each.startswith(f"{name}.") for each in stated)
    }
    for name in sorted(names):
        if name == BOUND_TO_MODEL and not same_model:
            continue
        values = left.values_of(name), right.values_of(name)
        kind = _kind(name, *values)
        if kind is not None:
            yield ConditionDifference(name, kind, *map(tuple, values))


def _kind(
    name: str, left: list[Json], right: list[Json]
) -> Literal["differs", "unknown", "mixed"] | None:
    if len(left) > 1 or len(right) > 1:
        return "mixed"
    equal = json_equal(plain_numbers(left), plain_numbers(right))
    if UNKNOWN in left or UNKNOWN in right:
        return None if equal and name not in ESSENTIAL else "unknown"
    return None if equal else "differs"
