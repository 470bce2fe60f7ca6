"""A comparison of any number of entries: labels, groups, rankings.

Every pair of runs is judged, not only those with the first. Entries of which no two are
incompatible form a group, as large as it can be; one that cannot tell a field may be in
several. Only within a group of several runs is anything ranked: how the candidates of
one run rank stands in its own report. The label of the whole is the weakest of all
pairs of runs. Equal scores share a place; an entry without a score has none. All
metrics are better when higher.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from harness.evaluations.entry import Entry
from harness.evaluations.pairs import STRENGTH, Label, Pair, judge
from harness.evaluations.protocol import REASON_CODES

OBSERVED: Final = (
    "The gap was observed on these rows; that it would show on others is not claimed."
)
CAUTION: Final = (
    "Scores may hold effects of the runtimes that made them, not of the models alone."
)


@dataclass(frozen=True, slots=True)
class Place:
    """Entries with one score; several are tied."""

    place: int
    """Counts from 1; the place after two tied ones skips one."""
    members: tuple[Entry, ...]
    score: float | int


@dataclass(frozen=True, slots=True)
class Group:
    """Entries that are not incompatible with each other."""

    members: tuple[Entry, ...]
    label: Label | None
    """The weakest among its pairs of runs; None for entries of one run."""
    ranking: tuple[Place, ...]
    """Empty for entries of one run."""
    not_scored: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that was found."""

    entries: tuple[Entry, ...]
    pairs: tuple[Pair, ...]
    """Every two entries of different runs."""
    groups: tuple[Group, ...]

    @property
    def label(self) -> Label:
        """The weakest label of all pairs."""
        return weakest(self.pairs)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Codes of all incompatibilities, in the order of the protocol's groups."""
        found = {reason.code for pair in self.pairs for reason in pair.reasons}
        return tuple(code for code in REASON_CODES if code in found)


def compare(entries: Sequence[Entry]) -> Comparison:
    """Judge all pairs and rank what can be ranked; takes entries of several runs."""
    pairs = tuple(judge(left, right) for left, right in combinations(entries, 2))
    across = tuple(pair for pair in pairs if pair.left.run != pair.right.run)
    return Comparison(tuple(entries), across, tuple(_groups(entries, pairs)))


def weakest(pairs: Sequence[Pair]) -> Label:
    """Return the weakest label of pairs."""
    return min((pair.label for pair in pairs), key=STRENGTH.__getitem__)


def rank(entries: Sequence[Entry]) -> tuple[Place, ...]:
    """Return the places of entries that are scored."""
    scored = [(each.score, each) for each in entries if each.score is not None]
    found = []
    for score in sorted({score for score, _ in scored}, reverse=True):
        better = sum(other > score for other, _ in scored)
        tied = tuple(each for other, each in scored if other == score)
        found.append(Place(better + 1, tied, score))
    return tuple(found)


def _groups(entries: Sequence[Entry], pairs: Sequence[Pair]) -> list[Group]:
    clash = {
        frozenset((pair.left.name, pair.right.name))
        for pair in pairs
        if pair.label is Label.INCOMPATIBLE
    }
    groups: list[tuple[int, ...]] = [()]
    for place, entry in enumerate(entries):
        apart = {
            other
            for other in range(place)
            if frozenset((entries[other].name, entry.name)) in clash
        }
        # A field that one entry cannot tell may hide a difference between others.
        found = {(*(o for o in group if o not in apart), place) for group in groups}
        found.update(groups)
        groups = [each for each in found if not any(set(each) < set(o) for o in found)]
    return [_group([entries[i] for i in group], pairs) for group in sorted(groups)]


def _group(members: list[Entry], pairs: Sequence[Pair]) -> Group:
    names = {each.name for each in members}
    own = [
        pair
        for pair in pairs
        if {pair.left.name, pair.right.name} <= names
        and pair.left.run != pair.right.run
    ]
    if not own:
        return Group(tuple(members), None, (), ())
    missing = tuple(each for each in members if each.score is None)
    return Group(tuple(members), weakest(own), rank(members), missing)
