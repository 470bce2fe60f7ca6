"""A loadable config on disk, and ways to change it before it is loaded."""

import copy
import json

import yaml

from harness.config import load_config
from harness.config.starter import (
    OracleFiles,
    starter_candidate,
    starter_document,
    write_document,
)
from harness.errors import ConfigError

PIN = "a" * 40
MANIFEST = {
    "run_id": "library-1.0.0-abc",
    "gold_eligible": True,
    "oracle": {"kind": "python"},
    "pack": {"pack_id": "library", "version": "1.0.0"},
    "publication": {"published": {"content_hash": "sha256:" + "0" * 64}},
}


class Workspace:
    """A folder with a publication's marker, a pack's files and a config."""

    def __init__(self, root, *, executable=True):
        self.root = root
        self.manifest = root / "benchmark" / "run_manifest.json"
        self.pack = root / "pack"
        self.config = root / "eval.yaml"
        self.manifest.parent.mkdir(parents=True)
        self.pack.mkdir()
        self.write_manifest(MANIFEST)
        (self.pack / "manifest.yaml").write_text(
            'pack_id: library\nversion: "1.0.0"\n', encoding="utf-8"
        )
        (self.pack / "backend.py").write_text("", encoding="utf-8")
        document = starter_document(
            run_manifest="benchmark/run_manifest.json",
            oracle={
                "kind": "python",
                "pack_manifest": "pack/manifest.yaml",
                "resource": "pack/backend.py",
            }
            if executable
            else None,
            candidates=[pinned("alpha"), pinned("beta")],
            output_dir="run",
        )
        write_document(self.config, document)
        self.document = document

    def oracle(self):
        return OracleFiles(
            "python", self.pack / "manifest.yaml", self.pack / "backend.py"
        )

    def write_manifest(self, value):
        self.manifest.write_text(json.dumps(value), encoding="utf-8")

    def load(self, *changes):
        """Load the config with some values replaced; a callable edits freely."""
        document = copy.deepcopy(self.document)
        for change in changes:
            if callable(change):
                change(document)
            else:
                put(document, *change)
        return self.load_text(yaml.safe_dump(document, sort_keys=False))

    def load_text(self, text):
        self.config.write_text(text, encoding="utf-8")
        return load_config(self.config)

    def refusals(self, *changes):
        """Return (code, key path) of every violation."""
        try:
            self.load(*changes)
        except ConfigError as error:
            return [(v.code, v.where.split(" (")[0]) for v in error.violations]
        return []


def pinned(name):
    """Return a candidate whose weights are pinned."""
    candidate = starter_candidate("http://127.0.0.1:8000/v1", name, alias=name)
    candidate["model_identity"]["revision"] = PIN
    return candidate


def put(document, path, value):
    """Set the value at a dotted path; numbers are list positions."""
    *parents, last = (int(p) if p.isdecimal() else p for p in path.split("."))
    for part in parents:
        document = document[part]
    document[last] = value


def drop(path):
    """Return an edit that removes the key at a dotted path."""

    def edit(document):
        *parents, last = (int(p) if p.isdecimal() else p for p in path.split("."))
        place = document
        for part in parents:
            place = place[part]
        del place[last]

    return edit


def key_paths(value, path=""):
    """Yield the dotted path of every key."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        place = f"{path}.{key}" if path else str(key)
        yield place
        if isinstance(item, dict) or (
            isinstance(item, list) and item and isinstance(item[0], dict)
        ):
            yield from key_paths(item, place)
