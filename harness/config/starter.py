"""A new config: complete, commented, and loadable at once.

Whatever is written here is checked by loading it before it stays on disk, so that
`config init` cannot leave a file behind that `run` would refuse.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from harness.canonical import Json
from harness.config.document import SCHEMA_VERSION
from harness.config.evaluation import EvalConfig
from harness.config.load import load_config
from harness.config.render import render
from harness.errors import FairtrialError, UsageError
from harness.strict_yaml import YamlPath

CONTRACT_NAME: Final = "scoring-contract.md"

LIMITS: Final[dict[str, Json]] = {
    "max_turns": 16,
    "import_timeout_s": 10.0,
    "reset_timeout_s": 5.0,
    "tool_timeout_s": 10.0,
    "state_timeout_s": 5.0,
    "assertion_timeout_s": 5.0,
    "close_timeout_s": 5.0,
    "candidate_timeout_s": 60.0,
    "episode_timeout_s": 300.0,
    "max_parallel_tasks": 8,
    "max_retries": 2,
    "max_stops": 25,
}
WORKER: Final[dict[str, Json]] = {
    "cpu_s": 30,
    "memory_bytes": 1 << 30,
    "open_files": 64,
    "processes": 16,
    "file_bytes": 16 << 20,
    "output_bytes": 10 << 20,
}


@dataclass(frozen=True, slots=True)
class OracleFiles:
    """The pack of an executable config, by the files that it names."""

    kind: Literal["python", "endpoint"]
    pack_manifest: Path
    resource: Path


def bundled_document(name: str) -> Path:
    """Return a document of `configs/`, from the wheel or from the source tree."""
    package = Path(__file__).resolve().parents[1]
    bundled = package / "_bundled" / "configs" / name
    return bundled if bundled.is_file() else package.parent / "configs" / name


def relative_path(target: Path, output: Path) -> str:
    """Return a path as a config at `output` has to write it."""
    folder = output.absolute().parent.resolve()
    return Path(os.path.relpath(target.resolve(), folder)).as_posix()


def starter_candidate(
    base_url: str,
    model: str,
    *,
    alias: str | None = None,
    provider: str | None = None,
    api_key_env: str | None = None,
) -> dict[str, Json]:
    """Return a candidate section that claims no more than the endpoint says."""
    provider = provider or provider_of(base_url)
    return {
        "alias": alias or token_of(model),
        "model": model,
        "provider": provider,
        "provider_api_version": "v1",
        "api": {"base_url": base_url, "api_key_env": api_key_env},
        "model_identity": {
            "source": provider,
            "model": model,
            "revision": None,
            "weights_digest": None,
        },
        "inference": {
            "temperature": 0.0,
            "top_p": 1.0,
            "max_tokens": 1024,
            "seed": 42,
            "tool_choice": "auto",
            "provider_extensions": {},
        },
        "echo_reasoning": False,
    }


def provider_of(base_url: str) -> str:
    """Return a provider word for an endpoint: its host, or `local` on loopback."""
    try:
        host = urlsplit(base_url).hostname or ""
    except ValueError:
        host = ""
    if host in {"", "localhost", "::1"} or host.startswith("127."):
        return "local"
    return token_of(host)


def starter_document(
    *,
    run_manifest: str,
    oracle: dict[str, Json] | None,
    candidates: list[dict[str, Json]],
    output_dir: str,
    contract: str = CONTRACT_NAME,
    trials: int = 1,
) -> dict[str, Json]:
    """Return a complete document; paths are texts as the file will hold them."""
    return {
        "schema_version": SCHEMA_VERSION,
        "config_status": "ready",
        "kind": "executable",
        "source_run_manifest": run_manifest,
        "source_oracle": oracle,
        "translation_manifest": None,
        "eval": {"mode": ["executable" if oracle else "trace"], "trials": trials},
        "scoring": {
            "contract": contract,
            "argument_matching": "schema_then_canonical",
            "insert_declared_defaults": True,
            "respect_call_order": True,
            "respect_call_group": True,
            "allow_llm_repair": False,
            "task_success": "all_applicable_gates",
            "intermediate_text_matching": "structural",
            "attribution": "wire-1",
        },
        "limits": {**LIMITS, "worker": dict(WORKER)},
        "isolation": {"level": "process", "host": "shared"},
        "candidates": candidates,
        "contamination": {
            "enforce": True,
            "on_violation": "fail_run",
            "comparison_set": "common_intersection",
        },
        "publication": {
            "requested": False,
            "require_same_task_ids": True,
            "max_stop_share": 0.05,
        },
        "outputs": {
            "output_dir": output_dir,
            "write_task_results": True,
            "write_eval_manifest": True,
            "cache_candidate_responses": True,
            "cache_tool_results": True,
        },
    }


def oracle_section(oracle: OracleFiles, output: Path) -> dict[str, Json]:
    """Return `source_oracle` for a config at `output`."""
    return {
        "kind": oracle.kind,
        "pack_manifest": relative_path(oracle.pack_manifest, output),
        "resource": relative_path(oracle.resource, output),
    }


def default_output_dir(output: Path, run_manifest: Path) -> str:
    """Return a run folder beside the config, or beside the publication it lies in."""
    name = "run" if output.stem == "eval" else f"{output.stem}-run"
    folder = output.absolute().parent.resolve()
    source = run_manifest.resolve().parent
    if folder == source or source in folder.parents:
        return relative_path(source.parent / name, output)
    return name


def write_starter_config(
    output: Path,
    *,
    run_manifest: Path,
    candidates: list[dict[str, Json]],
    oracle: OracleFiles | None = None,
    output_dir: str | None = None,
    trials: int = 1,
    changes: Mapping[YamlPath, Json] | None = None,
) -> EvalConfig:
    """Write a new config and the contract beside it; return it as loaded.

    `changes` replaces single values by key path. Raises UsageError
    (`eval_output_exists`) for an existing file and ConfigError for values that no
    config may hold; nothing stays on disk then.
    """
    document = starter_document(
        run_manifest=relative_path(run_manifest, output),
        oracle=oracle_section(oracle, output) if oracle else None,
        candidates=candidates,
        output_dir=output_dir or default_output_dir(output, run_manifest),
        trials=trials,
    )
    for path, value in (changes or {}).items():
        _replace(document, path, value)
    return write_document(output, document)


def write_document(
    output: Path,
    document: Mapping[str, Json],
    notes: Mapping[YamlPath, str] | None = None,
) -> EvalConfig:
    """Write a document and the contract beside it, load it, return it."""
    if output.exists() or output.is_symlink():
        raise _exists(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    contract = output.parent / CONTRACT_NAME
    copied = _copy_contract(contract)
    try:
        with output.open("x", encoding="utf-8") as stream:
            stream.write(render(document, notes))
        return load_config(output)
    except FairtrialError:
        output.unlink(missing_ok=True)
        if copied:
            contract.unlink(missing_ok=True)
        raise


def _copy_contract(target: Path) -> bool:
    data = bundled_document(CONTRACT_NAME).read_bytes()
    if target.exists() or target.is_symlink():
        if target.read_bytes() != data:
            raise _exists(target)
        return False
    target.write_bytes(data)
    return True


def _exists(path: Path) -> UsageError:
    return UsageError(
        "eval_output_exists",
        "a file stands where the config is to be written",
        where=str(path),
        expected="a path that does not exist yet",
        recovery="name another file, or remove this one yourself",
    )


def _replace(document: dict[str, Json], path: YamlPath, value: Json) -> None:
    place: Json = document
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value


def token_of(text: str) -> str:
    """Return a text as an alias: lower case, no other signs than `.`, `_` and `-`."""
    token = re.sub(r"[^a-z0-9._-]+", "-", text.casefold()).lstrip("._-")
    return token[:64].rstrip("-") or "candidate"
