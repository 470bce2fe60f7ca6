"""Facts about the runtime are recorded as they are, or null."""

import platform
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path

import harness
from harness.canonical import content_hash, is_content_hash
from harness.evidence.runtime_facts import DEPENDENCIES, runtime_facts, source_hash


def test_facts_name_interpreter_unicode_and_dependencies():
    facts = runtime_facts()

    assert facts["python"] == platform.python_version()
    assert facts["unidata_version"] == unicodedata.unidata_version
    assert sorted(facts["dependencies"]) == sorted(DEPENDENCIES)
    assert all(facts["dependencies"][name] for name in ("pyarrow", "httpx", "pyyaml"))


def test_facts_are_plain_json():
    assert is_content_hash(content_hash(runtime_facts()))


def test_source_hash_follows_the_source(tmp_path):
    root = Path(harness.__file__).parent.parent
    for package in ("harness", "oracle_workers"):
        shutil.copytree(root / package, tmp_path / package)
    changed = tmp_path / "harness" / "causes.py"
    changed.write_text(changed.read_text() + "# changed\n")
    code = "from harness.evidence.runtime_facts import *; print(source_hash())"
    other = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()

    assert is_content_hash(other)
    assert other != source_hash()
