"""Small evaluations, written as records into folders of their own."""

import json
from dataclasses import replace

from harness.canonical import hash_bytes, hash_file
from harness.evaluations.conditions import ConditionCounts
from harness.evaluations.contracts import (
    contract_fields,
    metric_fields,
    scorer_versions,
)
from harness.evaluations.entry import candidates_of
from harness.evaluations.protocol import Protocol
from harness.evaluations.record import (
    MetricValue,
    Parent,
    RecordInputs,
    Subject,
    build_record,
    write_record,
)
from harness.evaluations.stored import read_stored

DECODING = {"greedy": True, "max_tokens": 16, "temperature": 0.0}
RUNTIME = {
    "engine": "torch_local",
    "device": "cpu",
    "compute_dtype": "float32",
    "versions": {"torch": "2.6.0", "python": "3.11.7"},
}


def protocol(**groups):
    fields = {
        "rows": {"sha256": "r" * 64, "ids_sha256": "i" * 64, "n": 4},
        "prompts": {"system_message_sha256": None, "user_sha256": "u" * 64},
        "decoding": DECODING,
        "metric": metric_fields("classification", "accuracy"),
        "contract": contract_fields("classification", "sha256:" + "d" * 64),
        "scope": {"kind": "single_turn"},
    }
    return Protocol(**{**fields, **groups})


def conditions(rows=4, **changes):
    counts = ConditionCounts()
    counts.add({**RUNTIME, "model_identity": "m", **changes}, rows)
    return counts.result()


def subject(correct=3, rows=4, *, name="candidate", role="candidate", **changes):
    value = None if correct is None else correct / rows
    given = {
        "model": {"model_identity": "m"},
        "metrics": {"accuracy": MetricValue(value, correct, rows)},
        "conditions": conditions(),
        "requested": DECODING,
        "applied": DECODING,
    }
    return Subject(name, role, **{**given, **changes})


def inputs(*subjects, **changes):
    given = {
        "kind": "predict",
        "task": "classification",
        "protocol": protocol(),
        "scorer": scorer_versions("classification"),
        "subjects": subjects or (subject(),),
        "artifacts": {},
    }
    return RecordInputs(**{**given, **changes})


def written(folder, *subjects, **changes):
    """Write a record into a new folder and return the folder."""
    folder.mkdir(parents=True)
    write_record(folder, build_record(inputs(*subjects, **changes)))
    return folder


def later(folder, run, *subjects, **changes):
    """Write a record that was made of a run later."""
    own = read_stored(run)
    parent = Parent(own.record_id, hash_file(run / "eval_record.json"))
    return written(folder, *subjects, parent=parent, **changes)


def verdict_lines(verdicts):
    """Return one classification score a row, by row id, as text."""
    return "".join(
        json.dumps({"id": name, "correct": right}) + "\n"
        for name, right in verdicts.items()
    )


def with_samples(folder, text, name="sample_scores.jsonl", **changes):
    """Write a record whose candidate names a file of scores, and the file."""
    given = {"artifacts": {name: hash_bytes(text.encode())}, **changes}
    candidate = given.pop("candidate", {})
    written(folder, subject(samples=name, **candidate), **given)
    (folder / name).write_text(text)
    return folder


def entry(folder, name=None):
    """Return the one candidate of the record in a folder."""
    (found,) = candidates_of(name or folder.name, read_stored(folder))
    return found


def of_protocol(changed, **groups):
    """Return a protocol with some groups replaced."""
    return replace(changed, **groups)
