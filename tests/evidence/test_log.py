"""A log gives back what was written, or says which record is damaged."""

import os
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.canonical import hash_file
from harness.errors import EvidenceError
from harness.evidence.log import AppendLog, TornTail
from harness.evidence.log_scan import stream_entries
from harness.evidence.merkle import merkle_root
from tests.evidence.samples import NOTES, colliding, key

RECORDS = [
    ("first", key(1), {"text": "Größe, 大きさ, 😀"}, None),
    ("second", key(1), {"n": 1.5, "list": [True, None, -3]}, 7),
    ("first", key(2), {}, 0),
    ("second", key(2), {"last": "ｅｎｄ"}, None),
]


def write(path, records=RECORDS):
    with AppendLog.open(path, NOTES, writable=True) as log:
        for record_type, subject, payload, number in records:
            log.append(record_type, subject, payload, number)
    return path.read_bytes()


def read(log):
    return [(e.record_type, e.key, e.payload(), e.number) for e in log.entries()]


@pytest.fixture
def path(tmp_path):
    return tmp_path / NOTES.file_name


def test_a_log_gives_back_what_was_written(path):
    write(path)

    with AppendLog.open(path, NOTES, writable=False) as log:
        assert read(log) == RECORDS
        assert log.torn is None


def test_a_log_goes_on_where_it_ended(path):
    write(path, RECORDS[:2])
    write(path, RECORDS[2:])

    with AppendLog.open(path, NOTES, writable=False) as log:
        assert read(log) == RECORDS


def test_a_new_log_is_private_to_its_user(path):
    write(path, [])

    assert path.stat().st_mode & 0o777 == 0o600


def test_streaming_needs_no_index(path):
    write(path)

    assert [e.payload() for e in stream_entries(path, NOTES)] == [
        payload for _, _, payload, _ in RECORDS
    ]


def test_hash_and_root_are_those_of_the_file(path):
    with AppendLog.open(path, NOTES, writable=True) as log:
        for record_type, subject, payload, number in RECORDS:
            log.append(record_type, subject, payload, number)
        while_writing = (log.content_hash, log.merkle_root)
    with AppendLog.open(path, NOTES, writable=False) as log:
        after_opening = (log.content_hash, log.merkle_root)
    expected = (
        hash_file(path),
        merkle_root(e.digest for e in stream_entries(path, NOTES)),
    )

    assert while_writing == after_opening == expected


def test_records_of_a_key_come_newest_first_and_by_type(path):
    write(path)

    with AppendLog.open(path, NOTES, writable=False) as log:
        assert [e.sequence for e in log.entries_of(key(1))] == [2, 1]
        assert [e.sequence for e in log.entries_of(key(1), "first")] == [1]
        assert [e.sequence for e in log.entries_of(key(2), number=0)] == [4, 3]
        assert list(log.entries_of(key(3))) == []


def test_keys_that_share_a_prefix_are_told_apart(path):
    write(path, [("first", colliding(n), {"n": n}, None) for n in range(3)])

    with AppendLog.open(path, NOTES, writable=False) as log:
        found = [[e.payload() for e in log.entries_of(colliding(n))] for n in range(3)]

    assert found == [[{"n": 0}], [{"n": 1}], [{"n": 2}]]


@pytest.mark.parametrize(
    "payload",
    [
        float("nan"),
        {"x": [float("inf")]},
        {"x": "\ud800"},
        {"\udfff": 1},
        {"x": {1, 2}},
    ],
    ids=["nan", "infinity", "surrogate", "surrogate key", "set"],
)
def test_what_json_cannot_hold_is_refused_and_nothing_is_written(path, payload):
    with AppendLog.open(path, NOTES, writable=True) as log:
        with pytest.raises(EvidenceError, match="eval_evidence_invalid"):
            log.append("first", key(1), payload)
        log.append("first", key(1), "after")

        assert [e.payload() for e in log.entries()] == ["after"]


@pytest.mark.parametrize("depth", [513, 5000])
def test_a_payload_too_deep_to_be_read_is_refused(path, depth):
    value = 1
    for _ in range(depth):
        value = [value]
    with (
        AppendLog.open(path, NOTES, writable=True) as log,
        pytest.raises(EvidenceError, match="eval_evidence_invalid"),
    ):
        log.append("first", key(1), value)

    assert path.read_bytes() == b""


