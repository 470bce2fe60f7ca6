"""`fairtrial compare` as people type it: what it says, and its exit status."""

import json

import pytest

from harness.causes import (
    EXIT_ANSWER_IS_NO,
    EXIT_DONE,
    EXIT_INCOMPATIBLE,
    EXIT_SETUP,
    EXIT_USAGE,
)
from harness.cli.main import main
from harness.evaluations.record import LINEAGE, Holdout
from tests.evaluations.records import (
    conditions,
    later,
    protocol,
    subject,
    verdict_lines,
    with_samples,
    written,
)

FILE = "sample_scores.jsonl"
RIGHT = {"a": [1, 1, 1, 0], "b": [1, 1, 0, 0]}


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Two comparable runs, `a` with three right rows of four and `b` with two."""
    monkeypatch.chdir(tmp_path)
    for name, right in RIGHT.items():
        rows = {f"row{n}": bool(each) for n, each in enumerate(right)}
        candidate = {"correct": sum(right)}
        with_samples(tmp_path / name, verdict_lines(rows), candidate=candidate)
    return tmp_path


def payload(capsys, *words):
    status = main(["compare", *words, "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_records_stand_before_the_label_and_the_label_before_any_figure(runs, capsys):
    assert main(["compare", "a", "b"]) == EXIT_DONE

    told = capsys.readouterr().out
    assert told.startswith("records used\n  a: original (default); others: none\n")
    assert told.index("label: comparable") < told.index("0.7500")
    assert "1. a  0.7500 (3/4)" in told
    assert "2. b  0.5000 (2/4)  -0.2500" in told
    assert "The gap was observed on these rows" in told


def test_words_of_a_server_cannot_forge_a_line(runs, capsys):
    lying = conditions(server="x\n  1. forged\x1b[2J")
    written(runs / "c", subject(conditions=lying))

    assert main(["compare", "a", "c"]) == EXIT_DONE

    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert "  1. forged" not in told.replace("\\u{a}  1. forged", "").splitlines()
    assert "x\\u{a}  1. forged\\u{1b}[2J" in told


def test_rows_are_paired_with_an_exact_test(runs, capsys):
    _, found = payload(capsys, "a", "b")

    (pair,) = found["paired_rows"]
    assert (pair["wins"], pair["losses"], pair["ties"]) == (1, 0, 3)
    assert pair["p_value"] == 1.0
    assert "sign test" in pair["test"]


def test_ties_are_shown_as_ties(runs, capsys):
    written(runs / "c", subject(correct=3))

    assert main(["compare", "a", "c"]) == EXIT_DONE
    assert "1. a = c  0.7500 (3/4)  (tied)" in capsys.readouterr().out


def test_missing_score_is_not_ranked(runs, capsys):
    written(runs / "c", subject(correct=None))

    assert main(["compare", "a", "c"]) == EXIT_DONE
    assert "not scored: c (" in capsys.readouterr().out


def test_incompatible_is_an_answer_with_its_own_status_and_no_ranking(runs, capsys):
    other = protocol(rows={"sha256": "x", "n": 4}, decoding={"max_tokens": 9})
    written(runs / "c", subject(correct=4), protocol=other)

    status, found = payload(capsys, "a", "c")

    assert status == EXIT_INCOMPATIBLE
    assert found["label"] == "incompatible"
    assert found["reasons"] == ["rows", "decoding"]
    assert all(group["ranking"] == [] for group in found["groups"])
    assert found["paired_rows"] == []


def test_scores_of_two_metric_versions_are_never_subtracted(runs, capsys):
    newer = protocol(metric={"name": "accuracy", "version": "2"})
    written(runs / "c", subject(correct=4), protocol=newer)

    assert main(["compare", "a", "c"]) == EXIT_INCOMPATIBLE
    told = capsys.readouterr().out
    assert "version: 1 | 2" in told
    assert "+0.2500" not in told
    assert "-0.2500" not in told


def test_cross_runtime_is_ranked_with_its_differences_and_a_caution(runs, capsys):
    written(runs / "c", subject(correct=4, conditions=conditions(device="cuda")))

    assert main(["compare", "a", "c"]) == EXIT_DONE
    told = capsys.readouterr().out
    assert "label: cross-runtime" in told
    assert "device: cpu | cuda" in told
    assert "1. c  1.0000 (4/4)" in told
    assert "Scores may hold effects of the runtimes" in told


@pytest.mark.parametrize(
    ("device", "required", "status"),
    [
        ("cpu", "comparable", EXIT_DONE),
        ("cpu", "cross-runtime", EXIT_DONE),
        ("cuda", "comparable", EXIT_ANSWER_IS_NO),
        ("unknown", "comparable", EXIT_ANSWER_IS_NO),
        ("cuda", "cross-runtime", EXIT_DONE),
    ],
)
def test_required_label_decides_the_status(runs, capsys, device, required, status):
    written(runs / "c", subject(conditions=conditions(device=device)))

    assert main(["compare", "a", "c", "--require", required]) == status


def test_incompatible_is_told_apart_from_an_unmet_requirement(runs, capsys):
    written(runs / "c", protocol=protocol(rows={"n": 5}))

    words = ["compare", "a", "c", "--require", "comparable"]
    assert main(words) == EXIT_INCOMPATIBLE


def test_chosen_record_is_said_with_the_others_and_its_lineage(runs, capsys):
    again = later(runs / "again", runs / "a", subject(correct=1))
    record = json.loads((again / "eval_record.json").read_text())["record_id"]

    assert main(["compare", "a", "b", "--use", f"a={record}"]) == EXIT_DONE
    told = capsys.readouterr().out
    assert (
        f"a: {record} (chosen); others: original (completed); parent: original" in told
    )
    assert LINEAGE in told


def test_every_pair_of_three_runs_is_judged(runs, capsys):
    written(runs / "c", protocol=protocol(rows={"n": 5}))

    status, found = payload(capsys, "a", "b", "c")

    assert status == EXIT_INCOMPATIBLE
    labels = {(p["left"], p["right"]): p["label"] for p in found["pairs"]}
    assert labels == {
        ("a", "b"): "comparable",
        ("a", "c"): "incompatible",
        ("b", "c"): "incompatible",
    }
    assert [g["members"] for g in found["groups"] if g["ranking"]] == [["a", "b"]]


def test_comparators_are_shown_and_not_ranked(runs, capsys):
    written(runs / "c", subject(), subject(correct=1, name="base", role="comparator"))

    assert main(["compare", "a", "c"]) == EXIT_DONE
    told = capsys.readouterr().out
    assert "comparators, not ranked\n  c, base: 0.2500 (1/4)" in told


def test_used_holdout_is_said(runs, capsys):
    written(runs / "c", holdout=Holdout("r" * 64, 2))

    assert main(["compare", "a", "c"]) == EXIT_DONE
    assert "its holdout was consulted 2 times before" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["a"],
        ["a", "nowhere"],
        ["a", "b", "--use", "a"],
        ["a", "b", "--use", "a=eval-000000000000"],
        ["a", "b", "--use", "c=original"],
        ["a", "./a"],
    ],
)
def test_what_cannot_be_compared_is_a_usage_error(runs, capsys, words):
    assert main(["compare", *words]) == EXIT_USAGE
    assert capsys.readouterr().out == ""


def test_unknown_label_is_a_usage_error(runs, capsys):
    with pytest.raises(SystemExit) as done:
        main(["compare", "a", "b", "--require", "equal"])

    assert done.value.code == EXIT_USAGE


def test_changed_file_of_scores_is_refused(runs, capsys):
    artifacts = {FILE: "sha256:" + "0" * 64}
    with_samples(runs / "c", verdict_lines({"row0": True}), artifacts=artifacts)

    assert main(["compare", "a", "c"]) == EXIT_SETUP
    assert "not the one that its record names" in capsys.readouterr().err
