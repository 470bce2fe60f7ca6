"""The folder of a predict run: absent, empty, unfinished, failed or finished.

It is finished when its record says that the evaluation was completed, which is written
last. A failed evaluation leaves a record too; going on puts that record aside under a
number, and it stays. A folder belongs to one config. What it was asked with is copied
into it before the first row is asked, so everything after that needs nothing else.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final

from harness.canonical import Json, hash_file
from harness.errors import ArtifactError, SourceError
from harness.evidence.artifacts import (
    read_json_artifact,
    write_json_artifact,
    write_once,
)
from harness.evidence.candidate_log import CANDIDATE_LOG
from harness.evidence.disk import machine_refusals
from harness.evidence.generation_log import GENERATION_LOG
from harness.evidence.lock import LOCK_FILE, RunLock, require_unlocked
from harness.regular_file import open_regular_file

CONFIG_FILE: Final = "resolved_predict_config.json"
PROMPT_FILE: Final = "prompt.json"
MANIFEST_FILE: Final = "manifest.jsonl"
DECLARATION_FILE: Final = "declaration.json"
RECORD_FILE: Final = "eval_record.json"
SCORES_FOLDER: Final = "scores"
_READ_SIZE: Final = 1 << 20
_OWN: Final = re.compile(
    "|".join(
        [
            *map(re.escape, (CONFIG_FILE, PROMPT_FILE, MANIFEST_FILE)),
            *map(re.escape, (DECLARATION_FILE, RECORD_FILE, SCORES_FOLDER)),
            *map(re.escape, (GENERATION_LOG.file_name, CANDIDATE_LOG.file_name)),
            r"train\..+\.jsonl",
            r"predictions(\..+)?\.jsonl(\.manifest\.json)?",
            r"server-.+\.log",
            r"eval_record\.failed-[0-9]+\.json",
        ]
    )
)
_SCAFFOLD: Final = re.compile(re.escape(LOCK_FILE) + r"|\..+\.tmp|.+\.torn-[0-9]+")


class PredictState(StrEnum):
    """What a run finds at its output folder."""

    ABSENT = "absent"
    EMPTY = "empty"
    UNFINISHED = "unfinished"
    FAILED = "failed"
    FINISHED = "finished"


class PredictFolder:
    """The output folder of one predict run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def file(self, name: str) -> Path:
        """Return the path of a file of the folder."""
        return self.path / name

    @property
    def record(self) -> Path:
        """The evaluation record, written last."""
        return self.path / RECORD_FILE

    def predictions(self, subject: str) -> Path:
        """Return where the predictions of a subject lie."""
        middle = "" if subject == "candidate" else f".{subject}"
        return self.path / f"predictions{middle}.jsonl"

    def scores(self, subject: str) -> Path:
        """Return the folder of a subject's scores."""
        return self.path / SCORES_FOLDER / subject

    def train(self, subject: str) -> Path:
        """Return where the training rows of a comparator are kept."""
        return self.path / f"train.{subject}.jsonl"

    def state(self) -> PredictState:
        """Look at the folder.

        Raises ArtifactError (`eval_cli_artifact_conflict`) for files of somebody else.
        """
        with machine_refusals("look at the output folder", self.path):
            if not self.path.exists():
                return PredictState.ABSENT
            names = {entry.name for entry in self.path.iterdir()}
        foreign = sorted(
            n for n in names if not _OWN.fullmatch(n) and not _SCAFFOLD.fullmatch(n)
        )
        if foreign:
            raise ArtifactError(
                "eval_cli_artifact_conflict",
                "the output folder holds files that no predict run wrote",
                where=str(self.path),
                expected="a folder that is absent, empty or a predict run's own",
                actual=", ".join(foreign[:5]),
                recovery="choose another output folder",
            )
        if RECORD_FILE in names:
            record = read_json_artifact(self.record)
            status = record.get("status") if isinstance(record, dict) else None
            failed = status != "completed"
            return PredictState.FAILED if failed else PredictState.FINISHED
        if CONFIG_FILE in names:
            return PredictState.UNFINISHED
        return PredictState.EMPTY

    def enter(self, config_hash: str, *, resume: bool) -> PredictState:
        """Decide whether a run with this config may use the folder as it stands.

        Raises ArtifactError: `eval_cli_artifact_conflict` where it belongs to another
        config, `eval_run_unfinished` for one that is not finished, without `resume`.
        Raises EvidenceError (`eval_run_in_use`) while another process goes on with it.
        """
        state = self.state()
        if state in (PredictState.ABSENT, PredictState.EMPTY):
            return state
        recorded = self.resolved()["predict_config_hash"]
        if recorded != config_hash:
            raise ArtifactError(
                "eval_cli_artifact_conflict",
                "the output folder holds a run of another config",
                where=CONFIG_FILE,
                expected=config_hash,
                actual=str(recorded),
                recovery="choose a new output folder for the changed config",
            )
        if state is not PredictState.FINISHED and not resume:
            require_unlocked(self.path)
            raise ArtifactError(
                "eval_run_unfinished",
                f"the output folder holds an {state} run"
                if state is PredictState.UNFINISHED
                else "the output folder holds a failed evaluation",
                where=str(self.path),
                expected="a finished run, or no run",
                recovery="the same command with --resume reuses what is complete",
            )
        return state

    def resolved(self) -> dict[str, Json]:
        """Return the config that the folder belongs to; raise ArtifactError."""
        payload = read_json_artifact(self.file(CONFIG_FILE))
        if (
            not isinstance(payload, dict)
            or not {
                "predict_config_hash",
                "semantic_payload",
            }
            <= payload.keys()
        ):
            raise ArtifactError(
                "eval_artifact_invalid",
                "the resolved config is none",
                where=CONFIG_FILE,
                expected="predict_config_hash and semantic_payload",
                recovery="bring back an intact copy of the folder",
            )
        return payload

    def create(self) -> None:
        """Make the folder, with its parents, for this user alone."""
        with machine_refusals("make the output folder", self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.mkdir(mode=0o700, exist_ok=True)

    def lock(self, *, started_at: str) -> RunLock:
        """Take the folder or raise EvidenceError (`eval_run_in_use`)."""
        return RunLock.acquire(self.path, started_at=started_at)

    def keep(self, name: str, source: Path, content_hash: str | None = None) -> None:
        """Copy a file into the folder once.

        Raises SourceError (`eval_predictions_drift`) where it is no longer the one of
        this content hash, and ArtifactError where the folder keeps another one.
        """
        found = write_once(self.file(name), _pieces(source))
        if content_hash is not None and found != content_hash:
            self.file(name).unlink()
            raise SourceError(
                "eval_predictions_drift",
                "a file changed while it was copied",
                where=str(source),
                expected=content_hash,
                actual=found,
                recovery="start again when nothing writes the file",
            )

    def write(self, name: str, payload: Json) -> None:
        """Write a JSON artifact once."""
        write_json_artifact(self.file(name), payload)

    def put_failed_record_aside(self) -> None:
        """Give the record of a failed evaluation its number, so that it stays."""
        number = 1
        while (aside := self.file(f"eval_record.failed-{number}.json")).exists():
            number += 1
        with machine_refusals("keep the record of a failed evaluation", aside):
            self.record.rename(aside)

    def hashes(self) -> dict[str, str]:
        """Return the content hash of every file that belongs to the result.

        Records, logs of servers and hidden files are left out.
        """
        names = {
            path.relative_to(self.path).as_posix(): path
            for path in sorted(self.path.rglob("*"))
            if path.is_file() and path.suffix != ".log"
        }
        return {
            name: hash_file(path)
            for name, path in names.items()
            if not name.startswith((".", "eval_record."))
            and "/." not in name
            and not _SCAFFOLD.fullmatch(path.name)
        }

    def clear_unfinished_scores(self) -> None:
        """Remove what a killed process left of scores that it had not finished."""
        for left in self.file(SCORES_FOLDER).glob(".*"):
            shutil.rmtree(left, ignore_errors=True)

    def torn_tails(self) -> dict[str, int]:
        """Return the torn ends of logs that were set aside here, sizes in bytes."""
        return {
            path.name: path.stat().st_size
            for path in sorted(self.path.glob("*.torn-*"))
        }


def is_predict_run(folder: Path) -> bool:
    """Tell whether a folder holds a predict run, whatever has become of it."""
    return (folder / CONFIG_FILE).is_file()


def refuse_predict_run(folder: Path, command: str) -> None:
    """Raise ArtifactError where a command does not serve predict runs."""
    if is_predict_run(folder):
        raise ArtifactError(
            "eval_artifact_invalid",
            f"`{command}` does not serve predict runs",
            where=str(folder),
            expected="a run of kind executable",
            actual="a run of kind predict",
            recovery="`fairtrial replay` and `verify` work it out again; "
            "`fairtrial score` scores its predictions",
        )


def _pieces(source: Path) -> Iterator[bytes]:
    with open_regular_file(source) as stream:
        while piece := stream.read(_READ_SIZE):
            yield piece
