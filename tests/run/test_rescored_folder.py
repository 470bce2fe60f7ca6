"""A rescoring proves its own scores, and says so where it is no run."""

import json
import shutil

import pytest

from harness.canonical import hash_file
from harness.cli.main import main
from harness.errors import ArtifactError, FairtrialError
from harness.evaluations.stored import read_stored
from harness.evidence.artifacts import artifact_bytes
from harness.run.explain import explain_episode
from harness.run.rescore import bound_files, rescore_run
from harness.run.rescored_folder import is_rescored, replay_rescored
from harness.verification.extras import all_extras
from harness.verification.rescored import verify_rescored
from harness.verification.verify import verify


@pytest.fixture(scope="module")
def rescoring(bent, tmp_path_factory):
    """The trace run under `verbatim-text`, which changes verdicts."""
    output = tmp_path_factory.mktemp("rescoring") / "new"
    rescore_run(
        bent.output("trace"),
        "verbatim-text",
        output,
        render_page=lambda *_: "<!doctype html>\n",
    )
    return output


@pytest.fixture
def copy(rescoring, tmp_path):
    """A private copy; its run's files are no links any more."""
    return shutil.copytree(rescoring, tmp_path / "copy")


def wheres(folder):
    return [v.where for v in verify_rescored(folder, all_extras()).findings.violations]


def rewrite(folder, name, edit):
    """Change a JSON file and bind it anew, as a forger would."""
    path = folder / name
    payload = json.loads(path.read_text("utf-8"))
    edit(payload)
    path.write_bytes(artifact_bytes(payload))
    (folder / "eval_record_files.json").write_bytes(artifact_bytes(bound_files(folder)))


def test_rescoring_is_intact_and_counts_what_it_did(rescoring):
    verification = verify_rescored(rescoring, all_extras())

    assert verification.findings.violations == ()
    assert verification.findings.checked["episodes rescored"] > 0
    stated = json.loads((rescoring / "eval_record.json").read_text("utf-8"))
    hashes = {
        one.aggregate.candidate_alias: one.aggregate.aggregate_hash
        for one in verification.scored
    }
    assert hashes == stated["candidate_aggregates"]


def test_copy_stands_alone(copy):
    assert wheres(copy) == []
    assert replay_rescored(copy).replayed.is_equal


def test_run_in_a_rescoring_is_the_run(bent, rescoring):
    run = bent.output("trace")

    names = {p.name for p in (rescoring / "parent").iterdir()}

    assert verify(rescoring / "parent", all_extras()).is_intact
    assert {n: hash_file(run / n) for n in names} == {
        n: hash_file(rescoring / "parent" / n) for n in names
    }


def test_run_takes_no_more_space_where_files_can_be_linked(bent, rescoring):
    run = bent.output("trace")

    assert (run / "candidate_io_cache.jsonl").samefile(
        rescoring / "parent" / "candidate_io_cache.jsonl"
    )


def test_run_of_links_is_carried_whole(bent, tmp_path):
    linked = tmp_path / "linked"
    linked.mkdir()
    for file in bent.output("trace").iterdir():
        (linked / file.name).symlink_to(file)
    output = tmp_path / "new"
    rescore_run(linked, None, output, render_page=lambda *_: "<!doctype html>\n")

    assert not any(file.is_symlink() for file in (output / "parent").iterdir())
    assert wheres(output) == []


def test_page_is_said_to_be_bound_and_not_read(rescoring):
    unchecked = verify_rescored(rescoring, all_extras()).findings.unchecked

    assert ("report.html", "its hash was checked, not its text") in unchecked


@pytest.mark.parametrize("last", ["eval_manifest.json", "eval_record_files.json"])
def test_record_that_its_folder_was_not_finished_with_is_not_compared(copy, last):
    folder = copy if last == "eval_record_files.json" else copy / "parent"
    path = folder / "eval_record.json"
    record = json.loads(path.read_text("utf-8"))
    record["subjects"][0]["name"] = "better"
    path.write_bytes(artifact_bytes(record))

    with pytest.raises(ArtifactError, match=last):
        read_stored(folder)


