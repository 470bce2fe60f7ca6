"""The page that says what each containment level holds, from what the tests assert."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from tests.hostile.tricks import GROUPS, LEVELS, NO_LEVEL, Trick, read_tricks

NEEDS = {"signal scope": "Landlock ABI 6, Linux 6.12"}

_OPENING = (
    """Pack code runs in processes of its own, and `isolation.level` says how far they
    are fenced in. A level is applied whole, before the pack is imported, or the run is
    refused before its first request, with the missing piece named
    (`eval_isolation_unavailable`). What was applied stands in the manifest under
    `containment` and in every episode's `worker` record. There, `observed` is what the
    kernel said of that worker when the evaluator looked at it from outside; a worker
    that is looser than its level is refused.""",
    """`fairtrial doctor --sandbox` shows which levels a machine offers.""",
)
_LEVELS = {
    "process": (
        "own session, resource limits, fixed environment, private working folder, "
        "no foreign descriptors, no new privileges, no capabilities but root's usual "
        "reach over files, dies with its parent",
        "files, network, and other processes of the same user",
    ),
    "confined": (
        "file rules (Landlock) and a system call filter (seccomp): reads the pack, the "
        "interpreter and its libraries, writes one scratch folder, makes no socket",
        "names, sizes and dates of files elsewhere",
    ),
    "namespaces": (
        "own user, process, network, IPC and mount namespaces",
        "what no level holds, below",
    ),
}
_READING = """Each line is a pack in `tests/hostile/packs/`, played as a whole episode,
    through the real driver and at every level, while an honest episode runs in the
    same host. *Held*: the test sees the stated end and no escape of any kind: nothing
    got or changed outside, no process, socket, folder or descriptor left, no other
    episode disturbed, no end later than 2 seconds after the deadline. **Gets
    through**: the level makes no claim, and the test sees the escape. *Not claimed*:
    the level makes no claim, and whether it gets through depends on the machine."""
_NOTES = (
    """A hole in the kernel is a hole in every level. A pack that must not be trusted
    at all belongs in a virtual machine.""",
    """`confined` and above leave the interpreter's package folders readable, since a
    pack may import from them. Where fairtrial is installed there, its own source and
    the bundled packs can be read; no benchmark, run folder or key lies there.""",
    """A pack is the judge of its own tasks: its backend can return any result, and its
    assertions any verdict. Containment keeps it from everything else. Certification
    plays gold twice, which finds a pack that contradicts itself and no other.""",
    """A worker's folder is removed when its session ends. One in which nothing was ever
    done, by its change time and everything else that can be read of it, waits empty for
    a later worker of the same host instead.""",
    """With `isolation.host: shared` the code that runs at import lives in the process
    that starts all workers of the run. It can change what later sessions of this pack
    see of each other; what the level promises about files and sockets was applied to
    that process before the import, and holds.""",
)


def containment_page() -> Iterator[str]:
    """Yield the paragraphs of the page, without its title."""
    yield from map(_prose, _OPENING)
    yield "## Levels"
    yield _table(
        ("level", "adds", "promises nothing about"),
        ((f"`{level}`", *_LEVELS[level]) for level in LEVELS),
    )
    yield "## Hostile packs"
    yield _prose(_READING)
    tricks = read_tricks()
    for group, title in GROUPS.items():
        yield f"### {title}"
        yield _table(
            ("pack", "what it does", "an escape would be", "held by", *LEVELS, "end"),
            (_row(trick) for trick in tricks if trick.group == group),
        )
    yield "## What no level holds"
    yield "\n".join(
        f"- `{trick.name}`: {trick.does} {trick.escape}"
        for trick in tricks
        if trick.level == NO_LEVEL
    )
    yield "## Limits of this page"
    yield "\n".join(_item(note) for note in _NOTES)


def _row(trick: Trick) -> tuple[str, ...]:
    ends = f"`{trick.ends}`"
    if trick.ends_below is not None:
        ends += f"; where it gets through, `{trick.ends_below}`"
    if trick.noticed is not None:
        ends += f"; a whole run in which it gets through ends with `{trick.noticed}`"
    held_by = trick.held_by
    if trick.needs is not None:
        held_by += f" ({NEEDS[trick.needs]})"
    return (
        f"`{trick.name}`",
        trick.does,
        trick.escape,
        held_by,
        *(_answer(trick, level) for level in LEVELS),
        ends,
    )


def _answer(trick: Trick, level: str) -> str:
    if trick.is_held_at(level):
        return "held"
    return "**gets through**" if trick.shows else "not claimed"


def _prose(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 88, break_on_hyphens=False)


def _item(text: str) -> str:
    return textwrap.fill(
        "- " + " ".join(text.split()),
        88,
        subsequent_indent="  ",
        break_on_hyphens=False,
    )


def _table(headers: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [headers, tuple("---" for _ in headers), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
