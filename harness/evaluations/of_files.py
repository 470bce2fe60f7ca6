"""Records of `fairtrial score`: what recorded files say of themselves, and no more.

Rows and contract are known by their bytes. What the model was shown and how its text
was drawn is known only where a receipt lies beside the predictions; else prompts,
decoding and conditions are unknown, and the record can never be `comparable`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final

from harness.canonical import Json, hash_file
from harness.engines.protocol import Decoding
from harness.evaluations.conditions import UNKNOWN, ConditionCounts
from harness.evaluations.contracts import (
    TASK_OF_CONTRACT,
    answer_metrics,
    contract_fields,
    metric_fields,
    mlperf_metrics,
    scorer_versions,
)
from harness.evaluations.protocol import Protocol
from harness.evaluations.record import (
    RecordInputs,
    Subject,
    build_record,
    write_record,
)
from harness.evaluations.rescoring import Obstacle
from harness.evaluations.rows import RowsDigest
from harness.predictions.action_ir import SAMPLE_SCORES, ScoredFiles
from harness.predictions.answers import ScoredAnswers
from harness.predictions.mlperf_agentic import SCORES, ScoredRun
from harness.predictions.receipts import (
    EngineReceipt,
    GenerationReceipt,
    NativeChatReceipt,
    Receipt,
    read_receipt,
)
from harness.scoring.answers import primary_metric

SINGLE_TURN: Final[Mapping[str, Json]] = {"kind": "single_turn"}
"""Scope of an evaluation of separate rows, wherever its answers come from."""
TEACHER_FORCED: Final[Mapping[str, Json]] = {"kind": "teacher_forced"}
"""Scope of an evaluation of turns after recorded histories."""
UNSTATED: Final[Mapping[str, Json]] = {"stated": UNKNOWN}
"""A group of protocol fields of which nothing is known."""
NOT_KEPT: Final = "the scored files are named by their hashes and lie elsewhere"
SUBJECT: Final = "candidate"


@dataclass(frozen=True, slots=True)
class _Scored:
    """What the three kinds of scoring have in common, once it is done."""

    subject: Subject
    metric: str
    declaration: str | None
    decoding: Mapping[str, Json]
    plan: Mapping[str, Json]
    scope: Mapping[str, Json] = field(default_factory=lambda: SINGLE_TURN)
    other: Mapping[str, Json] = field(default_factory=dict)


class _FileRecorder:
    """Watches one scoring of files and adds its record to the output folder."""

    contract: str
    files: Mapping[str, Path]
    """Scored files by what they are."""
    knows_inputs: bool = False

    def __init__(self) -> None:
        self._digest = RowsDigest(inputs=self.knows_inputs)

    def take(self, row_id: Json, gold: Json, asked: Json = None) -> None:
        """See the next row."""
        self._digest.add(row_id, gold, asked)

    def _rows(self) -> dict[str, Json]:
        return self._digest.as_fields()

    def _write(self, folder: Path, found: _Scored) -> None:
        inputs: dict[str, Json] = {
            name: {"file": path.name, "content_hash": hash_file(path)}
            for name, path in self.files.items()
        }
        record = build_record(
            RecordInputs(
                kind="score",
                task=TASK_OF_CONTRACT[self.contract],
                metric=found.metric,
                protocol=Protocol(
                    rows=self._rows(),
                    prompts=UNSTATED,
                    decoding=found.decoding,
                    metric=metric_fields(self.contract, found.metric),
                    contract=contract_fields(self.contract, found.declaration),
                    plan=found.plan,
                    scope=found.scope,
                    other=found.other,
                ),
                scorer=scorer_versions(self.contract),
                subjects=[found.subject],
                artifacts={
                    path.name: hash_file(path) for path in sorted(folder.iterdir())
                },
                obstacles=[Obstacle("raw_output_missing", NOT_KEPT)],
                details={"inputs": inputs},
            )
        )
        write_record(folder, record)


class AnswersRecorder(_FileRecorder):
    """For JSON records and classification."""

    def __init__(self, contract: str, declaration: Path, rows: Path) -> None:
        """Watch a scoring by one of the two contracts."""
        self.contract = contract
        self.files = {"declaration": declaration, "rows": rows}
        super().__init__()

    def finish(self, folder: Path, scored: ScoredAnswers) -> None:
        """Add the record."""
        subject = Subject(
            SUBJECT,
            "candidate",
            {},
            **answer_metrics(self.contract, scored.aggregate),
            samples=SAMPLE_SCORES,
        )
        self._write(
            folder,
            _Scored(
                subject,
                scored.aggregate["primary"]["metric"],
                f"sha256:{scored.declaration_sha256}",
                UNSTATED,
                {},
            ),
        )


class ActionIrRecorder(_FileRecorder):
    """For Action IR; a receipt beside the predictions says more of the model."""

    contract = "action-ir"
    knows_inputs = True

    def __init__(
        self, manifest: Path, predictions: Path, metric: str | None = None
    ) -> None:
        """Watch a scoring; raise UsageError for a metric that there is not."""
        self.metric = primary_metric("action-ir", metric)
        self.files = {"manifest": manifest, "predictions": predictions}
        super().__init__()

    def finish(self, folder: Path, scored: ScoredFiles) -> None:
        """Add the record."""
        told = _Told()
        if scored.receipt is not None:
            told = _told_by(read_receipt(scored.receipt), self._digest.count)
            self.files = {**self.files, "receipt": scored.receipt}
        subject = Subject(
            SUBJECT,
            "candidate",
            told.model,
            conditions=told.conditions,
            requested=told.requested,
            applied=told.applied,
            **answer_metrics(self.contract, scored.aggregate),
            samples=SAMPLE_SCORES,
        )
        decoding = UNSTATED if told.requested is None else told.requested
        self._write(folder, _Scored(subject, self.metric, None, decoding, {}))


class MlperfRecorder(_FileRecorder):
    """For a finished MLPerf-agentic run."""

    contract = "mlperf-agentic"

    def __init__(self, dataset: Path, events: Path, metric: str | None = None) -> None:
        """Watch a scoring; raise UsageError for a metric that there is not."""
        self.metric = primary_metric("mlperf-agentic", metric)
        self.files = {"dataset": dataset, "events": events}
        super().__init__()

    def finish(self, folder: Path, scored: ScoredRun) -> None:
        """Add the record."""
        subject = Subject(
            SUBJECT,
            "candidate",
            {},
            **mlperf_metrics(scored.head, scored.diagnostics),
            samples=SCORES,
            withheld=self._withheld(scored),
        )
        plan = {"repeats": scored.n_repeats}
        self._write(
            folder,
            _Scored(
                subject, self.metric, None, UNSTATED, plan, TEACHER_FORCED, UNSTATED
            ),
        )

    def _withheld(self, scored: ScoredRun) -> str | None:
        """Return why there is no headline, which is of the whole score alone."""
        refused = scored.diagnostics["headline"]["refused"]
        return str(refused[0]) if refused and self.metric == "score" else None

    def _rows(self) -> dict[str, Json]:
        return recorded_rows(self._digest, hash_file(self.files["dataset"]))


def recorded_rows(digest: RowsDigest, dataset_hash: str) -> dict[str, Json]:
    """Return the `rows` group of recorded conversations, which are asked whole."""
    inputs = dataset_hash.removeprefix("sha256:")
    return {**digest.as_fields(), "inputs_sha256": inputs}


@dataclass(frozen=True, slots=True)
class _Told:
    """What a receipt says; nothing without one."""

    model: Mapping[str, Json] = field(default_factory=dict)
    conditions: Mapping[str, Json] = field(default_factory=dict)
    requested: Mapping[str, Json] | None = None
    applied: Mapping[str, Json] | None = None


def _told_by(receipt: Receipt, rows: int) -> _Told:
    if isinstance(receipt, NativeChatReceipt):
        return _Told()
    counts = ConditionCounts()
    if isinstance(receipt, EngineReceipt):
        counts.add({"engine": receipt.engine}, rows)
        return _Told(
            receipt.model,
            counts.result(),
            receipt.decoding_requested,
            receipt.decoding_applied,
        )
    counts.add(_conditions_of(receipt), rows)
    requested = {
        **{each.name: UNKNOWN for each in fields(Decoding)},
        "greedy": True,
        "max_tokens": receipt.max_new_tokens,
    }
    model = {
        "checkpoint": receipt.checkpoint_dir,
        "checkpoint_sha256": dict(receipt.checkpoint_sha256),
    }
    return _Told(model, counts.result(), requested, None)


def _conditions_of(receipt: GenerationReceipt) -> dict[str, Json]:
    found: dict[str, Json] = {
        "device": receipt.device,
        "weight_dtype": receipt.dtype,
        "batch_size": receipt.batch_size,
    }
    if receipt.quantization is not None:
        found |= {
            "quantization": receipt.quantization.checkpoint_format,
            "qengine": receipt.quantization.qengine,
            "runtime": dict(receipt.quantization.runtime),
        }
    return found
