"""A verification checks everything, finds every changed bit, and never crashes."""

import json
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.canonical import content_hash
from harness.errors import ArtifactError, FairtrialError
from harness.evidence.artifacts import artifact_bytes
from harness.evidence.folder import ARTIFACT_FILES
from harness.evidence.manifest import MANIFEST_FILE
from harness.run.finished import open_finished
from harness.run.replay import replay_run
from harness.verification.extras import all_extras
from harness.verification.verify import verify
from tests.verification.runs import (
    files_of,
    flip,
    forge_record,
    lines_of,
    log_formats,
    make_consistent,
    wheres,
)

FILES = [*ARTIFACT_FILES.values(), MANIFEST_FILE]
LOGS = [name for name in FILES if name.endswith(".jsonl")]


def refused(folder):
    """Whether replay and the door of rescoring refuse a folder."""
    try:
        replayed = replay_run(folder)
    except FairtrialError:
        pass
    else:
        return not replayed.is_equal
    with pytest.raises(FairtrialError), open_finished(folder) as opened:
        list(opened.evidence.plan.tasks())
    return True


@pytest.mark.parametrize("extras", [None, all_extras()], ids=["alone", "all"])
@pytest.mark.parametrize("kind", ["executable_run", "trace_run"])
def test_untouched_run_is_intact(kind, extras, request):
    verification = verify(request.getfixturevalue(kind), extras)

    assert wheres(verification) == []
    assert verification.is_intact
    assert not verification.incomplete


def test_everything_is_counted(executable_run):
    checked = verify(executable_run, all_extras()).findings.checked

    assert checked["episodes scored again"] == 6
    assert checked["aggregates recomputed"] == 2
    assert checked["records hashed"] == sum(
        len(lines_of(executable_run / name)) for name in LOGS
    )
    assert checked["task tables compared row by row"] == 1


def test_verification_writes_nothing(run):
    before = {p.name: p.read_bytes() for p in run.iterdir()}

    verify(run, all_extras())

    assert {p.name: p.read_bytes() for p in run.iterdir()} == before


@pytest.fixture(scope="module")
def spare(executable_run, tmp_path_factory):
    """A copy that examples change and mend again."""
    return shutil.copytree(executable_run, tmp_path_factory.mktemp("spare") / "run")


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_any_flipped_bit_is_found_in_its_file(name, executable_run, spare):
    original = (executable_run / name).read_bytes()

    @settings(max_examples=20)
    @given(position=st.integers(0, len(original) - 1), bit=st.integers(0, 7))
    def flipped(position, bit):
        flip(spare / name, position, bit)
        try:
            verification = verify(spare)
        finally:
            (spare / name).write_bytes(original)
        places = wheres(verification)
        if name in LOGS:
            record = original.count(b"\n", 0, position) + 1
            # A byte that becomes a line's end, or stops to be one, moves its line.
            expected = tuple(f"{name}, record {record + n}," for n in (0, 1))
        else:
            expected = (name,)
        assert any(place.startswith(expected) for place in places), places

    flipped()


@pytest.mark.slow
@pytest.mark.parametrize("name", LOGS)
def test_flips_at_every_border_of_records_are_found(name, executable_run, spare):
    original = (executable_run / name).read_bytes()
    missed = []
    begin = 0
    for number, line in enumerate(lines_of(executable_run / name), 1):
        for position in (begin, begin + len(line) - 1):
            flip(spare / name, position, (position + number) % 8)
            places = wheres(verify(spare))
            (spare / name).write_bytes(original)
            if not any(
                place.startswith(f"{name}, record {number},") for place in places
            ):
                missed.append((number, position, places))
        begin += len(line)

    assert missed == []


def drop(lines, at):
    del lines[at]


def repeat(lines, at):
    lines.insert(at, lines[at])


def swap(lines, at):
    lines[at - 1], lines[at] = lines[at], lines[at - 1]


