"""Everything that a predict run does, settled before anything runs.

A plan can only be made from a config without violations: of its own rules, of what its
engines can apply, of what its contract can use. All of them are told at once. A plan is
also read back from a run's own folder, without the files that began it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.canonical import Json
from harness.config.predict import (
    PredictConfig,
    PredictReading,
    predict_config_hash,
    read_predict_config,
)
from harness.config.predict_document import (
    DecodingSection,
    EngineComparator,
    EngineSection,
    PredictEvaluation,
)
from harness.config.predict_rules import SUBJECT
from harness.config.violations import UNSOUND, Violations, seen
from harness.engines.decoding_rules import refusals_of
from harness.engines.protocol import Refusal
from harness.errors import UsageError
from harness.predict.registry import decoding_of
from harness.predictions.answers import read_labels, read_schema
from harness.predictions.digests import require_sha256
from harness.predictions.prompting import (
    Prompt,
    contract_of_labels,
    contract_of_schema,
)
from harness.predictions.questions import ACTION_IR, CLASSIFICATION, JSON_RECORDS
from harness.regular_file import read_regular_file
from harness.scoring.answers import SELECTABLE
from harness.strict_yaml import YamlPath

TASKS: Final = {
    ACTION_IR: "action-ir",
    JSON_RECORDS: "json",
    CLASSIFICATION: "classification",
}
"""The task, as the table of metrics calls it, by contract."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One party that answers all rows."""

    index: int
    name: str
    """`candidate`, or the comparator's."""
    engine: str
    section: EngineSection
    prompt: Prompt | None
    """None for an embedding baseline, which is not prompted."""
    train: Path | None
    """Training rows of an embedding baseline."""

    @property
    def role(self) -> str:
        """`candidate` or `comparator`."""
        return "candidate" if self.index == 0 else "comparator"

    @property
    def embeds(self) -> bool:
        """Tell whether it is a baseline by embeddings."""
        return self.prompt is None


@dataclass(frozen=True, slots=True)
class PredictPlan:
    """What is asked of whom, and how it is judged."""

    meaning: Mapping[str, Json]
    contract: str
    decoding: DecodingSection
    evaluation: PredictEvaluation
    metric: str
    """The primary metric."""
    subjects: tuple[Subject, ...]
    """The candidate first."""
    measure_rows: int | None
    config_folder: Path
    manifest: Path
    declaration: Path | None

    @property
    def config_hash(self) -> str:
        """The identity of the run."""
        return predict_config_hash(self.meaning)

    @property
    def prompt(self) -> Prompt:
        """The candidate's prompt."""
        prompt = self.subjects[0].prompt
        if prompt is None:
            raise AssertionError("the candidate is prompted")
        return prompt


def plan_of_file(path: Path, *, engine: str | None = None) -> PredictPlan:
    """Read a config and settle everything.

    Raises ConfigError with all violations, then SourceError (`eval_predictions_drift`)
    for a manifest that is not the declared one.
    """
    reading = read_predict_config(path, engine=engine)
    add_refusals(reading)
    _check_metric(reading.violations)
    contract = _contract_text(reading)
    _check_prompts(reading, contract)
    config = reading.config()
    declared = config.document.manifest.sha256
    if declared is not None:
        require_sha256(config.manifest, declared, by="manifest.sha256")
    return _plan(config, contract)


def add_refusals(
    reading: PredictReading, decoding: DecodingSection | None = None
) -> None:
    """Record every setting that an engine of the run cannot apply.

    `decoding` is that of another file, None for the document's own.
    """
    requested = decoding or reading.decoding
    if requested is None:
        return
    embedding = {
        each.engine for each in reading.comparators.values() if each.kind == "embedding"
    }
    generating = {reading.engine} | {
        each.engine for each in reading.comparators.values() if each.kind == "engine"
    }
    for name, section in reading.used_engines():
        if name in embedding and name not in generating:
            continue
        for refusal in refusals_of(section.kind, decoding_of(requested)):
            _refuse_setting(reading.violations, name, refusal)


