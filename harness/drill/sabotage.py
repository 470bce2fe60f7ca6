"""A pack that can be told to misbehave, and its own record of what it was asked.

The pack is a copy of a real one with two lines more in its modules; it is certified
and published while nothing is planned, so that its benchmark is the real pack's. The
plan is a text among the pack's documents, which no fingerprint counts and every
containment level lets a worker read. The record is written by the workers, outside
everything that the evaluator writes: a witness. Where they may write nowhere they
print it, and the evaluator's captured output has to do.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.benchmark.pack import MANIFEST_NAME, Pack, load_pack
from harness.canonical import Json
from harness.drill import saboteur
from harness.drill.schedule import OracleHit
from harness.errors import UsageError

MODULE: Final = "fairtrial_saboteur"
PLAN_NAME: Final = "fairtrial-drill.txt"


@dataclass(frozen=True, slots=True)
class SabotagedPack:
    """A scratch copy of a pack with a saboteur inside."""

    pack: Pack
    plan: Path
    """The file that the saboteur reads; absent: nothing is planned."""

    def rest(self) -> None:
        """Let the pack behave."""
        self.plan.unlink(missing_ok=True)

    def plan_faults(
        self,
        log: Path,
        hits: Sequence[OracleHit],
        imports: Mapping[int, str] | None = None,
    ) -> None:
        """Say which task meets what from now on, and where the workers write it."""
        document: dict[str, Json] = {
            "log": str(log),
            "faults": {hit.task_id: _instruction(hit) for hit in hits},
        }
        if imports is not None:
            counter = log.with_suffix(".imports")
            shutil.rmtree(counter, ignore_errors=True)
            counter.mkdir()
            faults = {str(number): action for number, action in imports.items()}
            document["imports"] = {"folder": str(counter), "faults": faults}
        self.plan.write_text(json.dumps(document), encoding="utf-8")


def _instruction(hit: OracleHit) -> dict[str, Json]:
    return {
        "name": hit.fault.name,
        "at": hit.place.at,
        "index": hit.place.index,
        "path": list(hit.place.path),
        "moment": hit.fault.moment,
        "do": hit.fault.do,
    }


def sabotaged_copy(original: Path, target: Path) -> SabotagedPack:
    """Copy a pack and put the saboteur in; raise PackError or UsageError."""
    source = load_pack(original)
    if source.oracle_kind != "python":
        raise UsageError(
            "eval_cli_invalid",
            "the drill needs a pack with a Python backend",
            where=str(original),
            expected="backend.py",
            actual=f"an {source.oracle_kind} pack",
            recovery="name another pack, or one of the bundled ones",
        )
    outside = [p for p in source.tree.paths.values() if source.root not in p.parents]
    if outside:
        raise UsageError(
            "eval_cli_invalid",
            "the pack has files outside its folder, so it cannot be copied",
            where=str(outside[0]),
            recovery="name another pack, or one of the bundled ones",
        )
    shutil.copytree(source.root, target)
    copied = load_pack(target)
    shutil.copyfile(saboteur.__file__, copied.root / f"{MODULE}.py")
    plan = _documents(copied) / PLAN_NAME
    place = {"plan": str(plan)}
    (copied.root / saboteur.PLAN_FILE).write_text(json.dumps(place), encoding="utf-8")
    for role in ("backend", "assertions"):
        with copied.manifest.paths[role].open("a", encoding="utf-8") as stream:
            stream.write(
                f"\n\nimport {MODULE}\n\n{MODULE}.take_over_{role}(globals())\n"
            )
    return SabotagedPack(load_pack(target), plan)


def _documents(pack: Pack) -> Path:
    """Return the folder of a copied pack that no fingerprint counts."""
    if pack.tree.docs is not None:
        return pack.root / pack.tree.docs
    folder = pack.root / MODULE
    folder.mkdir()
    (folder / "README.md").write_text("The drill's plan.\n", encoding="utf-8")
    with (pack.root / MANIFEST_NAME).open("a", encoding="utf-8") as stream:
        stream.write(f"\ndocs: {MODULE}\n")
    return folder


@dataclass(frozen=True, slots=True)
class OracleRecord:
    """What the workers wrote down of one round."""

    lines: tuple[dict[str, Json], ...]

    @classmethod
    def read(cls, log: Path) -> OracleRecord:
        """Read the log of a round; empty when no worker wrote any."""
        if not log.exists():
            return cls(())
        text = log.read_text(encoding="utf-8")
        return cls(tuple(json.loads(line) for line in text.splitlines()))

    @classmethod
    def printed(cls, outputs: Iterable[str]) -> OracleRecord:
        """Read what workers printed; a line that the cap cut is left out."""
        return cls(
            tuple(
                json.loads(line.removeprefix(saboteur.PRINTED))
                for output in outputs
                for line in output.splitlines()
                if line.startswith(saboteur.PRINTED) and line.endswith("}")
            )
        )

    def injected(self) -> dict[str, str]:
        """Return the fault that each task met, by task id."""
        return {
            line["task"]: line["fault"]
            for line in self.lines
            if line["event"] == "injected"
        }

    def imports_injected(self) -> tuple[str, ...]:
        """Return the spoiled imports, which belong to no task yet."""
        return tuple(
            line["fault"]
            for line in self.lines
            if line["event"] == "injected" and not line["task"]
        )

    def calls_from(self, task_id: str, index: int) -> int:
        """Count the calls of a task at and after one position, over all workers."""
        return sum(
            line["event"] == "call"
            and line["task"] == task_id
            and line["index"] >= index
            for line in self.lines
        )
