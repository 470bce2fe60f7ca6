"""A checkpoint is verified before anything of it, or any library, is loaded."""

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from harness.causes import exit_status
from harness.engines.torch_checkpoint import TorchSettings, verified_files
from harness.engines.torch_local import TorchLocal
from harness.errors import EngineError, SourceError
from harness.predictions.digests import file_sha256

ROOT = Path(__file__).parent.parent.parent
FILES = {
    "config.json": "{}",
    "model.safetensors": "weights",
    "tokenizer.json": "{}",
    "README.md": "words",
}


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def _settings(folder, declared=None):
    return TorchSettings(folder, declared, "cpu", "float32", 1, "test:tiny@0")


def _hashes(folder, *names):
    return {name: file_sha256(folder / name) for name in names}


def _entered(folder, declared=None):
    async def entered():
        async with TorchLocal(_settings(folder, declared)):
            pass

    anyio.run(entered)


LOADED = ("config.json", "model.safetensors", "tokenizer.json")


def test_every_file_that_a_loader_reads_is_hashed(folder):
    assert verified_files(folder, None) == _hashes(folder, *LOADED)


def test_declared_hashes_that_hold_are_returned(folder):
    declared = _hashes(folder, *LOADED, "README.md")

    assert verified_files(folder, declared) == declared


def test_a_loadable_file_without_a_declared_hash_is_refused(folder):
    declared = _hashes(folder, "config.json")

    with pytest.raises(SourceError) as caught:
        verified_files(folder, declared)

    assert [Path(v.where).name for v in caught.value.violations] == [
        "model.safetensors",
        "tokenizer.json",
    ]


def test_a_folder_without_a_model_is_refused_and_nothing_is_downloaded(tmp_path):
    with pytest.raises(EngineError, match="nothing is downloaded") as caught:
        verified_files(tmp_path, None)

    assert exit_status(caught.value.code) == 3


def test_a_changed_checkpoint_is_refused_before_the_library_is_imported(
    folder, monkeypatch
):
    monkeypatch.setitem(sys.modules, "torch", None)
    declared = _hashes(folder, *LOADED)
    (folder / "model.safetensors").write_text("others")

    with pytest.raises(SourceError, match="a checkpoint file has changed"):
        _entered(folder, declared)


def test_an_absent_library_is_refused_with_the_way_to_get_it(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)

    with pytest.raises(EngineError) as caught:
        _entered(folder)

    assert caught.value.code == "eval_engine_start_failed"
    assert "pip install 'fairtrial[torch]'" in str(caught.value)


def test_importing_the_engines_imports_no_model_library():
    heavy = ("torch", "transformers", "vllm", "numpy")
    program = (
        "import sys, pkgutil, importlib, harness.engines as engines\n"
        "for each in pkgutil.iter_modules(engines.__path__):\n"
        "    importlib.import_module(f'harness.engines.{each.name}')\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )

    assert done.stdout == "[]\n"
