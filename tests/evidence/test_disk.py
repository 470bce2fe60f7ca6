"""A machine that refuses leaves evidence as it was, and says what it refused."""

import os
import resource
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import pytest

from harness.errors import EvidenceError
from harness.evidence.artifacts import write_json_artifact
from harness.evidence.disk import machine_refusals
from harness.evidence.folder import FolderState, RunFolder
from harness.evidence.log import AppendLog
from harness.evidence.task_table import TaskTableWriter
from tests.evidence.samples import NOTES, key, row

ROOT = Path(__file__).parents[2]


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 KiB; where none can be mounted, the test is skipped."""
    place = tmp_path / "disk"
    place.mkdir()
    options = "size=64k,mode=0777"
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    mounted = subprocess.run(command, check=False, capture_output=True)
    if mounted.returncode:
        pytest.skip("this user cannot mount a small file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@contextmanager
def file_size_limit(size_bytes):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def fill(log):
    """Append until the machine refuses; return how many records were taken."""
    taken = []

    def append():
        for number in count():
            log.append("first", key(number), {"n": number, "text": "x" * 3000})
            taken.append(number)

    with pytest.raises(EvidenceError, match="eval_cli_runtime_failed"):
        append()
    return len(taken)


def test_a_full_disk_refuses_a_record_whole(small_disk):
    path = small_disk / NOTES.file_name
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 20_000)
    with AppendLog.open(path, NOTES, writable=True) as log:
        taken = fill(log)
        size = log.size_bytes

        assert taken > 0
        assert path.stat().st_size == size

        ballast.unlink()
        log.append("first", key(taken), {"n": taken})

    with AppendLog.open(path, NOTES, writable=True) as log:
        assert [e.payload()["n"] for e in log.entries()] == list(range(taken + 1))
        assert log.torn is None


def test_a_torn_tail_on_a_full_disk_stays_where_it_is(small_disk):
    path = small_disk / NOTES.file_name
    with AppendLog.open(path, NOTES, writable=True) as log:
        log.append("first", key(1), {"text": "x" * 9000})
        log.append("first", key(2), {"text": "y" * 9000})
    whole = path.read_bytes()
    os.truncate(path, len(whole) - 3)
    ballast = small_disk / "ballast"
    with suppress(OSError), ballast.open("wb", 0) as stream:
        while stream.write(b"z" * 4096):
            pass
    with pytest.raises(EvidenceError, match="eval_cli_runtime_failed"):
        AppendLog.open(path, NOTES, writable=True)

    assert path.read_bytes() == whole[:-3]
    assert sorted(p.name for p in small_disk.iterdir()) == ["ballast", NOTES.file_name]

    ballast.unlink()
    with AppendLog.open(path, NOTES, writable=True) as log:
        assert (len(log), log.torn.moved_to) == (1, "notes.jsonl.torn-1")


def test_an_artifact_on_a_full_disk_leaves_nothing(small_disk):
    with pytest.raises(EvidenceError, match="eval_cli_runtime_failed"):
        write_json_artifact(small_disk / "eval_report.json", {"x": "y" * 100_000})

    assert list(small_disk.iterdir()) == []


def test_a_table_on_a_full_disk_leaves_nothing(small_disk):
    def write():
        with TaskTableWriter(small_disk / "eval_task_results.parquet") as table:
            for number in range(20_000):
                table.append(row(key(number), score_hash=key(-number)))

    with pytest.raises(EvidenceError, match="eval_cli_runtime_failed"):
        write()

    assert list(small_disk.iterdir()) == []


def test_a_short_write_is_taken_back(tmp_path):
    path = tmp_path / NOTES.file_name
    with AppendLog.open(path, NOTES, writable=True) as log:
        with file_size_limit(10_000):
            taken = fill(log)
            size = log.size_bytes

            assert path.stat().st_size == size < 10_000

        log.append("first", key(taken), {"n": taken})

    with AppendLog.open(path, NOTES, writable=False) as log:
        assert [e.payload()["n"] for e in log.entries()] == list(range(taken + 1))


def test_a_log_that_cannot_be_mended_takes_no_more(tmp_path, monkeypatch):
    path = tmp_path / NOTES.file_name
    log = AppendLog.open(path, NOTES, writable=True)
    log.append("first", key(1), {})

    def refuse(*_):
        raise OSError(5, "Input/output error")

    # Only a dying disk refuses to truncate, and none can be had for a test.
    with monkeypatch.context() as patch, file_size_limit(300):
        patch.setattr(os, "ftruncate", refuse)
        with pytest.raises(EvidenceError, match="append to a log"):
            log.append("first", key(2), {"text": "x" * 500})
    with pytest.raises(EvidenceError, match="could not be cut off"):
        log.append("first", key(3), {})
    log.close()

    with AppendLog.open(path, NOTES, writable=True) as again:
        assert (len(again), again.torn is not None) == (1, True)


AS_NOBODY = """
import os, sys
from pathlib import Path
from harness.errors import FairtrialError
from harness.evidence.candidate_log import CandidateLog
from harness.evidence.episode_log import EpisodeLog
from harness.evidence.artifacts import write_json_artifact
from harness.evidence.lock import RunLock
folder = Path(sys.argv[1])
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
for use in (
    lambda: CandidateLog.open(folder / "candidate_io_cache.jsonl", writable=True),
    lambda: EpisodeLog.open(folder / "new.jsonl", writable=True),
    lambda: write_json_artifact(folder / "eval_report.json", {}),
    lambda: RunLock.acquire(folder, started_at="now"),
):
    try:
        use()
        print("allowed")
    except FairtrialError as error:
        print(error.code, "Permission denied" in str(error))
with CandidateLog.open(folder / "candidate_io_cache.jsonl", writable=False) as log:
    print(len(log.log), log.torn.moved_to)
"""


@pytest.fixture
def read_only_folder():
    """A folder with one file that any user may read and none but root write.

    It is not under `tmp_path`, whose parents are closed to other users.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        log = folder / "candidate_io_cache.jsonl"
        log.write_bytes(b"torn")
        log.chmod(0o444)
        folder.chmod(0o555)
        yield folder
        folder.chmod(0o755)


def test_a_read_only_folder_is_refused_for_writing_and_still_read(read_only_folder):
    # Root may write anywhere, so the process gives its rights away first.
    seen = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, str(read_only_folder)],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert seen.stderr == ""
    assert seen.stdout.splitlines() == [
        *["eval_cli_runtime_failed True"] * 4,
        "0 None",
    ]
    assert [p.name for p in read_only_folder.iterdir()] == ["candidate_io_cache.jsonl"]


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    folder = RunFolder(tmp_path / "file" / "run")
    with pytest.raises(EvidenceError, match="make the output folder"):
        folder.create()

    assert folder.state() is FolderState.ABSENT


def test_a_refusal_says_what_where_and_why(tmp_path):
    with (
        pytest.raises(EvidenceError) as caught,
        machine_refusals("write a file", tmp_path / "x.json"),
    ):
        raise OSError(28, "No space left on device")

    assert caught.value.as_report()["violations"] == [
        {
            "code": "eval_cli_runtime_failed",
            "where": "x.json",
            "problem": "cannot write a file",
            "expected": "regular files, free space, and rights for this user",
            "actual": "No space left on device (errno 28)",
            "recovery": "free space, mend the rights or put the file back, then repeat",
        }
    ]