def test_the_deepest_payload_is_read_back(path):
    value = 1
    for _ in range(512):
        value = [value]
    write(path, [("first", key(1), value, None)])

    with AppendLog.open(path, NOTES, writable=False) as log:
        assert log.entry(0).payload() == value


@pytest.mark.parametrize("number", [-1, 2**29])
def test_a_number_outside_the_index_is_refused(path, number):
    with (
        AppendLog.open(path, NOTES, writable=True) as log,
        pytest.raises(EvidenceError, match="eval_evidence_invalid"),
    ):
        log.append("first", key(1), {}, number)


def test_sync_counts_what_it_did(path):
    with AppendLog.open(path, NOTES, writable=True) as log:
        log.sync()
        log.append("first", key(1), {})
        log.append("first", key(2), {})
        was_dirty = log.dirty
        log.sync()
        log.sync()

        assert (was_dirty, log.dirty, log.fsync_count) == (True, False, 1)
        assert log.bytes_written == log.size_bytes == path.stat().st_size


class TestTornTail:
    """An unterminated last line is set aside, wherever it was cut."""

    @pytest.mark.slow
    def test_a_cut_at_every_byte_of_the_last_record_is_recovered(self, path):
        whole = write(path)
        start = whole.rindex(b"\n", 0, -1) + 1
        for cut in range(start + 1, len(whole)):
            path.write_bytes(whole[:cut])
            with AppendLog.open(path, NOTES, writable=True) as log:
                torn = log.torn
                assert read(log) == RECORDS[:-1]
                log.append(*RECORDS[-1])
            kept = path.with_name(torn.moved_to)

            assert torn == TornTail(start, cut - start, kept.name)
            assert kept.read_bytes() == whole[start:cut]
            assert path.read_bytes() == whole
            kept.unlink()

    def test_a_cut_between_records_is_a_shorter_log(self, path):
        whole = write(path)
        path.write_bytes(whole[: whole.rindex(b"\n", 0, -1) + 1])

        with AppendLog.open(path, NOTES, writable=True) as log:
            assert (log.torn, read(log)) == (None, RECORDS[:-1])

    def test_reading_reports_the_tail_and_leaves_it(self, path):
        whole = write(path)
        path.write_bytes(whole[:-5])

        with AppendLog.open(path, NOTES, writable=False) as log:
            start = whole.rindex(b"\n", 0, -1) + 1
            assert log.torn == TornTail(start, len(whole) - 5 - start, None)
            assert read(log) == RECORDS[:-1]
        assert path.read_bytes() == whole[:-5]
        assert list(path.parent.iterdir()) == [path]

    def test_every_tail_keeps_its_own_file(self, path):
        whole = write(path)
        for _ in range(2):
            path.write_bytes(whole[:-1])
            AppendLog.open(path, NOTES, writable=True).close()

        assert sorted(p.name for p in path.parent.iterdir()) == [
            "notes.jsonl",
            "notes.jsonl.torn-1",
            "notes.jsonl.torn-2",
        ]

    def test_a_tail_cut_inside_a_character_is_recovered(self, path):
        whole = write(path)
        path.write_bytes(whole[: whole.rindex("ｄ".encode()) + 1])

        with AppendLog.open(path, NOTES, writable=True) as log:
            assert read(log) == RECORDS[:-1]


def lines_of(path):
    return write(path).splitlines(keepends=True)


def refusal(path, data):
    path.write_bytes(data)
    errors = []
    for writable in (False, True):
        with pytest.raises(EvidenceError) as caught:
            AppendLog.open(path, NOTES, writable=writable)
        errors.append(caught.value)
    assert path.read_bytes() == data
    return errors[0]


