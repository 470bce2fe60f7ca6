"""A checkpoint folder: what is in it, verified before anything of it is loaded.

Only safetensors are loaded and no code of a checkpoint is ever run. Where hashes were
declared, every file that a loader could read has to be among them, so that a file laid
beside the declared ones cannot change the model, its tokenizer or its template.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.errors import EngineError, SourceError, Violation
from harness.predictions.digests import file_sha256, verify_checkpoint

_READ_BY_LOADERS: Final = frozenset(
    {".json", ".safetensors", ".model", ".txt", ".jinja", ".tiktoken", ".vocab"}
)


@dataclass(frozen=True, slots=True)
class TorchSettings:
    """How a checkpoint is loaded, as the config says."""

    model: Path
    """The folder of the checkpoint."""
    checkpoint_sha256: Mapping[str, str] | None
    """File name to 64 hex digits; None: nothing was declared."""
    device: str
    """`cpu`, `cuda` or `cuda:<number>`."""
    dtype: str
    """`float32`, `bfloat16` or `float16`: weights are loaded and computed so."""
    batch_size: int
    model_identity: str
    """Which weights these are: `source:model@revision-or-digest`."""
    chat_template: bool = True
    """False: the content of the only message is the whole prompt, as it stands."""


def verified_files(folder: Path, declared: Mapping[str, str] | None) -> dict[str, str]:
    """Return the SHA-256 of every file that may be loaded; 64 hex digits by name.

    Raises SourceError (`eval_predictions_drift`) for a file that is not as declared, or
    not declared, and EngineError for a folder that holds no checkpoint.
    """
    if not (folder / "config.json").is_file():
        raise EngineError(
            "eval_engine_start_failed",
            "the folder holds no checkpoint",
            where=folder.name,
            expected="config.json, *.safetensors and a tokenizer",
            actual="no config.json",
            recovery="give the folder of a checkpoint; nothing is downloaded",
        )
    if declared is not None:
        verify_checkpoint(folder, declared)
    found = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix in _READ_BY_LOADERS
    )
    if declared is None:
        return {name: file_sha256(folder / name) for name in found}
    _refuse_undeclared(folder, found, declared)
    return dict(declared)


def _refuse_undeclared(
    folder: Path, found: list[str], declared: Mapping[str, str]
) -> None:
    loose = [name for name in found if name not in declared]
    if loose:
        raise SourceError.from_violations(
            tuple(
                Violation(
                    "eval_predictions_drift",
                    f"{folder.name}/{name}",
                    "a file that would be loaded has no declared hash",
                    "every file of the checkpoint among checkpoint_sha256",
                    "not declared",
                    "declare its hash, or take the file away",
                )
                for name in loose
            )
        )
