"""The stand-alone verification runs where nothing is installed, on any version."""

import json
import shutil
import subprocess
import sys

import pytest

from harness.verification.redaction import Redaction
from harness.verification.seal import seal_run
from tests.verification.runs import ROOT, flip

ALONE = f"""
import sys

ALLOWED = {{"harness", "org", *sys.stdlib_module_names}}  # copy looks for Jython's org

class OnlyOurs:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in ALLOWED:
            raise SystemExit(f"imported {{name}}")

sys.meta_path.insert(0, OnlyOurs())
sys.path.insert(0, {str(ROOT)!r})
sys.dont_write_bytecode = True
import runpy
runpy.run_module("harness.verify_bundle", run_name="__main__")
"""


def interpreters():
    """This interpreter, and other supported versions that run here."""
    found = {sys.executable: sys.version_info[:2]}
    for minor in (11, 12, 13, 14):
        path = shutil.which(f"python3.{minor}")
        if path is None or (3, minor) in found.values():
            continue
        tried = subprocess.run([path, "-c", ""], capture_output=True, check=False)
        if tried.returncode == 0:
            found[path] = (3, minor)
    return {f"{major}.{minor}": path for path, (major, minor) in found.items()}


INTERPRETERS = interpreters()


def verified_alone(path, *options, python=sys.executable, code=ALONE):
    return subprocess.run(
        [python, "-I", "-S", "-c", code, str(path), *options],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def bundles(executable_run, trace_run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundles")
    for name, run, what in (
        ("executable", executable_run, []),
        ("trace", trace_run, []),
        ("redacted", executable_run, ["prompts"]),
    ):
        seal_run(run, folder / name, Redaction.of(what), None)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("version", INTERPRETERS)
@pytest.mark.parametrize("name", ["executable", "trace", "redacted"])
def test_bundle_verifies_with_the_standard_library(name, version, bundles, request):
    done = verified_alone(bundles / name, "--json", python=INTERPRETERS[version])

    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert answer["intact"] is True
    run = request.getfixturevalue("trace_run" if name == "trace" else "executable_run")
    stated = json.loads((run / "eval_manifest.json").read_text())
    assert answer["merkle_root"] == stated["merkle_root"]
    if name != "redacted":
        assert answer["aggregate_hashes"] == stated["candidate_aggregates"]
        assert answer["checked"]["aggregates recomputed"] == len(stated["candidates"])


@pytest.mark.slow
def test_all_versions_print_the_same(bundles):
    printed = {
        verified_alone(bundles / "executable", python=python).stdout
        for python in INTERPRETERS.values()
    }

    assert len(printed) == 1


SEAL = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
sys.dont_write_bytecode = True
from pathlib import Path
from harness.verification.redaction import Redaction
from harness.verification.seal import seal_run
run, output, *words = sys.argv[1:]
seal_run(Path(run), Path(output), Redaction.of(words), None)
"""


@pytest.mark.slow
@pytest.mark.parametrize("version", INTERPRETERS)
def test_all_versions_seal_the_same_bytes(version, executable_run, bundles, tmp_path):
    done = verified_alone(
        executable_run,
        str(tmp_path / "again"),
        "prompts",
        python=INTERPRETERS[version],
        code=SEAL,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "again").read_bytes() == (bundles / "redacted").read_bytes()


@pytest.mark.slow
def test_run_folder_is_verified_too(executable_run):
    done = verified_alone(executable_run)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "result: intact"


@pytest.mark.slow
def test_damage_is_named_and_the_answer_is_no(bundles, tmp_path):
    path = shutil.copy(bundles / "executable", tmp_path / "damaged")
    at = path.read_bytes().index(b'"record_type":"completion"')
    flip(path, at + 3, 0)

    done = verified_alone(path)

    assert done.returncode == 1
    assert "NOT INTACT" in done.stdout.splitlines()[-1]
    assert ", record " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_file_that_is_not_there_is_a_refusal(tmp_path):
    done = verified_alone(tmp_path / "nothing")

    assert done.returncode == 3
    assert done.stderr.startswith("eval_artifact_invalid: there is no run here")


@pytest.mark.slow
def test_pattern_of_a_tool_needs_its_engine(patterned_run, tmp_path):
    path = tmp_path / "patterned"
    seal_run(patterned_run, path, Redaction.of([]), None)

    without = verified_alone(path, code=ALONE.replace("raise SystemExit", "pass #"))

    assert without.returncode == 3
    assert without.stdout.splitlines()[-1] == (
        "result: NOT COMPLETE: install google-re2 to score every episode"
    )
    assert "Traceback" not in without.stderr