def _refuse_setting(violations: Violations, name: str, refusal: Refusal) -> None:
    # One path a setting and engine: several engines may refuse one setting.
    violations.add(
        "eval_engine_setting_unsupported",
        ("decoding", refusal.setting, name),
        f"the engine {name} ({refusal.engine}) cannot apply the decoding setting "
        f"{refusal.setting}",
        expected=refusal.reason,
        actual=f"{refusal.setting}={seen(refusal.requested)}",
        recovery="change decoding, or choose an engine that applies it",
        shown=("decoding", refusal.setting),
    )


def _check_metric(violations: Violations) -> None:
    contract = violations.value("manifest", "contract")
    metric = violations.value("evaluation", "metric")
    if contract is UNSOUND or not isinstance(metric, str):
        return
    choices = SELECTABLE[TASKS[str(contract)]]
    if metric not in choices:
        violations.add(
            "eval_config_invalid",
            ("evaluation", "metric"),
            f"{metric!r} is not supported for the {contract} task",
            expected=f"choose from {', '.join(choices)}",
            actual=metric,
            recovery="name one of them, or null for the first",
        )


def _contract_text(reading: PredictReading) -> str | None:
    """Return the declaration as prompts show it; record one that cannot be used."""
    contract = reading.violations.value("manifest", "contract")
    file = reading.files.get(("manifest", "declaration"))
    if file is None or contract not in (JSON_RECORDS, CLASSIFICATION):
        return None
    try:
        if contract == CLASSIFICATION:
            return contract_of_labels(read_labels(file))
        read_schema(file)
        return contract_of_schema(read_regular_file(file))
    except UsageError as error:
        for number, violation in enumerate(error.violations):
            reading.violations.add(
                violation.code,
                ("manifest", "declaration", number),
                violation.problem,
                expected=violation.expected,
                actual=f"{violation.where}: {violation.actual}",
                recovery=violation.recovery,
                shown=("manifest", "declaration"),
            )
        return None


def _check_prompts(reading: PredictReading, contract: str | None) -> None:
    declared = reading.violations.value("manifest", "contract") != ACTION_IR
    systems: list[YamlPath] = [("prompt", "system")]
    systems += [("comparators", index, "system") for index in reading.comparators]
    user = _text(reading.files.get(("prompt", "user")))
    for path in systems:
        # An unusable declaration is told by itself, not by every prompt once more.
        shown = "" if declared and contract is None else contract
        prompt = Prompt(_text(reading.files.get(path)), user, shown)
        for name, problem, expected in prompt.problems():
            reading.violations.add(
                "eval_config_invalid",
                path if name == "system" else ("prompt", name),
                problem,
                expected=expected,
                actual="a text without it" if name == "user" else "a text with it",
                recovery="correct the text",
            )


def _text(file: Path | None) -> str | None:
    return None if file is None else read_regular_file(file).decode("utf-8")


def _plan(config: PredictConfig, contract: str | None) -> PredictPlan:
    document = config.document
    task = TASKS[document.manifest.contract]
    user = config.text("prompt", "user")
    system = config.text("prompt", "system")
    subjects = [
        Subject(
            0,
            SUBJECT,
            config.engine,
            config.engines[config.engine],
            Prompt(system, user, contract),
            None,
        )
    ]
    for index, comparator in enumerate(config.comparators):
        place = ("comparators", index)
        prompt = None
        if isinstance(comparator, EngineComparator):
            own = config.text(*place, "system")
            prompt = Prompt(system if own is None else own, user, contract)
        subjects.append(
            Subject(
                index + 1,
                comparator.name,
                comparator.engine,
                config.engines[comparator.engine],
                prompt,
                config.files.get((*place, "train")),
            )
        )
    return PredictPlan(
        meaning=config.meaning(),
        contract=document.manifest.contract,
        decoding=document.decoding,
        evaluation=document.evaluation,
        metric=document.evaluation.metric or SELECTABLE[task][0],
        subjects=tuple(subjects),
        measure_rows=None if document.measure is None else document.measure.rows,
        config_folder=config.folder,
        manifest=config.manifest,
        declaration=config.files.get(("manifest", "declaration")),
    )
