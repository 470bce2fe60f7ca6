"""What is withheld is gone from the bundle, and what it proved is named as unknown."""

import json
import tarfile

import pytest

from harness.canonical import canonical_bytes, content_hash, hash_bytes
from harness.errors import UsageError
from harness.evidence.artifacts import artifact_bytes
from harness.evidence.plan_file import PlanFile
from harness.verification.bundle import AGGREGATES_FILE, BLOCK, END, member_header
from harness.verification.redaction import WORDS, Redaction
from harness.verification.seal import seal_run
from harness.verification.verify import verify
from tests.verification.runs import lines_of, wheres


def sealed(run, folder, *what):
    path = folder / f"{'-'.join(what).replace(':', '_') or 'whole'}.bundle"
    seal_run(run, path, Redaction.of(what), None)
    return path


def members(path):
    with tarfile.open(path) as archive:
        return {m.name: archive.extractfile(m).read() for m in archive}


def packed(files):
    """Write the archive of these files, with a fitting first file."""
    header = json.loads(files["bundle.json"])
    del header["bundle_hash"]
    for member in header["members"]:
        data = files[member["file"]]
        member["size_bytes"] = len(data)
        member["content_hash"] = hash_bytes(data)
    header["bundle_hash"] = content_hash(header)
    files = {**files, "bundle.json": artifact_bytes(header)}
    order = ["bundle.json", *(m["file"] for m in header["members"])]
    return (
        b"".join(
            member_header(name, len(files[name]))
            + files[name]
            + bytes(-len(files[name]) % BLOCK)
            for name in order
        )
        + END
    )


def texts_of(run):
    """Words of prompts, of answers that are not gold's, and of results."""
    texts = {"prompts": set(), "responses": set(), "results": set()}
    for line in lines_of(run / "candidate_io_cache.jsonl"):
        payload = json.loads(line)["payload"]
        if "outcome" in payload:
            response = payload["outcome"]["response"]
            texts["responses"] |= {response["text"]} - {""}
            texts["responses"] |= {call["id"] for call in response["tool_calls"]}
        elif "request" in payload:
            for message in payload["request"]["body"]["messages"]:
                if message["role"] in ("system", "user"):
                    texts["prompts"].add(message["content"])
                elif message["role"] == "tool":
                    texts["results"].add(message["content"])
    gold = (run / "eval_plan.jsonl").read_text("utf-8")
    texts["responses"] = {t for t in texts["responses"] if json.dumps(t) not in gold}
    return texts


@pytest.mark.parametrize("kind", ["executable_run", "trace_run"])
@pytest.mark.parametrize("word", ["prompts", "responses", "results"])
def test_word_withholds_what_it_says(word, kind, request, tmp_path):
    run = request.getfixturevalue(kind)
    texts = {json.dumps(text)[1:-1].encode() for text in texts_of(run)[word]}
    assert texts

    data = sealed(run, tmp_path, word).read_bytes()

    assert [text for text in texts if text in data] == []


@pytest.mark.parametrize("kind", ["executable_run", "trace_run"])
@pytest.mark.parametrize("word", WORDS)
def test_redacted_bundle_is_intact_and_says_what_is_unknown(
    word, kind, request, tmp_path
):
    run = request.getfixturevalue(kind)

    verification = verify(sealed(run, tmp_path, word))

    assert wheres(verification) == []
    assert any("withheld" in why for _, why in verification.findings.unchecked)


def test_roots_still_commit_to_withheld_rows(executable_run, tmp_path):
    whole = verify(sealed(executable_run, tmp_path))
    redacted = verify(sealed(executable_run, tmp_path, "prompts", "responses"))

    assert redacted.manifest["merkle_root"] == whole.manifest["merkle_root"]
    assert redacted.findings.checked["roots over records"] == 4


def test_scores_are_recomputed_without_raw_bodies(executable_run, tmp_path):
    checked = verify(sealed(executable_run, tmp_path, "bodies")).findings.checked

    assert checked["aggregates recomputed"] == 2
    assert "raw responses hashed" not in checked


@pytest.fixture(scope="module")
def one_task(executable_run):
    with PlanFile.open(executable_run / "eval_plan.jsonl") as plan:
        return plan.header.task_ids[0]


def test_withheld_task_leaves_the_others_scored(executable_run, one_task, tmp_path):
    path = sealed(executable_run, tmp_path, f"task:{one_task}")

    verification = verify(path)

    assert wheres(verification) == []
    assert verification.findings.checked["score hashes compared"] == 4
    assert ("the aggregate of gold", "1 of 3 episodes were withheld") in (
        verification.findings.unchecked
    )


