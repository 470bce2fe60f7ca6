"""Whatever a record holds, every command ends with an answer or a named refusal."""

import json
import random
import shutil

import pytest

from harness.canonical import canonical_bytes
from harness.cli.main import main
from harness.evidence.log_line import decode_line, encode_line
from tests.verification.runs import lines_of, log_formats, make_consistent

TRAFFIC = "candidate_io_cache.jsonl"
EPISODES = "tool_trace_cache.jsonl"
TEXTS = (
    "",
    "x",
    "\x00",
    "é😀",
    "../../x",
    "9" * 5000,
    "completed",
    "sha256:" + "a" * 64,
    "0001-01-01T00:00:00Z",
    "2026-01-01T00:00:00",
)
NUMBERS = (0, -1, 1, 2, 10**30, 2**63, 1e300, -1.0, 0.0, 5e-324)
CASES = 4
"""Changes a seed; each is read by all commands."""


def leaves(value, path=()):
    """Yield the paths of a value and of everything in it."""
    yield path
    items = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for step, inner in items:
        yield from leaves(inner, (*path, step))


def other(value, rng):
    """Return something else, mostly of the same JSON type."""
    if rng.random() < 0.1:
        return None
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return rng.choice(TEXTS)
    if isinstance(value, int | float):
        return rng.choice(NUMBERS)
    if isinstance(value, list):
        return rng.choice([[], value + value, value[:1], value[::-1], [None], {}])
    if isinstance(value, dict):
        return rng.choice([{}, {**value, "x": 1}, [], dict([*value.items()][:-1])])
    return rng.choice([*TEXTS, *NUMBERS, True, [], {}])


def replaced(value, path, found):
    """Return a value with something else at one place."""
    if not path:
        return found
    holder = value
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = found
    return value


def at(value, path):
    for step in path:
        value = value[step]
    return value


def forms(path):
    """The path without the numbers in it: what all items of a list share."""
    return tuple("*" if isinstance(step, int) else step for step in path)


class Records:
    """The records of one log, by the fields that they have."""

    def __init__(self, file):
        self.log = log_formats()[file.name]
        self.lines = lines_of(file)
        self.places = {}
        for number, line in enumerate(self.lines):
            entry = decode_line(self.log, line[:-1], None, 0)
            for path in leaves(entry.payload()):
                field = (entry.record_type, *forms(path))
                self.places.setdefault(field, []).append((number, path))

    def changed(self, rng):
        """Return the log with one value changed and hashed anew, and what it was."""
        field = rng.choice([*self.places])
        number, path = rng.choice(self.places[field])
        entry = decode_line(self.log, self.lines[number][:-1], None, 0)
        payload = entry.payload()
        found = other(at(payload, path), rng)
        line, _ = encode_line(
            self.log,
            sequence=entry.sequence,
            record_type=entry.record_type,
            key=entry.key,
            number=entry.number if rng.random() < 0.9 else rng.choice((None, 0, 1, 7)),
            payload=canonical_bytes(replaced(payload, path, found)),
        )
        return b"".join([*self.lines[:number], line, *self.lines[number + 1 :]])


def task_of(folder):
    report = json.loads((folder / "contamination_report.json").read_text("utf-8"))
    return report["common"][0]


def commands(folder, whole):
    """Every command that reads a finished run."""
    beside = folder.parent
    return [
        ["verify", folder],
        ["replay", folder],
        ["rescore", folder, "--output", beside / "rescored"],
        ["sensitivity", folder],
        ["explain", folder, task_of(whole)],
        ["seal", folder, "--output", beside / "run.bundle"],
        ["compare", folder, whole],
        ["audit", folder],
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("executable_run", TRAFFIC),
        ("executable_run", EPISODES),
        ("trace_run", TRAFFIC),
    ],
)
def test_no_value_of_a_record_breaks_a_command(
    request, tmp_path, capsys, kind, name, seed
):
    whole = request.getfixturevalue(kind)
    rng = random.Random(f"{name} {seed}")
    records = Records(whole / name)
    for case in range(CASES):
        folder = shutil.copytree(whole, tmp_path / str(case) / "run")
        (folder / name).write_bytes(records.changed(rng))
        make_consistent(folder)
        for words in commands(folder, whole):
            main([str(word) for word in words])
            assert "Traceback" not in capsys.readouterr().err


ODD = {
    "observed_at": ("x", "", "2026-01-01T00:00:00", "2026-02-30T00:00:00Z"),
    "latency_s": (1e300, -5.0, 1e10),
}


READERS = {
    "observed_at": ("verify", "seal"),
    "latency_s": ("verify", "seal", "replay", "rescore", "sensitivity"),
}
"""A reader that needs no exchange decodes the times of none."""


@pytest.mark.parametrize(
    ("field", "value", "command"),
    [(f, v, command) for f in ODD for v in ODD[f] for command in READERS[f]],
)
def test_time_that_is_none_is_named_with_its_record(run, capsys, field, value, command):
    records = Records(run / TRAFFIC)
    number, path = records.places["attempt", "attempt", field][0]
    entry = decode_line(records.log, records.lines[number][:-1], None, 0)
    payload = canonical_bytes(replaced(entry.payload(), path, value))
    records.lines[number], _ = encode_line(
        records.log,
        sequence=entry.sequence,
        record_type="attempt",
        key=entry.key,
        number=entry.number,
        payload=payload,
    )
    (run / TRAFFIC).write_bytes(b"".join(records.lines))
    make_consistent(run)
    output = run.parent / "output"
    words = [command, run]
    if command in ("seal", "rescore"):
        words += ["--output", output]

    assert main([str(word) for word in words]) in (1, 3)
    printed = capsys.readouterr()
    place = f"{TRAFFIC}, record {number + 1}, attempt.{field}"
    assert place in printed.out + printed.err
    assert not output.exists()
