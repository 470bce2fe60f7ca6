"""What an assertion's outcome means (`spec/executable-evaluator.md` 1.9 and 3.8).

Returning None passes, AssertionError fails, `{"status": "not_applicable", "detail":
text}` says that the assertion does not apply. Every other return or exception is a
fault of the assertion, never of the candidate. So is reading a slot whose value could
not be recovered for this task, by whatever means, even if the assertion then passes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oracle_workers.own_builtins import OWN_BUILTINS
from oracle_workers.python_backend import RunContext, describe_error

globals()["__builtins__"] = OWN_BUILTINS

_DETAIL_SIZE = 2000


def judge(
    function: Callable[..., Any] | None,
    *,
    state: Any,
    trace: Any,
    task: dict[str, Any],
    context: RunContext,
) -> dict[str, str]:
    """Run one assertion; return its `status`, `reason_code` and `detail`."""
    if function is None:
        return _infrastructure("unknown", "the pack has no assertion of this name")
    watch = SlotWatch()
    watched = watch.watched_task(task)
    try:
        outcome = function(state=state, trace=trace, task=watched, ctx=context)
    except AssertionError as error:
        verdict = _verdict("failed", "failed", _message(error))
    except BaseException as error:  # noqa: BLE001 - an assertion may raise anything
        verdict = _infrastructure("exception", describe_error(error))
    else:
        verdict = _verdict_of_return(outcome)
    if watch.read:
        slots = ", ".join(sorted(watch.read))
        return _infrastructure("unresolved_slot", f"read unresolved slots: {slots}")
    return verdict


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:  # noqa: BLE001 - an exception of the pack may break here too
        return ""


def _verdict_of_return(outcome: Any) -> dict[str, str]:
    if outcome is None:
        return _verdict("passed", "passed", "")
    if type(outcome) is dict and outcome.keys() == {"status", "detail"}:
        detail = outcome["detail"]
        applies_not = outcome["status"] == "not_applicable"
        if applies_not and type(detail) is str and detail.strip():
            return _verdict("not_applicable", "not_applicable", detail)
    return _infrastructure(
        "invalid_outcome",
        f"returned {type(outcome).__name__}; None, AssertionError or a "
        "not_applicable object with a detail is expected",
    )


def _verdict(status: str, reason: str, detail: str) -> dict[str, str]:
    return {
        "status": status,
        "reason_code": f"assertion.{reason}",
        "detail": detail[:_DETAIL_SIZE].encode("utf-8", "replace").decode("utf-8"),
    }


def _infrastructure(reason: str, detail: str) -> dict[str, str]:
    return _verdict("infrastructure_error", reason, detail)


class SlotWatch:
    """Knows which unresolved slots were read."""

    def __init__(self) -> None:
        self.read: set[str] = set()

    def watched_task(self, task: dict[str, Any]) -> dict[str, Any]:
        """Return the task with every table of unresolved slots watched."""
        watched = dict(task)
        for field, listing in (
            ("slots", "unresolved_slots"),
            ("slots_initial", "unresolved_slots_initial"),
        ):
            self._watch(watched, field, task.get(listing))
        updates = task.get("unresolved_slot_updates")
        if updates:
            watched["slot_updates"] = [dict(entry) for entry in task["slot_updates"]]
            for update in updates:
                entry = watched["slot_updates"][update["update_index"]]
                for field in ("values", "aliases"):
                    self._watch(entry, field, update["slots"])
        return watched

    def _watch(self, holder: dict[str, Any], field: str, missing: Any) -> None:
        values = holder.get(field)
        if missing and isinstance(values, dict):
            holder[field] = WatchedSlots(values, frozenset(missing), self.read)


class WatchedSlots(dict[str, Any]):
    """A table of slots in which looking at an unresolved one leaves a mark.

    Operations that see the whole table (iteration, length, comparison, copies, text)
    mark all its unresolved slots; those with a key mark that slot. The unresolved
    slots hold placeholders, so that even unbound `dict` methods return nothing that
    could be used unnoticed.
    """

    def __init__(
        self, values: dict[str, Any], missing: frozenset[str], read: set[str]
    ) -> None:
        super().__init__(values)
        self._missing = missing
        self._read = read
        for name in missing:
            super().__setitem__(name, _Placeholder(name, read))

    def _saw_all(self) -> None:
        self._read.update(self._missing)

    def _saw(self, key: object) -> None:
        if key in self._missing:
            self._read.add(str(key))
            raise KeyError(key)


def _whole(name: str) -> Callable[..., Any]:
    plain = getattr(dict, name)

    def operation(self: WatchedSlots, *arguments: Any, **options: Any) -> Any:
        self._saw_all()
        return plain(self, *arguments, **options)

    return operation


def _keyed(name: str) -> Callable[..., Any]:
    plain = getattr(dict, name)

    def operation(self: WatchedSlots, key: Any, *arguments: Any) -> Any:
        self._saw(key)
        return plain(self, key, *arguments)

    return operation


def _copied(self: WatchedSlots, *_: Any) -> Any:
    self._saw_all()
    return (dict, (list(dict.items(self)),))


for _name in (
    *("__iter__", "__len__", "__eq__", "__ne__", "__repr__", "__str__", "__or__"),
    *("__ror__", "__ior__", "__reversed__", "__format__", "__sizeof__", "copy"),
    *("keys", "values", "items", "popitem", "clear", "update"),
):
    setattr(WatchedSlots, _name, _whole(_name))
for _name in ("__contains__", "__getitem__", "get", "pop", "setdefault"):
    setattr(WatchedSlots, _name, _keyed(_name))
setattr(WatchedSlots, "__reduce_ex__", _copied)  # noqa: B010
setattr(WatchedSlots, "__bool__", _whole("__len__"))  # noqa: B010


class _Placeholder:
    """Stands where a slot has no value; using it in any way leaves a mark."""

    def __init__(self, name: str, read: set[str]) -> None:
        object.__setattr__(self, "_mark", (name, read))

    def __getattribute__(self, name: str) -> Any:
        slot, read = object.__getattribute__(self, "_mark")
        read.add(slot)
        return object.__getattribute__(self, name)


def _marking(name: str) -> Callable[..., Any]:
    plain = getattr(object, name)

    def operation(self: _Placeholder, *arguments: Any) -> Any:
        slot, read = object.__getattribute__(self, "_mark")
        read.add(slot)
        return plain(self, *arguments)

    return operation


for _name in ("__eq__", "__ne__", "__hash__", "__repr__", "__str__", "__format__"):
    setattr(_Placeholder, _name, _marking(_name))


def _truth(self: _Placeholder) -> bool:
    slot, read = object.__getattribute__(self, "_mark")
    read.add(slot)
    return False


setattr(_Placeholder, "__bool__", _truth)  # noqa: B010
