"""Somebody changes evidence while a run goes on: nothing is published from it."""

import pytest

from harness.errors import FairtrialError
from harness.evidence.folder import FolderState, RunFolder
from tests.run.gold_server import CountingControl

FILES = ("candidate_io_cache.jsonl", "tool_trace_cache.jsonl", "eval_plan.jsonl")
AT_REQUEST = 30
"""By then every file has records, and more are to come."""


def edited(path):
    """Change one letter of the first record, in place."""
    with path.open("r+b") as file:
        at = file.read().index(b'":"') + 4
        file.seek(at)
        letter = file.read(1)
        file.seek(at)
        file.write(b"x" if letter != b"x" else b"y")


def cut(path):
    """Take the last bytes away."""
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 7)


def lengthened(path):
    """Write behind the last record."""
    with path.open("ab") as file:
        file.write(b"{}\n")


def removed(path):
    """Remove the file."""
    path.unlink()


def replaced(path):
    """Put an equal file in its place."""
    whole = path.read_bytes()
    path.unlink()
    path.write_bytes(whole)


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("change", [edited, cut, lengthened, removed, replaced])
def test_run_whose_evidence_is_changed_is_not_published(bench, benchmark, file, change):
    def answer(number):
        if number == AT_REQUEST:
            change(bench.output() / file)

    control = CountingControl(benchmark, answer)
    with control.served() as server:
        config = bench.config(
            "gold", base_url=server.url, limits={"max_parallel_tasks": 2}
        )
        with pytest.raises(FairtrialError) as caught:
            bench.run(config)

    assert control.number >= AT_REQUEST
    assert caught.value.code.startswith("eval_")
    assert RunFolder(bench.output()).state() is FolderState.UNFINISHED
