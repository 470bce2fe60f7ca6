"""Two small finished runs, and private copies of them."""

import json
import shutil

import pytest

from tests.verification.runs import publish_small, run_small


@pytest.fixture(scope="session")
def small_publication(tmp_path_factory):
    """Three tasks of the library without the patterns of its tools."""

    def without_patterns(pack):
        path = pack / "tools.json"
        tools = json.loads(path.read_text("utf-8"))
        for tool in tools:
            for schema in tool["function"]["parameters"]["properties"].values():
                schema.pop("pattern", None)
        path.write_text(json.dumps(tools), "utf-8")

    return publish_small(tmp_path_factory.mktemp("small"), without_patterns)


@pytest.fixture(scope="session")
def executable_run(small_publication, tmp_path_factory):
    """A finished executable run of two candidates."""
    folder = tmp_path_factory.mktemp("executable")
    return run_small(
        small_publication, folder, "gold", "wrong-argument", executable=True
    )


@pytest.fixture(scope="session")
def trace_run(small_publication, tmp_path_factory):
    """A finished trace run of one candidate."""
    folder = tmp_path_factory.mktemp("trace")
    return run_small(small_publication, folder, "mixture", executable=False)


@pytest.fixture(scope="session")
def patterned_run(tmp_path_factory):
    """A finished trace run whose tools have a `pattern`."""
    publication = publish_small(tmp_path_factory.mktemp("patterned"))
    folder = tmp_path_factory.mktemp("patterned-run")
    return run_small(publication, folder, "gold", executable=False)


@pytest.fixture
def run(executable_run, tmp_path):
    """A private copy of the executable run."""
    return shutil.copytree(executable_run, tmp_path / "copy")


@pytest.fixture
def traced(trace_run, tmp_path):
    """A private copy of the trace run."""
    return shutil.copytree(trace_run, tmp_path / "copy")
