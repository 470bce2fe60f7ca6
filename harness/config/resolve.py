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
from harness.config.violations import Violations
from harness.regular_file import read_regular_file
from harness.strict_json import StrictJsonError, decode_document
from harness.strict_yaml import StrictYamlError, YamlPath, load_yaml

PUBLICATION_FILES: Final = (
    "run_manifest.json",
    "benchmark.parquet",
    "benchmark_raw.parquet",
)
_FILES: Final = (
    ("source_run_manifest",),
    ("source_oracle", "pack_manifest"),
    ("source_oracle", "resource"),
    ("scoring", "contract"),
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


class Resolver:
    """Finds the files of one document and records what is wrong with them."""

    def __init__(self, config: Path, violations: Violations) -> None:
        self.config = config
        self.violations = violations
        self.found: dict[YamlPath, tuple[Path, bytes]] = {}
        self.output_dir: Path | None = None
        for path in _FILES:
            self._find(path)
        output = violations.value("outputs", "output_dir")
        if isinstance(output, str):
            self.output_dir = (config.parent / output).resolve()
        self.manifest = self._manifest()

    def place(self, *path: str) -> Path | None:
        """Return where a named file is, or None where it was not found."""
        return self.found[path][0] if path in self.found else None

    def content_hash(self, *path: str) -> str | None:
        """Return the hash of a named file, or None where it was not found."""
        return hash_bytes(self.found[path][1]) if path in self.found else None

    def paths(self) -> ConfigPaths:
        """Return all paths of a document without violations."""
        manifest = self.place("source_run_manifest")
        contract = self.place("scoring", "contract")
        if manifest is None or contract is None or self.output_dir is None:
            raise AssertionError("a document with violations has no paths")
        return ConfigPaths(
            self.config,
            manifest,
            self.place("source_oracle", "pack_manifest"),
            self.place("source_oracle", "resource"),
            contract,
            self.output_dir,
        )

    def run_manifest(self) -> dict[str, Json]:
        """Return what the meaning holds of the publication."""
        published = _member(_member(self.manifest, "publication"), "published")
        run = {
            "content_hash": self.content_hash("source_run_manifest"),
            "run_id": self.manifest.get("run_id"),
            "gold_eligible": self.manifest.get("gold_eligible"),
            "published_content_hash": _member(published, "content_hash"),
        }
        kinds = {"gold_eligible": bool}
        return {
            key: value if isinstance(value, kinds.get(key, str)) else None
            for key, value in run.items()
        }

    def oracle(self) -> dict[str, Json] | None:
        """Return what the meaning holds of the pack; None without a sound one."""
        kind = self.violations.value("source_oracle", "kind")
        files = {
            name: {"content_hash": self.content_hash("source_oracle", name)}
            for name in ("pack_manifest", "resource")
            if ("source_oracle", name) in self.found
        }
        if not isinstance(kind, str) or len(files) < 2:
            return None
        pack = self._pack_manifest()
        return {
            "kind": kind,
            "pack_id": pack.get("pack_id"),
            "version": pack.get("version"),
            **files,
        }

    def _manifest(self) -> dict[str, Json]:
        _, data = self.found.get(("source_run_manifest",), (None, b""))
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

    def _find(self, path: tuple[str, ...]) -> None:
        text = self.violations.value(*path)
        if not isinstance(text, str):
            return
        # The last component stays as written: a symbolic link is the source's to judge.
        written = self.config.parent / text
        place = written.parent.resolve() / written.name
        try:
            self.found[path] = (place, read_regular_file(place))
        except OSError as error:
            self.violations.add(
                "eval_config_path_invalid",
                path,
                "a file that the config names cannot be read",
                expected=f"a readable file at {text!r}, from the config's own folder",
                actual=error.strerror or type(error).__name__,
                recovery="correct the path or put the file there",
            )


def _member(value: Json, key: str) -> Json:
    return value.get(key) if isinstance(value, dict) else None
