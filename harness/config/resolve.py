"""The files that a config names, found, hashed and read for what config needs.

Relative paths start at the config's own folder. A file enters every identity as its
content hash, never as its path. `run_manifest.json` is read here only for the facts
that a config may contradict; whether it is a sound commit marker is judged when the
source is verified.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.canonical import Json, hash_bytes
from harness.config.violations import Unsound, Violations
from harness.strict_json import StrictJsonError, decode_document
from harness.strict_yaml import StrictYamlError, YamlPath, load_yaml

PUBLICATION_FILES: Final = (
    "run_manifest.json",
    "benchmark.parquet",
    "benchmark_raw.parquet",
)


@dataclass(frozen=True, slots=True)
class ConfigPaths:
    """Absolute paths of one loaded config; never part of an identity."""

    config: Path
    run_manifest: Path
    pack_manifest: Path | None
    resource: Path | None
    contract: Path
    output_dir: Path

    @property
    def publication_root(self) -> Path:
        """The folder of run_manifest.json and both tables."""
        return self.run_manifest.parent

    @property
    def pack_root(self) -> Path | None:
        """The folder of the pack's manifest.yaml."""
        return self.pack_manifest.parent if self.pack_manifest else None


@dataclass(frozen=True, slots=True)
class ResolvedFiles:
    """Hashes and facts of the named files, as plain JSON for the identity."""

    run_manifest: dict[str, Json]
    oracle: dict[str, Json] | None
    contract: dict[str, Json]
    manifest: dict[str, Json]
    """The manifest's own values; empty where it does not parse."""


class Resolver:
    """Finds the files of one document and records what is wrong with them."""

    def __init__(self, config: Path, violations: Violations) -> None:
        self.config = config
        self.violations = violations
        self.found: dict[YamlPath, tuple[Path, bytes]] = {}

    def paths(self) -> ConfigPaths | None:
        """Return all paths, or None when one of them cannot be told."""
        manifest = self._file("source_run_manifest")
        contract = self._file("scoring", "contract")
        output = self.violations.value("outputs", "output_dir")
        has_oracle = isinstance(self.violations.raw.get("source_oracle"), dict)
        pack = self._file("source_oracle", "pack_manifest") if has_oracle else None
        resource = self._file("source_oracle", "resource") if has_oracle else None
        if manifest is None or contract is None or isinstance(output, Unsound):
            return None
        output_dir = self._absolute(output)
        return ConfigPaths(self.config, manifest, pack, resource, contract, output_dir)

    def files(self) -> ResolvedFiles:
        """Return hashes and facts; call it after `paths` found every file."""
        manifest = self._manifest()
        published = _member(_member(manifest, "publication"), "published")
        run = {
            "content_hash": self._hash("source_run_manifest"),
            "run_id": manifest.get("run_id"),
            "gold_eligible": manifest.get("gold_eligible"),
            "published_content_hash": _member(published, "content_hash"),
        }
        return ResolvedFiles(
            {key: value if _is_scalar(value) else None for key, value in run.items()},
            self._oracle(),
            {"content_hash": self._hash("scoring", "contract")},
            manifest,
        )

    def _oracle(self) -> dict[str, Json] | None:
        declared = self.violations.raw.get("source_oracle")
        if not isinstance(declared, dict):
            return None
        pack = self._pack_manifest()
        return {
            "kind": declared["kind"],
            "pack_id": pack.get("pack_id"),
            "version": pack.get("version"),
            "pack_manifest": {
                "content_hash": self._hash("source_oracle", "pack_manifest")
            },
            "resource": {"content_hash": self._hash("source_oracle", "resource")},
        }

    def _manifest(self) -> dict[str, Json]:
        _, data = self.found[("source_run_manifest",)]
        try:
            value = decode_document(data)
        except StrictJsonError:
            return {}
        return value if isinstance(value, dict) else {}

    def _pack_manifest(self) -> dict[str, Json]:
        path, _ = self.found[("source_oracle", "pack_manifest")]
        try:
            value = load_yaml(path).value
        except (StrictYamlError, OSError):
            return {}
        if not isinstance(value, dict):
            return {}
        return {k: v for k, v in value.items() if isinstance(v, str)}

    def _hash(self, *path: str) -> str:
        return hash_bytes(self.found[path][1])

    def _absolute(self, text: str) -> Path:
        return (self.config.parent / text).resolve()

    def _file(self, *path: str) -> Path | None:
        text = self.violations.value(*path)
        if not isinstance(text, str):
            return None
        # The last component stays as written: a symbolic link is the source's to judge.
        written = self.config.parent / text
        place = written.parent.resolve() / written.name
        try:
            data = place.read_bytes()
        except OSError as error:
            self.violations.add(
                "eval_config_path_invalid",
                path,
                "a file that the config names cannot be read",
                expected=f"a readable file at {text!r}, from the config's own folder",
                actual=error.strerror or type(error).__name__,
                recovery="correct the path or put the file there",
            )
            return None
        self.found[path] = (place, data)
        return place


def _member(value: Json, key: str) -> Json:
    return value.get(key) if isinstance(value, dict) else None


def _is_scalar(value: Json) -> bool:
    return isinstance(value, str | bool)
