"""`eval_record.json`: what one evaluation was, so that another can be held against it.

A record is assembled from results that are settled already; nothing is computed twice
and no clock is read. It is the last file of an evaluation and never changes. A record
of a run is `original`; one that was made of a run later is `eval-` and twelve digits
of a hash over what fixes it. A parent is lineage and nothing else. A failed evaluation
has a record too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from harness.canonical import Json, content_hash
from harness.errors import FairtrialError
from harness.evaluations.numbers import plain_numbers
from harness.evaluations.protocol import Protocol
from harness.evaluations.rescoring import Obstacle
from harness.evidence.artifacts import write_json_artifact
from harness.scoring.answers import SELECTABLE, primary_metric

RECORD_FILE: Final = "eval_record.json"
RECORD_VERSION: Final = "1"
ORIGINAL: Final = "original"
LINEAGE: Final = (
    "The parent says which evaluation came before this one and nothing more: no score, "
    "weight or answer was taken from it unless a field of this record says so."
)
"""Printed wherever a parent is shown."""
HOLDOUT: Final = (
    "Completed evaluations beside this one that consulted the same rows before it; "
    "those that were moved or deleted cannot be counted."
)
Kind = Literal["executable", "predict", "score", "rescore", "mlperf-agentic"]
Role = Literal["candidate", "comparator"]


@dataclass(frozen=True, slots=True)
class MetricValue:
    """One figure of a subject; the parts of a rate stand beside it where it has any."""

    value: float | int | None
    """None: not scored."""
    numerator: int | None = None
    denominator: int | None = None
    reason: str | None = None
    """Why there is no value."""

    def as_payload(self) -> dict[str, Json]:
        """Return the form in a record."""
        payload: dict[str, Json] = {"value": self.value}
        if self.numerator is not None and self.denominator is not None:
            payload |= {"numerator": self.numerator, "denominator": self.denominator}
        if self.reason is not None:
            payload["reason"] = self.reason
        return payload


@dataclass(frozen=True, slots=True)
class Subject:
    """One party that answered all rows."""

    name: str
    role: Role
    model: Mapping[str, Json]
    """What is known of the model: identity, served name, hashes of its files."""
    metrics: Mapping[str, MetricValue]
    conditions: Mapping[str, Json] = field(default_factory=dict)
    """`ConditionCounts.result()`; empty where nothing is known."""
    requested: Mapping[str, Json] | None = None
    """Decoding as requested; None where nobody knows."""
    applied: Mapping[str, Json] | None = None
    """Decoding as applied, `unknown` where the engine cannot tell."""
    measurements: Sequence[Mapping[str, Json]] = ()
    """Figures of an engine with `name value unit boundary`."""
    counts: Mapping[str, Json] = field(default_factory=dict)
    """Integer counts that stand beside the metrics."""
    samples: str | None = None
    """The file of scores row by row, in the record's folder."""
    protocol: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    """Groups of protocol fields that are this subject's own."""
    withheld: str | None = None
    """Why the primary metric is no headline, though it has a value."""

    def as_payload(self) -> dict[str, Json]:
        """Return the form in a record."""
        return {
            "name": self.name,
            "role": self.role,
            "model": dict(self.model),
            "metrics": {n: m.as_payload() for n, m in self.metrics.items()},
            "counts": dict(self.counts),
            "conditions": dict(self.conditions),
            "decoding": {
                "requested": None if self.requested is None else dict(self.requested),
                "applied": None if self.applied is None else dict(self.applied),
            },
            "measurements": [dict(each) for each in self.measurements],
            "samples": self.samples,
            "protocol": {n: plain_numbers(dict(g)) for n, g in self.protocol.items()},
            "withheld": self.withheld,
        }


