"""The plan of a run, read back from its own folder and checked against its config.

The folder keeps what it was asked with, and its config states the hash of each part, so
a run is worked out again, or evaluated again, without any of the files that began it.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError

from harness.canonical import Json, hash_bytes, hash_file
from harness.config.predict import engine_of_meaning, predict_config_hash
from harness.config.predict_document import (
    DecodingSection,
    EngineSection,
    PredictEvaluation,
)
from harness.config.predict_rules import SUBJECT
from harness.errors import ArtifactError
from harness.evidence.artifacts import read_json_artifact
from harness.predict.folder import (
    CONFIG_FILE,
    DECLARATION_FILE,
    MANIFEST_FILE,
    PROMPT_FILE,
    PredictFolder,
    PredictState,
)
from harness.predict.plan import TASKS, PredictPlan, Subject
from harness.predictions.prompting import Prompt
from harness.scoring.answers import SELECTABLE


def plan_of_folder(folder: PredictFolder) -> PredictPlan:
    """Return the plan of a finished run; raise ArtifactError for any other folder."""
    _require_finished(folder)
    resolved = folder.resolved()
    meaning = resolved["semantic_payload"]
    try:
        if resolved["predict_config_hash"] != predict_config_hash(meaning):
            raise not_whole(CONFIG_FILE, "a hash that follows", "another one")
        _require_files(folder, meaning)
        return _plan(folder, meaning)
    except (LookupError, TypeError, AttributeError, ValidationError) as error:
        raise not_whole(
            CONFIG_FILE, "a complete meaning", f"{type(error).__name__}: {error}"
        ) from None


def _require_finished(folder: PredictFolder) -> None:
    state = folder.state()
    if state is PredictState.FINISHED:
        return
    unfinished = state in (PredictState.UNFINISHED, PredictState.FAILED)
    raise ArtifactError(
        "eval_run_unfinished" if unfinished else "eval_artifact_invalid",
        "there is no finished predict run in this folder",
        where=folder.path.name,
        expected="a folder with a record of a completed evaluation",
        actual=state.value,
        recovery="finish it with `fairtrial predict ... --resume`, or name another",
    )


def _require_files(folder: PredictFolder, meaning: Mapping[str, Json]) -> None:
    """Compare the copies in a folder with the hashes that its config states."""
    manifest = meaning["manifest"]
    stated = {
        MANIFEST_FILE: manifest["content_hash"],
        DECLARATION_FILE: manifest["declaration"],
    }
    for comparator in meaning["comparators"]:
        if comparator["kind"] == "embedding":
            name = folder.train(comparator["name"]).name
            stated[name] = comparator["train"]
    for name, content_hash in stated.items():
        file = folder.file(name)
        found = hash_file(file) if file.exists() else None
        if found != content_hash:
            raise not_whole(name, str(content_hash), str(found))


def _plan(folder: PredictFolder, meaning: dict[str, Json]) -> PredictPlan:
    contract = meaning["manifest"]["contract"]
    evaluation = PredictEvaluation.model_validate(meaning["evaluation"])
    prompts = read_json_artifact(folder.file(PROMPT_FILE))["subjects"]
    own = meaning["prompt"]
    subjects = [
        Subject(
            0,
            SUBJECT,
            *_engine(meaning["engine"]),
            _prompt(prompts, SUBJECT, own),
            None,
        )
    ]
    for index, comparator in enumerate(meaning["comparators"], 1):
        name = comparator["name"]
        train, prompt = folder.train(name), None
        if comparator["kind"] == "engine":
            system = comparator["system"] or own["system"]
            prompt = _prompt(prompts, name, {**own, "system": system})
        engine, section = _engine(comparator["engine"])
        kept = train if train.exists() else None
        subjects.append(Subject(index, name, engine, section, prompt, kept))
    declaration = folder.file(DECLARATION_FILE)
    measure = meaning["measure"]
    return PredictPlan(
        meaning=meaning,
        contract=contract,
        decoding=DecodingSection.model_validate(meaning["decoding"]),
        evaluation=evaluation,
        metric=evaluation.metric or SELECTABLE[TASKS[contract]][0],
        subjects=tuple(subjects),
        measure_rows=None if measure is None else measure["rows"],
        config_folder=folder.path,
        manifest=folder.file(MANIFEST_FILE),
        declaration=declaration if declaration.exists() else None,
    )


def _engine(stated: Mapping[str, Json]) -> tuple[str, EngineSection]:
    ((name, section),) = stated.items()
    return name, engine_of_meaning(section)


def _prompt(
    prompts: Mapping[str, Json], name: str, hashes: Mapping[str, Json]
) -> Prompt:
    """Return the prompt of a subject, whose texts have these content hashes."""
    try:
        prompt = Prompt.from_record(prompts[name])
    except (LookupError, TypeError, ValueError) as error:
        raise not_whole(PROMPT_FILE, "texts with their hashes", str(error)) from None
    for key, text in (("system", prompt.system), ("user", prompt.user)):
        found = None if text is None else hash_bytes(text.encode("utf-8"))
        if found != hashes[key]:
            raise not_whole(PROMPT_FILE, str(hashes[key]), str(found))
    return prompt


def not_whole(name: str, expected: str, actual: str) -> ArtifactError:
    """Return the refusal of a run that does not keep what it was asked with."""
    return ArtifactError(
        "eval_artifact_invalid",
        "the run does not keep what it was asked with",
        where=name,
        expected=expected,
        actual=actual,
        recovery="bring back an intact copy of the run folder",
    )
