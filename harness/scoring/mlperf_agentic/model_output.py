"""One answer as the log holds it: text, reasoning and tool calls, whole or in pieces.

Chunks of text are joined. If the first member of `tool_calls` is an array, all
members are arrays of streamed deltas and are merged by their index; two parallel
calls without an index therefore become one. A delta that would end the original's
run is skipped under a name.
"""

from __future__ import annotations

from numbers import Real
from typing import Final, NamedTuple

from harness.canonical import Json
from harness.scoring.mlperf_agentic.skips import CallSkip


class ModelOutput(NamedTuple):
    """What a model answered to one turn."""

    content: str
    reasoning: str | None
    tool_calls: Json
    """None, finished calls, or arrays of deltas; see `finished_calls`."""


class FinishedCalls(NamedTuple):
    """Tool calls after merging, and the deltas that could not be merged."""

    calls: Json
    skips: tuple[CallSkip, ...]


class OutputTypeError(ValueError):
    """A field of an output has a type that the log's format does not know."""


def model_output(fields: list[Json]) -> ModelOutput:
    """Read the fields after the tag; missing ones are empty. Raises OutputTypeError."""
    content = fields[0] if fields else ""
    reasoning = fields[1] if len(fields) > 1 else None
    tool_calls = fields[2] if len(fields) > 2 else None
    if tool_calls is not None and not isinstance(tool_calls, list):
        raise OutputTypeError("tool_calls is no array")
    return ModelOutput(
        _joined(content),
        None if reasoning is None else _joined(reasoning) or None,
        tool_calls,
    )


def finished_calls(tool_calls: Json) -> FinishedCalls:
    """Return finished calls, deltas merged."""
    if not tool_calls or not isinstance(tool_calls[0], list):
        return FinishedCalls(tool_calls, ())
    return _Merge().of(tool_calls)


def _joined(text: Json) -> str:
    if isinstance(text, str):
        return text
    if not isinstance(text, list) or not all(isinstance(piece, str) for piece in text):
        raise OutputTypeError("text is neither a string nor an array of strings")
    return "".join(text)


class _Call:
    """One call in the making."""

    def __init__(self) -> None:
        self.id: Json = None
        self.type: Json = "function"
        self.name: Json = ""
        self.fragments: list[str] = []
        self.is_broken = False

    def finished(self) -> dict[str, Json]:
        function = {"name": self.name, "arguments": "".join(self.fragments)}
        return {"id": self.id, "type": self.type, "function": function}


_HASHABLE: Final = (str, int, float, type(None))


class _Merge:
    """Merges the deltas of one answer."""

    def __init__(self) -> None:
        self._calls: dict[Json, _Call] = {}
        self._skips: list[CallSkip] = []

    def of(self, chunks: list[Json]) -> FinishedCalls:
        for chunk in chunks:
            if not isinstance(chunk, list):
                self._skips.append(CallSkip.DELTA_CHUNK_NOT_ARRAY)
                continue
            for delta in chunk:
                skip = self._add(delta)
                if skip is not None:
                    self._skips.append(skip)
        calls = [self._calls[index].finished() for index in self._order()]
        return FinishedCalls(calls, tuple(self._skips))

    def _add(self, delta: Json) -> CallSkip | None:
        if not isinstance(delta, dict):
            return CallSkip.DELTA_NOT_OBJECT
        index = delta.get("index", 0)
        if not isinstance(index, _HASHABLE):
            return CallSkip.DELTA_INDEX_UNUSABLE
        function = delta.get("function") or {}
        if not isinstance(function, dict):
            return CallSkip.DELTA_FUNCTION_NOT_OBJECT
        call = self._calls.setdefault(index, _Call())
        call.id = delta.get("id") or call.id
        call.type = delta.get("type") or call.type
        call.name = function.get("name") or call.name
        fragment = function.get("arguments") or ""
        if not isinstance(fragment, str):
            call.is_broken = True
            return CallSkip.DELTA_FRAGMENT_NOT_TEXT
        call.fragments.append(fragment)
        return None

    def _order(self) -> list[Json]:
        """Return the indexes of whole calls, sorted."""
        indexes = list(self._calls)
        kinds = {_kind(index) for index in indexes}
        if len(kinds) > 1:
            unordered = [index for index in indexes if not isinstance(index, Real)]
            self._skips += [CallSkip.DELTA_INDEX_UNORDERED] * len(unordered)
            indexes = [index for index in indexes if isinstance(index, Real)]
        whole = [index for index in indexes if not self._calls[index].is_broken]
        return sorted(whole) if len(whole) > 1 else whole


def _kind(index: Json) -> type:
    if isinstance(index, Real):
        return Real
    return type(index)