class TestDamage:
    """Any other damage is refused by record number and byte offset."""

    @pytest.mark.parametrize("record", range(4))
    def test_a_flipped_bit_is_found(self, path, record):
        lines = lines_of(path)
        offset = sum(map(len, lines[:record]))
        for position in range(0, len(lines[record]) - 1, 7):
            damaged = bytearray(b"".join(lines))
            damaged[offset + position] ^= 1
            error = refusal(path, bytes(damaged))

            assert error.code == "eval_candidate_cache_invalid"
            assert f"record {record + 1}, byte offset {offset}" in str(error)

    @pytest.mark.parametrize("record", range(3))
    def test_a_dropped_record_is_found(self, path, record):
        lines = lines_of(path)
        del lines[record]

        assert f"record {record + 1}, byte" in str(refusal(path, b"".join(lines)))

    @pytest.mark.parametrize("record", range(3))
    def test_swapped_records_are_found(self, path, record):
        lines = lines_of(path)
        lines[record], lines[record + 1] = lines[record + 1], lines[record]

        assert f"record {record + 1}, byte" in str(refusal(path, b"".join(lines)))

    @pytest.mark.parametrize("record", range(4))
    def test_a_repeated_record_is_found(self, path, record):
        lines = lines_of(path)
        lines.insert(record, lines[record])

        assert f"record {record + 2}, byte" in str(refusal(path, b"".join(lines)))

    @pytest.mark.parametrize("record", range(3))
    def test_a_shortened_record_is_found(self, path, record):
        lines = lines_of(path)
        lines[record] = lines[record][:-9] + b"\n"

        assert f"record {record + 1}, byte" in str(refusal(path, b"".join(lines)))

    @pytest.mark.parametrize("record", range(4))
    def test_an_empty_line_is_found(self, path, record):
        lines = lines_of(path)
        lines.insert(record, b"\n")
        error = str(refusal(path, b"".join(lines)))

        assert f"record {record + 1}, byte" in error
        assert "empty" in error

    def test_bytes_that_are_no_utf8_are_found(self, path):
        lines = lines_of(path)
        lines[0] = lines[0].replace("ö".encode(), b"\xf6")

        assert "no UTF-8" in str(refusal(path, b"".join(lines)))

    def test_a_line_longer_than_any_record_is_found(self, path, monkeypatch):
        monkeypatch.setattr("harness.evidence.log_scan.MAX_LINE_BYTES", 100)

        assert "too long" in str(refusal(path, write(path)))

    def test_a_log_of_another_kind_is_refused(self, path):
        data = write(path).replace(b'"subject"', b'"another"')

        assert "no record of this log" in str(refusal(path, data))

    @given(st.data())
    def test_no_damage_changes_an_answer(self, tmp_path_factory, data):
        path = tmp_path_factory.mktemp("log") / NOTES.file_name
        whole = write(path)
        start = data.draw(st.integers(0, len(whole)))
        end = data.draw(st.integers(start, min(len(whole), start + 300)))
        damaged = whole[:start] + data.draw(st.binary(max_size=20)) + whole[end:]
        path.write_bytes(damaged)
        try:
            with AppendLog.open(path, NOTES, writable=False) as log:
                found = read(log)
        except EvidenceError:
            return

        assert found == RECORDS[: len(found)]
        assert len(found) == len(RECORDS) or len(damaged) < len(whole) or log.torn


