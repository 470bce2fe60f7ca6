"""The plan of a later evaluation: a run's frozen rows, asked of another engine.

Rows, prompt, contract, decoding and metric are the run's own, read from its folder and
checked against the hashes that its config states. Only the engine is another one. The
run is read and nothing of it is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.canonical import Json, hash_bytes, hash_file, json_equal
from harness.config.predict import (
    PredictReading,
    engine_meaning,
    predict_config_hash,
    read_predict_config,
)
from harness.config.predict_document import DecodingSection, PredictEvaluation
from harness.config.predict_rules import SUBJECT
from harness.config.violations import seen
from harness.errors import ArtifactError, UsageError
from harness.evidence.artifacts import read_json_artifact
from harness.predict.folder import (
    CONFIG_FILE,
    DECLARATION_FILE,
    MANIFEST_FILE,
    PROMPT_FILE,
    PredictFolder,
    PredictState,
)
from harness.predict.plan import TASKS, PredictPlan, Subject, add_refusals
from harness.predictions.prompting import Prompt
from harness.scoring.answers import SELECTABLE


@dataclass(frozen=True, slots=True)
class _FrozenRun:
    """What a finished run keeps of what it was asked with."""

    meaning: dict[str, Json]
    contract: str
    decoding: DecodingSection
    evaluation: PredictEvaluation
    prompt: Prompt


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
    frozen = _frozen(folder)
    reading = read_predict_config(path, engine=engine, files=False)
    reading.comparators.clear()
    _require_same_decoding(reading, frozen.decoding)
    add_refusals(reading, frozen.decoding)
    config = reading.config()
    section = config.engines[config.engine]
    meaning = {
        **frozen.meaning,
        "engine": {config.engine: engine_meaning(section)},
        "comparators": [],
        "measure": _measure(reading),
        "parent": {
            "config_hash": predict_config_hash(frozen.meaning),
            "record_hash": hash_file(folder.record),
        },
    }
    declaration = folder.file(DECLARATION_FILE)
    evaluation, measure = frozen.evaluation, config.document.measure
    return PredictPlan(
        meaning=meaning,
        contract=frozen.contract,
        decoding=frozen.decoding,
        evaluation=evaluation,
        metric=evaluation.metric or SELECTABLE[TASKS[frozen.contract]][0],
        subjects=(Subject(0, SUBJECT, config.engine, section, frozen.prompt, None),),
        measure_rows=None if measure is None else measure.rows,
        config_folder=config.folder,
        manifest=folder.file(MANIFEST_FILE),
        declaration=declaration if declaration.exists() else None,
        parent=run,
    )


def _measure(reading: PredictReading) -> Json:
    value: Json = reading.violations.raw.get("measure")
    return value


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


def _frozen(folder: PredictFolder) -> _FrozenRun:
    """Read a finished run's own copies; raise ArtifactError."""
    state = folder.state()
    if state is not PredictState.FINISHED:
        unfinished = state in (PredictState.UNFINISHED, PredictState.FAILED)
        raise ArtifactError(
            "eval_run_unfinished" if unfinished else "eval_artifact_invalid",
            "only a finished predict run can be evaluated again",
            where=folder.path.name,
            expected="a folder with a record of a completed evaluation",
            actual=state.value,
            recovery="finish it with --resume, or name another folder",
        )
    meaning = folder.resolved()["semantic_payload"]
    _require_own(folder, meaning)
    prompts = read_json_artifact(folder.file(PROMPT_FILE))
    try:
        prompt = Prompt.from_record(prompts["subjects"][SUBJECT])
        return _FrozenRun(
            meaning,
            meaning["manifest"]["contract"],
            DecodingSection.model_validate(meaning["decoding"]),
            PredictEvaluation.model_validate(meaning["evaluation"]),
            prompt,
        )
    except (LookupError, TypeError, ValueError) as error:
        raise _not_whole(PROMPT_FILE, "texts with their hashes", str(error)) from None


def _require_own(folder: PredictFolder, meaning: Json) -> None:
    """Compare the copies in a folder with the hashes that its config states."""
    if folder.resolved()["predict_config_hash"] != predict_config_hash(meaning):
        raise _not_whole(CONFIG_FILE, "a hash that follows", "another one")
    manifest = meaning["manifest"]
    for name, key in (
        (MANIFEST_FILE, "content_hash"),
        (DECLARATION_FILE, "declaration"),
    ):
        file, stated = folder.file(name), manifest[key]
        found = hash_file(file) if file.exists() else None
        if found != stated:
            raise _not_whole(name, str(stated), str(found))
    prompts = read_json_artifact(folder.file(PROMPT_FILE))
    for key in ("system", "user"):
        entry = prompts["subjects"][SUBJECT][key]
        text = None if entry is None else hash_bytes(entry["text"].encode("utf-8"))
        if text != meaning["prompt"][key]:
            raise _not_whole(PROMPT_FILE, str(meaning["prompt"][key]), str(text))


def _not_whole(name: str, expected: str, actual: str) -> ArtifactError:
    return ArtifactError(
        "eval_artifact_invalid",
        "the run does not keep what it was asked with",
        where=name,
        expected=expected,
        actual=actual,
        recovery="bring back an intact copy of the run folder",
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
