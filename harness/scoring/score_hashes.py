"""The hashes of many scores, held as bytes and written as a list in JSON.

A score's hash as a text takes 120 bytes and its digest 32, and a run has one for each
episode. Texts are made when they are asked for, some at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, overload

_NAME: Final = "sha256:"
_SIZE: Final = 32
_BETWEEN: Final = f'","{_NAME}'
_TEXT_SIZE: Final = len(_BETWEEN) + 2 * _SIZE
"""Characters of one hash in a list, with what parts it from the next."""
_AT_ONCE: Final = 1024
NO_SCORE: Final = _NAME + 2 * _SIZE * "0"
"""Stands for an episode without a score; no score has this hash."""


class ScoreHashes(Sequence[str]):
    """Content hashes in plan order; equal to a tuple of the same hashes."""

    __slots__ = ("_digests",)

    def __init__(self, hashes: Iterable[str] = ()) -> None:
        self._digests = bytearray()
        for each in hashes:
            self.append(each)

    def append(self, score_hash: str) -> None:
        """Add the hash of the next episode."""
        self._digests += bytes.fromhex(score_hash[len(_NAME) :])

    def __len__(self) -> int:
        return len(self._digests) // _SIZE

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[str, ...]: ...
    def __getitem__(self, place: int | slice) -> str | tuple[str, ...]:
        if isinstance(place, slice):
            return tuple([self[each] for each in range(*place.indices(len(self)))])
        begin = range(len(self))[place] * _SIZE
        return _NAME + self._digests[begin : begin + _SIZE].hex()

    def __iter__(self) -> Iterator[str]:
        return map(self.__getitem__, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ScoreHashes):
            return self._digests == other._digests
        return tuple(self) == other if isinstance(other, tuple) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def texts(self) -> Iterator[str]:
        """Yield the text of the list between its brackets, in pieces."""
        step = _AT_ONCE * _SIZE
        for begin in range(0, len(self._digests), step):
            listed = self._digests[begin : begin + step].hex(",", _SIZE)
            before = f',"{_NAME}' if begin else f'"{_NAME}'
            yield before + listed.replace(",", _BETWEEN) + '"'

    @classmethod
    def from_text(cls, text: str) -> ScoreHashes | None:
        """Read what `texts` yields; None for any other text."""
        read = cls()
        for begin in range(0, len(text), _AT_ONCE * _TEXT_SIZE):
            piece = text[begin : begin + _AT_ONCE * _TEXT_SIZE]
            listed = piece.strip(',"').removeprefix(_NAME).replace(_BETWEEN, "")
            try:
                read._digests += bytes.fromhex(listed)
            except ValueError:
                return None
        at = 0
        for piece in read.texts():
            if not text.startswith(piece, at):
                return None
            at += len(piece)
        return read if at == len(text) else None
