"""A real publication that tests bend, declared anew or left torn."""

import json
import shutil
from functools import partial

import anyio

from harness.benchmark.bundled import bundled_pack
from harness.benchmark.pack import load_pack
from harness.benchmark.publication import publish
from harness.benchmark.source import verify_source
from harness.benchmark.tables import read_rows, write_rows
from harness.canonical import hash_file
from harness.config import load_config
from harness.config.starter import (
    OracleFiles,
    starter_candidate,
    write_starter_config,
)
from harness.errors import SourceError
from harness.oracle.certifying import CertifyingOracle
from harness.oracle.probe import probe

MODEL = {
    "enabled": True,
    "provider": "nim",
    "model": "writer",
    "canonical_id": "nim:writer@provider_managed",
    "revision": None,
    "weights_digest": None,
}


def probe_backend(pack, *, level):
    """Probe with a real throwaway worker."""
    return anyio.run(partial(probe, pack, level=level))


def publish_library(folder):
    """Publish the bundled library with real workers; return (benchmark, pack)."""
    pack = folder / "pack"
    shutil.copytree(bundled_pack("library"), pack, ignore=shutil.ignore_patterns("__*"))

    async def published():
        loaded = load_pack(pack)
        await publish(loaded, folder / "benchmark", oracle=CertifyingOracle())

    anyio.run(published)
    return folder


class Publication:
    """A private copy of the published library, its pack and a config."""

    def __init__(self, root, original):
        self.root = root
        self.benchmark = root / "benchmark"
        self.pack = root / "pack"
        self.config = root / "eval.yaml"
        shutil.copytree(original / "benchmark", self.benchmark)
        shutil.copytree(original / "pack", self.pack)

    @property
    def manifest_path(self):
        return self.benchmark / "run_manifest.json"

    def manifest(self):
        return json.loads(self.manifest_path.read_text("utf-8"))

    def edit_manifest(self, edit):
        """Change the manifest in place and write it as publishing does."""
        manifest = self.manifest()
        edit(manifest)
        text = json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False)
        self.manifest_path.write_text(text + "\n", "utf-8")

    def edit_rows(self, edit, *, raw=None):
        """Rewrite both tables, or each by its own edit, and declare them anew."""
        self._table("raw", edit if raw is None else raw)
        self._table("published", edit)

    def _table(self, table, edit):
        file = self.benchmark / self.manifest()["publication"][table]["file"]
        rows = list(read_rows(file))
        rows = edit(rows) or rows
        write_rows(file, rows)

        def declare(manifest):
            section = manifest["publication"][table]
            section["rows"] = len(rows)
            section["content_hash"] = hash_file(file)
            for artifact in manifest["artifacts"].values():
                if artifact["file"] == file.name:
                    artifact["content_hash"] = section["content_hash"]

        self.edit_manifest(declare)

    def task_ids(self):
        return [
            row["task_id"] for row in read_rows(self.benchmark / "benchmark.parquet")
        ]

    def configured(self, *, executable=True, candidates=None, changes=None):
        """Write a config for the publication as it is now, and load it."""
        oracle = OracleFiles(
            "python", self.pack / "manifest.yaml", self.pack / "backend.py"
        )
        self.config.unlink(missing_ok=True)
        return write_starter_config(
            self.config,
            run_manifest=self.manifest_path,
            candidates=candidates or [candidate("alpha")],
            oracle=oracle if executable else None,
            changes=changes,
        )

    def verified(self, *, probe=None, **options):
        return verify_source(self.configured(**options), probe=probe)

    def refusal(self, *, config=None, **options):
        """Return the SourceError that verification ends with; fail without one."""
        config = config or self.configured(**options)
        try:
            verify_source(config)
        except SourceError as error:
            return error
        raise AssertionError("the source was verified")

    def reload(self):
        return load_config(self.config)


def candidate(alias, *, base_url="http://127.0.0.1:9/v1", **identity):
    """Return a candidate; identity keys pin it or name other weights."""
    section = starter_candidate(base_url, alias, alias=alias, provider="nim")
    section["model_identity"].update(identity)
    return section