def test_every_row_of_a_withheld_task_is_a_digest(executable_run, one_task, tmp_path):
    files = members(sealed(executable_run, tmp_path, f"task:{one_task}"))

    for name in (
        "eval_plan.jsonl",
        "candidate_io_cache.jsonl",
        "tool_trace_cache.jsonl",
    ):
        rows = [json.loads(line) for line in files[name].splitlines()]
        left = [
            row for row in rows if "payload" in row and "header" not in row["payload"]
        ]
        assert len(left) < len(rows)
        assert [row for row in left if one_task in json.dumps(row)] == []


def test_score_of_another_verdict_is_found_beside_a_withheld_task(
    executable_run, one_task, tmp_path
):
    files = members(sealed(executable_run, tmp_path, f"task:{one_task}"))
    aggregate = json.loads(files[AGGREGATES_FILE].splitlines()[0])
    first, second = aggregate["task_score_hashes"][1:]
    aggregate["task_score_hashes"][1:] = [second, first]
    lines = files[AGGREGATES_FILE].splitlines(keepends=True)
    lines[0] = (
        json.dumps(
            aggregate, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        ).encode()
        + b"\n"
    )
    files[AGGREGATES_FILE] = b"".join(lines)
    forged = tmp_path / "forged.bundle"
    forged.write_bytes(packed(files))

    problems = [v.problem for v in verify(forged).findings.violations]
    assert problems.count("the score is not what the evidence gives") == 2


def test_count_that_withheld_episodes_cannot_explain_is_found(
    executable_run, one_task, tmp_path
):
    files = members(sealed(executable_run, tmp_path, f"task:{one_task}"))
    lines = files[AGGREGATES_FILE].splitlines(keepends=True)
    lines[0] = lines[0].replace(b'"successful_tasks":3', b'"successful_tasks":0')
    files[AGGREGATES_FILE] = b"".join(lines)
    forged = tmp_path / "forged.bundle"
    forged.write_bytes(packed(files))

    assert any("successful_tasks" in place for place in wheres(verify(forged)))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("record_hash", "sha256:" + "0" * 64),
        ("record_hash", "sha256:0"),
        ("withheld", False),
        ("withheld", 1),
        ("sequence", 1),
        ("sequence", 2.0),
        ("record_type", "request"),
        ("record_type", "completion"),
        ("attempt_index", -1),
        ("request_hash", None),
        ("schema_version", "2.0"),
        ("note", "x"),
    ],
)
def test_forged_digest_is_found(field, value, executable_run, tmp_path):
    files = members(sealed(executable_run, tmp_path, "bodies"))
    name = "candidate_io_cache.jsonl"
    lines = files[name].splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if b"withheld" in line)
    lines[at] = canonical_bytes({**json.loads(lines[at]), field: value}) + b"\n"
    files[name] = b"".join(lines)
    forged = tmp_path / "forged.bundle"
    forged.write_bytes(packed(files))

    assert not verify(forged).is_intact


def test_withheld_row_that_nobody_owns_up_to_is_found(executable_run, tmp_path):
    files = members(sealed(executable_run, tmp_path, "bodies"))
    header = json.loads(files["bundle.json"])
    header["withheld_rows"]["candidate_io_cache.jsonl"] -= 1
    files["bundle.json"] = json.dumps(header).encode()
    forged = tmp_path / "forged.bundle"
    forged.write_bytes(packed(files))

    (violation,) = verify(forged).findings.violations
    assert violation.where == "candidate_io_cache.jsonl"


def test_digests_have_no_place_in_a_run_folder(run, executable_run, tmp_path):
    name = "candidate_io_cache.jsonl"
    (run / name).write_bytes(members(sealed(executable_run, tmp_path, "bodies"))[name])

    assert not verify(run).is_intact


def test_unknown_word_is_refused():
    with pytest.raises(UsageError, match="secrets"):
        Redaction.of(["prompts", "secrets"])


def test_unknown_task_is_refused(executable_run, tmp_path):
    with pytest.raises(UsageError, match="no such task"):
        sealed(executable_run, tmp_path, "task:nobody")


def test_order_of_words_changes_nothing(executable_run, tmp_path):
    first = sealed(executable_run, tmp_path, "bodies", "results")
    second = sealed(executable_run, tmp_path, "results", "bodies")

    assert first.read_bytes() == second.read_bytes()
