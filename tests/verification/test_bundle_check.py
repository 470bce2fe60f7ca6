"""A bundle whose own hash fits is still held to its form and to what it withheld."""

from dataclasses import replace

import pytest

from harness.canonical import hash_bytes
from harness.evidence.artifacts import artifact_bytes
from harness.verification.bundle import (
    AGGREGATES_FILE,
    BLOCK,
    END,
    HEADER_FILE,
    Member,
    member_header,
    open_bundle,
)
from harness.verification.findings import Findings
from harness.verification.redaction import Redaction
from harness.verification.seal import seal_run
from harness.verification.verify import verify
from tests.verification.runs import wheres


@pytest.fixture(scope="module")
def bundles(executable_run, tmp_path_factory):
    """A bundle of the run for each redaction that was asked for."""
    made = {}

    def of(*words):
        if words not in made:
            made[words] = tmp_path_factory.mktemp("bundles") / "run.bundle"
            seal_run(executable_run, made[words], Redaction.of(words), None)
        return made[words]

    return of


def parts(path):
    """The header of a bundle and its members, name and bytes."""
    files = open_bundle(path, Findings())
    return files.header, [
        (m.file, files.windows[m.file].read()) for m in files.header.members
    ]


def rebuilt(path, target, members=None, **statements):
    """Write the bundle again with other members or statements, all hashes right."""
    header, known = parts(path)
    members = known if members is None else members
    header = replace(
        header,
        members=tuple(Member(n, len(data), hash_bytes(data)) for n, data in members),
        **statements,
    )
    text = artifact_bytes(header.payload())
    blocks = []
    for name, data in [(HEADER_FILE, text), *members]:
        blocks += [member_header(name, len(data)), data, bytes(-len(data) % BLOCK)]
    target.write_bytes(b"".join(blocks) + END)
    return target


def test_rebuilding_alone_changes_nothing(bundles, tmp_path):
    again = rebuilt(bundles(), tmp_path / "again")

    assert again.read_bytes() == bundles().read_bytes()
    assert wheres(verify(again)) == []


@pytest.mark.parametrize("file", ["report.html", "eval_report.json"])
def test_rows_are_withheld_from_logs_alone(bundles, tmp_path, file):
    _, members = parts(bundles())
    forged = [(n, d + b"\n" if n == file else d) for n, d in members]
    path = rebuilt(bundles(), tmp_path / "b", forged, withheld_rows={file: 1})

    found = wheres(verify(path))
    assert "bundle.json, withheld_rows" in found
    assert file in found


def test_members_stand_once_and_in_their_order(bundles, tmp_path):
    _, members = parts(bundles())
    page = next(each for each in members if each[0] == "report.html")
    for number, forged in enumerate(
        [
            [page, *members],
            members[::-1],
            [*members, ("evil.sh", b"#!/bin/sh\n")],
            [*members, (HEADER_FILE, b"{}")],
            [each for each in members if each[0] != AGGREGATES_FILE],
        ]
    ):
        path = rebuilt(bundles(), tmp_path / str(number), forged)

        assert "bundle.json, members" in wheres(verify(path)), number


@pytest.mark.parametrize(
    "edit",
    [
        lambda lines: [],
        lambda lines: lines[::-1],
        lambda lines: lines[:1],
        lambda lines: [lines[0], *lines],
    ],
    ids=["empty", "reversed", "short", "twice"],
)
def test_one_aggregate_for_each_candidate_in_order(bundles, tmp_path, edit):
    _, members = parts(bundles())
    forged = [
        (n, b"".join(edit(d.splitlines(keepends=True))) if n == AGGREGATES_FILE else d)
        for n, d in members
    ]
    path = rebuilt(bundles(), tmp_path / "b", forged)

    assert AGGREGATES_FILE in wheres(verify(path))


def test_report_cannot_state_what_no_aggregate_does(bundles, executable_run, tmp_path):
    task = f"task:{verify(executable_run).scored[0].aggregate.task_ids[0]}"
    _, members = parts(bundles(task))
    whole = [each for each in members if each[0] != AGGREGATES_FILE]
    path = rebuilt(bundles(task), tmp_path / "b", whole)

    assert "bundle.json, members" in wheres(verify(path))


@pytest.mark.parametrize(
    "stated",
    [
        (),
        ("prompts",),
        ("bodies", "prompts"),
        ("zzz",),
        ("bodies", "bodies"),
        ("task:nobody",),
    ],
    ids=lambda stated: "+".join(stated) or "nothing",
)
def test_redaction_is_what_was_withheld(bundles, tmp_path, stated):
    path = rebuilt(bundles("bodies"), tmp_path / "b", redaction=stated)

    assert any(
        where.startswith("bundle.json, redaction") for where in wheres(verify(path))
    )


def test_withheld_task_is_the_one_that_is_named(bundles, executable_run, tmp_path):
    task_ids = verify(executable_run).scored[0].aggregate.task_ids
    bundle = bundles(f"task:{task_ids[0]}")
    path = rebuilt(bundle, tmp_path / "b", redaction=(f"task:{task_ids[1]}",))

    assert wheres(verify(bundle)) == []
    assert "bundle.json, redaction of tasks" in wheres(verify(path))
