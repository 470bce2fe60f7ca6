"""A bundle has one form, every byte of it counts, and any tool can unpack it."""

import os
import shutil
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import ArtifactError, UsageError
from harness.evidence.folder import ARTIFACT_FILES
from harness.evidence.manifest import MANIFEST_FILE
from harness.verification.bundle import (
    AGGREGATES_FILE,
    BLOCK,
    END,
    HEADER_FILE,
    member_header,
    open_bundle,
)
from harness.verification.extras import all_extras
from harness.verification.findings import Findings
from harness.verification.redaction import Redaction
from harness.verification.seal import seal_run
from harness.verification.verify import verify
from tests.verification.runs import files_of, flip, wheres

WHOLE = Redaction.of([])


@pytest.fixture(scope="module")
def bundle(executable_run, tmp_path_factory):
    path = tmp_path_factory.mktemp("bundle") / "run.bundle"
    seal_run(executable_run, path, WHOLE, all_extras())
    return path


@pytest.fixture
def copy(bundle, tmp_path):
    return shutil.copy(bundle, tmp_path / "copy.bundle")


@pytest.mark.parametrize("extras", [None, all_extras()], ids=["alone", "all"])
def test_sealed_run_is_intact(bundle, extras):
    verification = verify(bundle, extras)

    assert wheres(verification) == []
    assert verification.findings.checked["score hashes compared"] == 6


def test_bundle_in_the_run_that_it_seals_is_refused(run):
    with pytest.raises(UsageError, match="never written to"):
        seal_run(run, run / "run.bundle", WHOLE, None)


def test_same_run_gives_the_same_bytes(run, bundle, tmp_path):
    for path in run.iterdir():
        os.utime(path, (1, 1))
        path.chmod(0o400)
    again = tmp_path / "elsewhere.bundle"

    sealed = seal_run(run, again, WHOLE, None)

    assert again.read_bytes() == bundle.read_bytes()
    assert sealed.size_bytes == bundle.stat().st_size


def test_any_tar_unpacks_the_files_of_the_run(bundle, executable_run, tmp_path):
    with tarfile.open(bundle) as archive:
        names = archive.getnames()
        archive.extractall(tmp_path, filter="data")

    order = [*ARTIFACT_FILES.values(), MANIFEST_FILE, AGGREGATES_FILE]
    assert names == [HEADER_FILE, *order]
    assert [(tmp_path / n).read_bytes() for n in files_of(executable_run)] == [
        (executable_run / n).read_bytes() for n in files_of(executable_run)
    ]
    assert verify(tmp_path).is_intact


def test_header_of_a_large_file_is_that_of_gnu_tar():
    for size in (0, 1, 8**11 - 1, 8**11, 8**11 + 512):
        read = tarfile.TarInfo.frombuf(member_header("a.json", size), "ascii", "strict")

        assert (read.name, read.size, read.mode, read.mtime) == (
            "a.json",
            size,
            0o644,
            0,
        )


@pytest.mark.slow
def test_any_flipped_bit_is_found(bundle, tmp_path):
    original = bundle.read_bytes()
    copy = tmp_path / "copy.bundle"

    @settings(max_examples=40)
    @given(position=st.integers(0, len(original) - 1), bit=st.integers(0, 7))
    def flipped(position, bit):
        copy.write_bytes(original)
        flip(copy, position, bit)

        assert not verify(copy).is_intact

    flipped()


def frames(bundle):
    """Where the archive's headers, padding and end are, with a name for each."""
    with tarfile.open(bundle) as archive:
        at = 0
        for member in archive:
            yield at, member.offset_data, member.name
            end = member.offset_data + member.size
            at = end + -end % BLOCK
            yield end, at, f"padding behind {member.name}"
    yield at, bundle.stat().st_size, "end"


@pytest.mark.slow
def test_every_byte_of_the_frame_counts(bundle, copy):
    """Of two archive headers, of all padding, and of the end."""
    missed = []
    heads = [HEADER_FILE, MANIFEST_FILE]
    chosen = [f for f in frames(bundle) if f[2] in (*heads, "end") or " " in f[2]]
    with copy.open("r+b") as stream:
        for begin, end, name in chosen:
            for position in range(begin, end):
                stream.seek(position)
                byte = stream.read(1)[0]
                stream.seek(position)
                stream.write(bytes([byte ^ 1 << position % 8]))
                stream.flush()
                if not is_refused(copy):
                    missed.append((name, position))
                stream.seek(position)
                stream.write(bytes([byte]))
    assert missed == []


def is_refused(path):
    findings = Findings()
    try:
        open_bundle(path, findings)
    except ArtifactError:
        return True
    return bool(findings.violations)


@pytest.mark.slow
def test_every_byte_of_the_first_file_counts(bundle, copy):
    data = bundle.read_bytes()
    size = int(data[124:135], 8)
    missed = []
    with copy.open("r+b") as stream:
        for position in range(BLOCK, BLOCK + size):
            stream.seek(position)
            stream.write(bytes([data[position] ^ 1 << position % 7]))
            stream.flush()
            if not is_refused(copy):
                missed.append(position)
            stream.seek(position)
            stream.write(data[position : position + 1])

    assert missed == []


@pytest.mark.slow
@settings(max_examples=25)
@given(share=st.floats(0, 1, exclude_max=True))
def test_cut_bundle_is_found(bundle, share):
    data = bundle.read_bytes()
    cut = bundle.with_name("cut.bundle")
    cut.write_bytes(data[: int(len(data) * share)])

    assert not verify(cut, all_extras()).is_intact


@pytest.mark.parametrize(
    "extra", [b"\0", b"x", bytes(BLOCK), member_header("more.json", 0) + END]
)
def test_anything_behind_the_end_is_found(copy, extra):
    with copy.open("ab") as stream:
        stream.write(extra)

    assert [v.problem for v in verify(copy).findings.violations] == [
        "the bundle does not end where it has to"
    ]


def test_members_in_another_order_are_found(copy):
    data = copy.read_bytes()
    with tarfile.open(copy) as archive:
        members = archive.getmembers()
    first, second = members[1], members[2]
    begin, middle = first.offset, second.offset
    end = members[3].offset
    copy.write_bytes(data[:begin] + data[middle:end] + data[begin:middle] + data[end:])

    assert not verify(copy).is_intact


@pytest.mark.parametrize("content", [b"", b"{}", bytes(4096), b"bundle.json\0" * 99])
def test_file_that_is_no_bundle_is_named(content, tmp_path):
    path = tmp_path / "some.file"
    path.write_bytes(content)

    (violation,) = verify(path).findings.violations
    assert violation.problem == "the file cannot be read as a bundle"


def test_existing_output_is_never_replaced(executable_run, copy):
    before = copy.read_bytes()

    with pytest.raises(UsageError, match="eval_output_exists"):
        seal_run(executable_run, copy, WHOLE, None)
    assert copy.read_bytes() == before


def test_damaged_run_is_not_sealed(run, tmp_path):
    flip(run / "eval_plan.jsonl", 40, 3)

    with pytest.raises(ArtifactError) as caught:
        seal_run(run, tmp_path / "out.bundle", WHOLE, None)

    assert (
        caught.value.violations[0].where == "eval_plan.jsonl, record 1, byte offset 0"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["copy"]


def test_unfinished_run_is_not_sealed(run, tmp_path):
    (run / MANIFEST_FILE).unlink()

    with pytest.raises(ArtifactError, match="eval_run_unfinished"):
        seal_run(run, tmp_path / "out.bundle", WHOLE, None)
