"""A new config of kind `predict`: complete, commented, and loadable at once.

Where a contract has a schema or labels and no system text is named, a plain one that
holds them is written beside the config.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.canonical import Json
from harness.config.document import SCHEMA_VERSION
from harness.config.predict import PredictConfig, read_predict_config
from harness.config.render import render
from harness.config.starter import provider_of, relative_path, token_of
from harness.errors import FairtrialError, UsageError
from harness.strict_yaml import YamlPath

SYSTEM_TEXTS: Final = {
    "json-records": "Answer with one JSON object that satisfies this JSON Schema, and "
    "with nothing else.\n\n{contract}\n",
    "classification": "Answer with one of these labels, exactly as it is written, and "
    "with nothing else.\n\n{contract}\n",
}
"""What is written beside the config, by contract."""
MAIN: Final = "main"
_NOTES: Final[dict[YamlPath, str]] = {
    ("manifest",): "The rows to answer and the contract that judges the answers.",
    ("manifest", "sha256"): "64 hex digits: refuse any other file. null: any.",
    ("manifest", "declaration"): "The JSON Schema or the labels; null for action-ir.",
    ("prompt", "system"): "{contract} in the text is replaced by schema or labels.",
    ("prompt", "user"): "{input} in the text is replaced; null: the input as it is.",
    ("engine",): "Which of the engines answers; --engine names another one.",
    ("engines", MAIN, "candidate", "api_key_env"): "Name of the environment variable "
    "that holds the key; null sends no Authorization header.",
    ("decoding",): "How text is drawn, in full; what an engine cannot apply is refused "
    "before anything runs.",
    ("evaluation", "metric"): "null: the contract's first metric.",
    ("evaluation", "holdout"): "true: uses of these rows are counted.",
    ("evaluation", "max_stop_share"): "Above this share of rows without an answer for "
    "reasons that are not the model's, nothing is scored.",
    ("comparators",): "Baselines beside the candidate.",
    ("measure",): "{rows: 8} measures speed and memory on the first rows.",
}


@dataclass(frozen=True, slots=True)
class PredictFiles:
    """The files of a new config."""

    manifest: Path
    contract: str
    declaration: Path | None
    system: Path | None
    user: Path | None


def starter_predict_document(
    *,
    files: Mapping[str, str | None],
    contract: str,
    base_url: str,
    model: str,
    alias: str | None = None,
    api_key_env: str | None = None,
) -> dict[str, Json]:
    """Return a complete document; paths are texts as the file will hold them."""
    provider = provider_of(base_url)
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "predict",
        "manifest": {
            "path": files["manifest"],
            "sha256": None,
            "contract": contract,
            "declaration": files["declaration"],
        },
        "prompt": {"system": files["system"], "user": files["user"]},
        "engine": MAIN,
        "engines": {
            MAIN: {
                "kind": "chat_http",
                "candidate": {
                    "alias": alias or token_of(model),
                    "canonical_id": f"{provider}:{model}@provider_managed",
                    "provider": provider,
                    "provider_api_version": "v1",
                    "base_url": base_url,
                    "model": model,
                    "api_key_env": api_key_env,
                },
                "max_in_flight": 8,
                "timeout_s": 120.0,
                "max_retries": 2,
            }
        },
        "decoding": {
            "max_tokens": 512,
            "temperature": 0.0,
            "top_p": 1.0,
            "top_k": None,
            "stop": [],
            "seed": 42,
            "greedy": True,
            "num_beams": 1,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "repetition_penalty": 1.0,
            "no_repeat_ngram_size": 0,
        },
        "evaluation": {"metric": None, "holdout": False, "max_stop_share": 0.05},
        "comparators": [],
        "measure": None,
    }


def write_predict_config(
    output: Path,
    files: PredictFiles,
    *,
    base_url: str,
    model: str,
    alias: str | None = None,
    api_key_env: str | None = None,
) -> PredictConfig:
    """Write a new config, and a system text where it needs one; return it as read.

    Raises UsageError (`eval_output_exists`) for an existing file and ConfigError for
    values that no config may hold; nothing stays on disk then.
    """
    system, text = files.system, SYSTEM_TEXTS.get(files.contract)
    written: list[Path] = []
    output.parent.mkdir(parents=True, exist_ok=True)
    try:
        if system is None and text is not None:
            system = output.with_name(f"{output.stem}-system.txt")
            written.append(_write(system, text))
        document = starter_predict_document(
            files={
                "manifest": relative_path(files.manifest, output),
                "declaration": _relative(files.declaration, output),
                "system": _relative(system, output),
                "user": _relative(files.user, output),
            },
            contract=files.contract,
            base_url=base_url,
            model=model,
            alias=alias,
            api_key_env=api_key_env,
        )
        written.append(_write(output, render(document, _NOTES)))
        return read_predict_config(output).config()
    except FairtrialError:
        for path in written:
            path.unlink(missing_ok=True)
        raise


def _relative(path: Path | None, output: Path) -> str | None:
    return None if path is None else relative_path(path, output)


def _write(path: Path, text: str) -> Path:
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise UsageError(
            "eval_output_exists",
            "a file stands where the config is to be written",
            where=str(path),
            expected="a path that does not exist yet",
            recovery="name another file, or remove this one yourself",
        ) from None
    return path