@dataclass(frozen=True, slots=True)
class Parent:
    """The evaluation that came before; hashes name it, not its place."""

    record_id: str
    record_hash: str | None
    """Content hash of its `eval_record.json`; None where it has none."""
    facts: Mapping[str, Json] = field(default_factory=dict)
    """What else fixes it: manifest, evidence root, config."""

    def as_payload(self) -> dict[str, Json]:
        """Return the form in a record, with the sentence on lineage."""
        return {
            **self.facts,
            "record_id": self.record_id,
            "record_hash": self.record_hash,
            "statement": LINEAGE,
        }


@dataclass(frozen=True, slots=True)
class Holdout:
    """Rows that were kept back, and how often they were looked at before."""

    rows_sha256: str
    uses_before: int

    def as_payload(self) -> dict[str, Json]:
        """Return the form in a record."""
        return {
            "rows_sha256": self.rows_sha256,
            "uses_before": self.uses_before,
            "statement": HOLDOUT,
        }


@dataclass(frozen=True, slots=True)
class RecordInputs:
    """All that a record is assembled from."""

    kind: Kind
    task: str
    """Row of the table of metrics: `json`, `classification`, `action-ir`, ..."""
    protocol: Protocol
    scorer: Mapping[str, Json]
    """Versions of everything that made the scores; `metric_version` among them."""
    subjects: Sequence[Subject]
    artifacts: Mapping[str, str]
    """Content hash of every file that the record is about, by its name."""
    metric: str | None = None
    """The primary metric; None: the first of the contract's list."""
    obstacles: Sequence[Obstacle] = ()
    """Why the scores could not be made again from what is kept; () = they could."""
    parent: Parent | None = None
    identity: Json = None
    """What fixes the id of a later record; None: all that the record holds."""
    holdout: Holdout | None = None
    failure: FairtrialError | None = None
    details: Mapping[str, Json] = field(default_factory=dict)
    """Members of this kind of record alone."""


def build_record(inputs: RecordInputs) -> dict[str, Json]:
    """Return the payload of `eval_record.json`.

    Raises UsageError for a primary metric that the contract does not have.
    """
    metric = primary_metric(inputs.task, inputs.metric)
    payload: dict[str, Json] = {
        **inputs.details,
        "record_version": RECORD_VERSION,
        "kind": inputs.kind,
        "status": "completed" if inputs.failure is None else "failed",
        "error": None if inputs.failure is None else inputs.failure.as_report(),
        "parent": None if inputs.parent is None else inputs.parent.as_payload(),
        "protocol": inputs.protocol.as_payload(),
        "primary_metric": {
            "name": metric,
            "version": inputs.scorer["metric_version"],
            "choices": list(SELECTABLE[inputs.task]),
        },
        "scorer": dict(inputs.scorer),
        "subjects": [each.as_payload() for each in inputs.subjects],
        "rescorable": {
            "rescorable": not inputs.obstacles,
            "reasons": [each.as_payload() for each in inputs.obstacles],
        },
        "holdout": None if inputs.holdout is None else inputs.holdout.as_payload(),
        "artifacts": dict(inputs.artifacts),
    }
    return {**payload, "record_id": _record_id(inputs, payload)}


def later_id(basis: Json) -> str:
    """Return the id of a record that follows another one."""
    return f"eval-{content_hash(basis).removeprefix('sha256:')[:12]}"


def is_of_another_version(payload: Json) -> bool:
    """Tell whether a record has a form that this version does not write.

    Its hash can be checked and it cannot be built again; `compare` refuses it.
    """
    stated = payload.get("record_version") if isinstance(payload, dict) else None
    return isinstance(stated, str) and stated != RECORD_VERSION


def write_record(folder: Path, record: Mapping[str, Json]) -> str:
    """Write the record, after everything that it names; return its content hash.

    Raises ArtifactError where the folder keeps another record.
    """
    return write_json_artifact(folder / RECORD_FILE, dict(record))


def _record_id(inputs: RecordInputs, payload: Mapping[str, Json]) -> str:
    if inputs.parent is None:
        return ORIGINAL
    return later_id(payload if inputs.identity is None else inputs.identity)