def cut(lines, at):
    lines[at] = lines[at][: len(lines[at]) // 2] + b"\n"


def end_here(lines, at):
    lines[at] = lines[at][: len(lines[at]) // 2]
    del lines[at + 1 :]


@pytest.mark.slow
@pytest.mark.parametrize("edit", [drop, repeat, swap, cut, end_here])
@pytest.mark.parametrize("name", LOGS)
def test_every_edited_record_is_named(name, edit, executable_run, spare):
    original = lines_of(executable_run / name)
    missed = []
    for at in range(1, len(original)):
        lines = list(original)
        edit(lines, at)
        (spare / name).write_bytes(b"".join(lines))
        places = wheres(verify(spare))
        named = tuple(f"{name}, record {n}" for n in (at, at + 1, at + 2))
        if not any(place.startswith(named) for place in places):
            missed.append((at, places))
    (spare / name).write_bytes(b"".join(original))

    assert missed == []


@pytest.mark.slow
@pytest.mark.parametrize("edit", [drop, repeat, swap, cut, end_here])
@pytest.mark.parametrize("name", LOGS)
def test_replay_and_rescoring_refuse_every_edited_record(
    name, edit, executable_run, spare
):
    original = lines_of(executable_run / name)
    accepted = []
    for at in range(1, len(original), 3):
        lines = list(original)
        edit(lines, at)
        (spare / name).write_bytes(b"".join(lines))
        if not refused(spare):
            accepted.append(at)
    (spare / name).write_bytes(b"".join(original))

    assert accepted == []


@pytest.mark.parametrize("name", FILES)
def test_missing_file_is_named(name, run):
    (run / name).unlink()
    if name == MANIFEST_FILE:
        with pytest.raises(ArtifactError) as caught:
            verify(run)
        assert caught.value.code == "eval_run_unfinished"
        return

    assert any(place.startswith(name) for place in wheres(verify(run)))


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("content", [b"", b"\n", b"{}", b"[]", b"null\n", b"\xff\x00"])
def test_other_content_is_found_and_nothing_crashes(name, content, run):
    (run / name).write_bytes(content)

    verification = verify(run, all_extras())

    assert not verification.is_intact
    assert replay_refuses(run) or name not in (*LOGS, MANIFEST_FILE)


def set_successes(report):
    report["candidates"][0]["successful_tasks"] += 1


def test_forged_report_under_a_fitting_manifest_is_found(run):
    path = run / "eval_report.json"
    report = json.loads(path.read_text())
    set_successes(report)
    path.write_text(json.dumps(report, indent=2, sort_keys=True) + "\n")
    make_consistent(run)

    assert wheres(verify(run)) == [
        "eval_record.json.subjects[0].counts.successful",
        "eval_report.json.candidates[0].successful_tasks",
    ]


def test_forged_record_under_a_fitting_manifest_is_found(run):
    path = run / "eval_record.json"
    record = json.loads(path.read_text())
    record["subjects"][0]["conditions"]["device"]["values"] = ["cuda"]
    path.write_bytes(artifact_bytes(record))
    make_consistent(run)

    assert wheres(verify(run)) == [
        "eval_record.json.subjects[0].conditions.device.values[0]"
    ]
    assert not replay_run(run).is_equal


def test_record_of_another_version_is_left_and_said_to_be(run):
    path = run / "eval_record.json"
    record = json.loads(path.read_text())
    record["record_version"] = "0"
    path.write_bytes(artifact_bytes(record))
    make_consistent(run)

    verification = verify(run)

    assert wheres(verification) == []
    assert "eval_record.json" in [w for w, _ in verification.findings.unchecked]
    assert replay_run(run).is_equal


def test_forged_answer_is_found_by_its_raw_response(run):
    name = "candidate_io_cache.jsonl"
    number = next(
        n
        for n, line in enumerate(lines_of(run / name), 1)
        if b'"record_type":"completion"' in line and b'"text":""' not in line
    )

    def lie(payload):
        payload["outcome"]["response"]["text"] += " Of course."
        return payload

    forge_record(run / name, number, lie)
    make_consistent(run)

    problems = [v.problem for v in verify(run).findings.violations]
    assert "an episode and the candidate log tell two stories" in problems


@pytest.mark.parametrize("field", ["usage", "served_model", "provider_request_id"])
def test_what_an_answer_says_beside_its_verdict_is_compared_too(traced, field):
    name = "candidate_io_cache.jsonl"
    number = next(
        n
        for n, line in enumerate(lines_of(traced / name), 1)
        if b'"record_type":"completion"' in line
    )

    def lie(payload):
        other = {"total_tokens": 1} if field == "usage" else "another"
        payload["outcome"]["response"][field] = other
        return payload

    forge_record(traced / name, number, lie)
    make_consistent(traced)

    found = [v.problem for v in verify(traced).findings.violations]
    assert "the recorded answer is not what its raw response says" in found


def test_every_answer_is_decoded_again(traced):
    completions = sum(
        b'"record_type":"completion"' in line
        for line in lines_of(traced / "candidate_io_cache.jsonl")
    )
    checked = verify(traced).findings.checked

    assert checked["answers decoded again from raw responses"] == completions
    assert checked["raw responses hashed"] == completions


def test_forged_prompt_is_found_by_its_hash(traced):
    name = "candidate_io_cache.jsonl"

    def lie(payload):
        payload["request"]["body"]["messages"][0]["content"] += " Be kind."
        return payload

    forge_record(traced / name, 1, lie)
    make_consistent(traced)

    (violation,) = verify(traced).findings.violations
    assert violation.where.startswith(f"{name}, record 1,")
    assert "body_hash" in violation.actual


def test_forged_verdict_of_a_tool_is_found(run):
    name = "tool_trace_cache.jsonl"
    number = next(
        n
        for n, line in enumerate(lines_of(run / name), 1)
        if b'"status":"business_rejection"' in line or b'"result":{' in line
    )

    def lie(payload):
        payload["episode"]["execution"]["executions"][0]["result"] = {"lent": True}
        return payload

    forge_record(run / name, number, lie)
    make_consistent(run)

    problems = [v.problem for v in verify(run).findings.violations]
    assert "result_hash is not the hash of the result" in problems


def test_run_of_a_version_with_other_causes_is_intact_and_says_so(run):
    for name in ("eval_report.json", MANIFEST_FILE):
        path = run / name
        payload = json.loads(path.read_text("utf-8"))
        payload["error_taxonomy_hash"] = content_hash("an earlier table")
        path.write_bytes(artifact_bytes(payload))
    record = run / "eval_record.json"
    payload = json.loads(record.read_text("utf-8"))
    payload["scorer"]["error_taxonomy_hash"] = content_hash("an earlier table")
    record.write_bytes(artifact_bytes(payload))
    make_consistent(run)

    verification = verify(run, all_extras())

    assert wheres(verification) == []
    assert "error_taxonomy_hash" in [
        what for what, _ in verification.findings.unchecked
    ]
    assert replay_run(run).is_equal


def test_taxonomy_that_report_and_manifest_cite_differently_is_found(run):
    path = run / "eval_report.json"
    payload = json.loads(path.read_text("utf-8"))
    payload["error_taxonomy_hash"] = content_hash("an earlier table")
    path.write_bytes(artifact_bytes(payload))
    make_consistent(run)

    assert "eval_report.json.error_taxonomy_hash" in wheres(verify(run, all_extras()))


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5).filter(lambda t: t.isprintable()),
    st.just([]),
    st.just({}),
    st.just(["x", {"y": None}]),
)


