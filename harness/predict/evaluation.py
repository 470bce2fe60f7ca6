"""The plan of a later evaluation: a run's frozen rows, asked of another engine.

Rows, prompt, contract, decoding and metric are the run's own, read from its folder and
checked against the hashes that its config states. Only the engine is another one. The
run is read and nothing of it is written.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.canonical import hash_file, json_equal
from harness.config.predict import (
    PredictReading,
    engine_meaning,
    predict_config_hash,
    read_predict_config,
)
from harness.config.predict_document import DecodingSection
from harness.config.predict_rules import SUBJECT
from harness.config.violations import seen
from harness.errors import UsageError
from harness.evidence.artifacts import read_json_artifact
from harness.predict.folder import PredictFolder
from harness.predict.frozen import plan_of_folder
from harness.predict.plan import PredictPlan, Subject, add_refusals


def plan_of_evaluation(
    path: Path, run: Path, *, engine: str, output: Path
) -> PredictPlan:
    """Settle an evaluation of `run` by an engine of the config at `path`.

    Raises ArtifactError where the run is not finished or not whole, UsageError for an
    output inside it, ConfigError for a decoding that is not the run's or cannot be
    applied.
    """
    _require_outside(run, output)
    folder = PredictFolder(run)
    frozen = plan_of_folder(folder)
    reading = read_predict_config(path, engine=engine, files=False)
    # The run's own baselines stand in the run's own record.
    reading.comparators.clear()
    _require_same_decoding(reading, frozen.decoding)
    add_refusals(reading, frozen.decoding)
    config = reading.config()
    section = config.engines[config.engine]
    measure = config.document.measure
    return replace(
        frozen,
        meaning={
            **frozen.meaning,
            "engine": {config.engine: engine_meaning(section)},
            "comparators": [],
            "measure": None if measure is None else measure.model_dump(mode="json"),
            "parent": {
                "predict_config_hash": predict_config_hash(frozen.meaning),
                "record_hash": hash_file(folder.record),
                "record_id": read_json_artifact(folder.record)["record_id"],
            },
        },
        subjects=(Subject(0, SUBJECT, config.engine, section, frozen.prompt, None),),
        measure_rows=None if measure is None else measure.rows,
        config_folder=config.folder,
    )


def _require_outside(run: Path, output: Path) -> None:
    inside = output.resolve()
    if run.resolve() in (inside, *inside.parents):
        raise UsageError(
            "eval_cli_invalid",
            "--output lies in the run that is evaluated, which is never changed",
            where=str(output),
            expected=f"a folder beside {run.name}",
            recovery="name another folder",
        )


def _require_same_decoding(reading: PredictReading, decoding: DecodingSection) -> None:
    if reading.decoding is None:
        return
    own = reading.decoding.model_dump(mode="json")
    for setting, value in decoding.model_dump(mode="json").items():
        if not json_equal(own[setting], value):
            reading.violations.add(
                "eval_config_invalid",
                ("decoding", setting),
                "an evaluation of a run keeps the run's decoding",
                expected=f"{setting}: {seen(value)}",
                actual=seen(own[setting]),
                recovery="write the run's value, or start a run of its own",
            )