@pytest.mark.parametrize("name", ["eval_record.json", "eval_report.json"])
def test_forged_number_is_named(copy, name):
    def raise_score(payload):
        if name == "eval_report.json":
            payload["candidates"][0]["successful_tasks"] += 1
        else:
            payload["verdict_changes"].pop()

    rewrite(copy, name, raise_score)

    assert any(place.startswith(name) for place in wheres(copy))
    assert not replay_rescored(copy).replayed.is_equal


def test_record_of_another_policy_is_named(copy):
    def relabel(payload):
        payload["policy_name"] = "order-free"

    rewrite(copy, "eval_record.json", relabel)

    assert "eval_record.json.policy_name" in wheres(copy)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "eval_record.json",
        "eval_record_files.json",
        "eval_report.json",
        "eval_task_results.parquet",
        "report.html",
        "parent/eval_manifest.json",
        "parent/candidate_io_cache.jsonl",
    ],
)
@pytest.mark.parametrize("share", [0, 0.37, 0.99])
def test_flipped_bit_is_found(copy, name, share):
    path = copy / name
    data = bytearray(path.read_bytes())
    data[int(len(data) * share)] ^= 1
    path.write_bytes(data)

    assert wheres(copy)


def test_lost_file_is_named(copy):
    (copy / "report.html").unlink()

    assert "report.html" in wheres(copy)


def test_episode_is_explained_under_the_policy_of_the_record(rescoring):
    record = json.loads((rescoring / "eval_record.json").read_text("utf-8"))
    change = record["verdict_changes"][0]
    episode = {"candidate": change["candidate_alias"], "trial": change["trial"]}

    now = explain_episode(rescoring, change["task_id"], **episode)
    before = explain_episode(rescoring / "parent", change["task_id"], **episode)

    assert (before["verdict"], now["verdict"]) == (
        change["recorded"],
        change["verdict"],
    )


@pytest.mark.parametrize(
    "words",
    [
        ("sensitivity", "{}"),
        ("rescore", "{}", "--output", "{}-again"),
        ("seal", "{}", "--output", "{}.bundle"),
        ("audit", "{}"),
    ],
)
def test_what_is_done_with_a_run_names_the_run(rescoring, capsys, words):
    status = main([word.format(rescoring) for word in words])

    assert status in (2, 7)
    assert "new/parent" in capsys.readouterr().err


def test_output_folder_of_a_run_is_no_rescoring(rescoring):
    from harness.evidence.folder import RunFolder

    with pytest.raises(ArtifactError, match="rescoring"):
        RunFolder(rescoring).enter("sha256:" + "0" * 64, resume=True)


def test_glob_of_runs_passes_rescorings_over(rescoring, bent, tmp_path, capsys):
    shutil.copytree(bent.output("trace"), tmp_path / "run-a")
    shutil.copytree(rescoring, tmp_path / "run-b")

    status = main(["audit", str(tmp_path / "run-*"), "--json"])

    assert status == 0
    assert json.loads(capsys.readouterr().out)["totals"]["runs"] == 1


def test_run_is_told_from_a_rescoring(bent, rescoring):
    assert is_rescored(rescoring)
    assert not is_rescored(bent.output("trace"))
    assert not is_rescored(rescoring / "nothing")


@pytest.mark.parametrize("name", ["nothing", "empty", "a-file"])
def test_place_without_evidence_is_named(tmp_path, name):
    (tmp_path / "empty").mkdir()
    (tmp_path / "a-file").write_bytes(b"x")

    with pytest.raises(ArtifactError, match=r"no run in this folder|this is a file"):
        explain_episode(tmp_path / name, "task", candidate=None, trial=0)


@pytest.mark.parametrize("content", [b"null\n", b"[]\n", b"{}\n", b"", None])
def test_report_of_the_run_that_was_changed_is_named(copy, content):
    report = copy / "parent" / "eval_report.json"
    report.unlink()
    if content is not None:
        report.write_bytes(content)

    assert any("eval_report.json" in place for place in wheres(copy))
    with pytest.raises(FairtrialError):
        replay_rescored(copy)