class TestChangedWhileOpen:
    """A file that changes under an open log is noticed before it matters."""

    @pytest.mark.parametrize("change", [-1, 1])
    def test_appending_to_a_changed_file_is_refused(self, path, change):
        whole = write(path)
        with AppendLog.open(path, NOTES, writable=True) as log:
            path.write_bytes(whole[:-1] if change < 0 else whole + b"x")
            with pytest.raises(EvidenceError, match="changed while it was open"):
                log.append("first", key(1), {})

    def test_reading_a_shrunk_file_is_refused(self, path):
        whole = write(path)
        with AppendLog.open(path, NOTES, writable=False) as log:
            os.truncate(path, len(whole) - 3)
            with pytest.raises(EvidenceError, match="shrank"):
                log.entry(3)

    def test_reading_an_edited_record_is_refused(self, path):
        whole = write(path)
        with AppendLog.open(path, NOTES, writable=False) as log:
            path.write_bytes(whole.replace(b"true", b"null"))
            with pytest.raises(EvidenceError, match="record 2"):
                log.entry(1)

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (lambda whole: whole.replace(b"true", b"null"), "record 2,"),
            (lambda whole: whole[:-3], "record 4,.*shrank"),
            (lambda whole: whole + b"x", "had"),
        ],
        ids=["edited", "cut", "longer"],
    )
    def test_a_written_log_has_the_hash_of_what_was_written_or_none(
        self, path, change, reason
    ):
        write(path, RECORDS[:2])
        with AppendLog.open(path, NOTES, writable=True) as log:
            for record_type, subject, payload, number in RECORDS[2:]:
                log.append(record_type, subject, payload, number)
            assert log.content_hash == hash_file(path)
            path.write_bytes(change(path.read_bytes()))

            with pytest.raises(EvidenceError, match=f"(?s){reason}"):
                log.content_hash  # noqa: B018 - reading it is what is tested

    def test_a_log_that_somebody_removed_has_no_hash(self, path):
        write(path)
        with AppendLog.open(path, NOTES, writable=True) as log:
            path.unlink()

            with pytest.raises(EvidenceError, match="eval_cli_runtime_failed"):
                log.content_hash  # noqa: B018 - reading it is what is tested

    @pytest.mark.parametrize("writable", [True, False])
    def test_a_log_whose_name_another_file_has_is_refused(self, path, writable):
        whole = write(path)
        with AppendLog.open(path, NOTES, writable=writable, guarded=True) as log:
            path.unlink()
            path.write_bytes(whole)

            with pytest.raises(EvidenceError, match="another file has its name"):
                log.content_hash  # noqa: B018 - reading it is what is tested

    def test_a_record_replaced_by_another_whole_one_is_refused(self, path):
        other = write(path, [("first", key(1), {"text": "b"}, None)])
        path.unlink()
        write(path, [("first", key(1), {"text": "a"}, None)])
        with AppendLog.open(path, NOTES, writable=True) as log:
            path.write_bytes(other)

            with pytest.raises(EvidenceError, match="another whole one"):
                log.content_hash  # noqa: B018 - reading it is what is tested


def test_a_log_open_for_reading_takes_no_record(path):
    write(path)
    with (
        AppendLog.open(path, NOTES, writable=False) as log,
        pytest.raises(EvidenceError, match="open for reading only"),
    ):
        log.append("first", key(1), {})


def test_a_second_writer_is_refused(path):
    with (
        AppendLog.open(path, NOTES, writable=True),
        pytest.raises(EvidenceError, match="eval_run_in_use"),
    ):
        AppendLog.open(path, NOTES, writable=True)


def test_a_missing_log_is_not_made_by_reading(path):
    with pytest.raises(EvidenceError, match="eval_cli_runtime_failed"):
        AppendLog.open(path, NOTES, writable=False)

    assert not path.exists()


def test_a_pipe_is_no_log(path):
    os.mkfifo(path)
    with pytest.raises(EvidenceError, match="not a regular file"):
        AppendLog.open(path, NOTES, writable=False)


@pytest.mark.slow
def test_a_record_costs_at_most_64_bytes_of_memory(path):
    count = 100_000  # what the bound is promised for
    write(path, (("first", key(n), {"n": n}, 1) for n in range(count)))
    tracemalloc.start()
    try:
        with AppendLog.open(path, NOTES, writable=True) as log:
            opened, peak = tracemalloc.get_traced_memory()
            for number in range(count, count + 10_000):
                log.append("second", key(number), {"n": number}, 1)
            appended = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert opened / count <= 64
    assert appended / (count + 10_000) <= 64
    assert peak <= 64 * count + (3 << 20)


@pytest.mark.slow
def test_memory_does_not_grow_with_payloads(path):
    large = "x" * 1_000_000
    write(path, [("first", key(n), {"n": n, "large": large}, None) for n in range(40)])
    tracemalloc.start()
    try:
        with AppendLog.open(path, NOTES, writable=False) as log:
            last = log.entry(39).sequence
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert last == 40
    assert peak < 12_000_000


def test_a_log_that_is_a_link_is_read_and_never_written(tmp_path):
    (tmp_path / "elsewhere").write_bytes(b"")
    (tmp_path / "notes.jsonl").symlink_to(tmp_path / "elsewhere")

    with AppendLog.open(tmp_path / "notes.jsonl", NOTES, writable=False):
        pass
    with pytest.raises(EvidenceError) as refused:
        AppendLog.open(tmp_path / "notes.jsonl", NOTES, writable=True)

    assert refused.value.code == "eval_cli_runtime_failed"