def leaves(value, path=()):
    """All places of a JSON value, inner ones included."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from leaves(value[key], (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index))


def replaced(value, path, junk):
    if not path:
        return junk
    target = value
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = junk
    return value


@pytest.mark.slow
@pytest.mark.parametrize("name", LOGS)
def test_forged_records_never_crash_anything(name, executable_run, spare):
    """Whatever a record holds under a right hash and a fitting manifest."""
    originals = {n: (executable_run / n).read_bytes() for n in (name, MANIFEST_FILE)}
    count = originals[name].count(b"\n")

    @settings(max_examples=20)
    @given(number=st.integers(1, count), junk=JUNK, data=st.data())
    def forged(number, junk, data):
        def lie(payload):
            path = data.draw(st.sampled_from(list(leaves(payload))))
            return replaced(payload, path, junk)

        try:
            forge_record(spare / name, number, lie)
            make_consistent(spare)
            verification = verify(spare, all_extras())
            replay_refuses(spare)
        finally:
            for file, content in originals.items():
                (spare / file).write_bytes(content)
        assert verification.findings.checked

    forged()


def replay_refuses(folder):
    """Replay either answers or refuses in the one form of refusals."""
    try:
        return not replay_run(folder).is_equal
    except FairtrialError:
        return True


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in FILES if n.endswith(".json")])
def test_forged_documents_never_crash_anything(name, executable_run, spare):
    originals = {n: (executable_run / n).read_bytes() for n in (name, MANIFEST_FILE)}
    document = json.loads(originals[name])
    places = list(leaves(document))

    @settings(max_examples=20)
    @given(path=st.sampled_from(places), junk=JUNK)
    def forged(path, junk):
        changed = replaced(json.loads(originals[name]), path, junk)
        (spare / name).write_text(json.dumps(changed, indent=2, sort_keys=True) + "\n")
        try:
            if name != MANIFEST_FILE:
                make_consistent(spare)
            changed = json.loads((spare / name).read_bytes())
            verification = verify(spare, all_extras())
            replay_refuses(spare)
        finally:
            for file, content in originals.items():
                (spare / file).write_bytes(content)
        free = name in ("source_verification_report.json", "contamination_report.json")
        same = json.dumps(changed, sort_keys=True) == json.dumps(
            document, sort_keys=True
        )
        assert free or same or not verification.is_intact

    forged()


def test_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(ArtifactError) as caught:
        verify(tmp_path)

    assert caught.value.code == "eval_artifact_invalid"


def test_name_of_nothing_is_refused(tmp_path):
    with pytest.raises(ArtifactError, match="no such file"):
        verify(tmp_path / "nothing")


def test_files_under_no_manifest_are_listed(run):
    (run / "notes.txt").write_text("mine")

    unchecked = verify(run).findings.unchecked

    assert ("notes.txt", "it is not under the manifest") in unchecked


def test_every_log_has_its_formats(executable_run):
    assert {n for n in files_of(executable_run) if n.endswith(".jsonl")} == set(
        log_formats()
    )
