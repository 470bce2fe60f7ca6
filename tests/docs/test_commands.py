"""Every shell block is run in the order of one table, and prints what pages show."""

import contextlib
import os
import shlex
import signal
import subprocess
import sys

import pytest

from tests.docs.pages import ROOT, scenario_blocks, shell_blocks
from tests.docs.stand_in import GOLD, StandIn, first_label, one_command
from tests.servers import ScriptedServer

SCENARIOS = {
    "first-run": [
        "docs/tutorial/first-run.md",
        "docs/how-to/replay.md",
        "docs/how-to/publish-and-verify.md",
        "docs/how-to/rescore-a-run.md",
        "docs/how-to/read-one-episode.md",
    ],
    "config": ["docs/how-to/write-a-config.md"],
    "http-oracle": ["docs/how-to/use-an-http-oracle.md"],
    "vllm": ["docs/how-to/evaluate-a-vllm-endpoint.md"],
    "hosted": ["docs/how-to/evaluate-a-hosted-endpoint.md"],
    "pack": ["docs/how-to/write-a-pack.md"],
    "predict": ["docs/how-to/predict.md"],
    "recorded": ["docs/how-to/ask-recorded-conversations.md"],
    "traces": ["docs/how-to/score-traces-only.md"],
    "compare": [
        "docs/how-to/compare-two-models.md",
        "docs/how-to/account-for-published-numbers.md",
    ],
    "audit": ["docs/how-to/audit-contamination.md"],
    "doctor": ["docs/how-to/check-an-endpoint.md"],
    "drill": ["docs/how-to/run-the-drill.md"],
    "action-ir": ["docs/reference/contracts/action-ir.md"],
    "classification": ["docs/reference/contracts/classification.md"],
    "json-records": ["docs/reference/contracts/json-records.md"],
    "mlperf-agentic": ["docs/reference/contracts/mlperf-agentic.md"],
}
"""The pages of each scenario in reading order; all blocks share one folder."""
OWN_ENDPOINT = {"vllm": None, "hosted": "right"}
"""Scenarios in which a reader has an endpoint, and its key: a stand-in is served."""
ANSWERS = {"predict": first_label, "recorded": one_command}
"""Scenarios in which a reader has an endpoint without a benchmark."""
README_COMMANDS = {"demo", "tests"}
"""What the CI reads from README.md and runs itself."""


def test_every_shell_block_is_in_the_table():
    listed = {(page, name) for name, pages in SCENARIOS.items() for page in pages}

    loose = [
        f"{block.page}: {block.text}"
        for block in shell_blocks()
        if (block.page, block.name) not in listed
        and not (block.page == "README.md" and block.kind == "command")
    ]

    assert loose == []


def test_every_line_of_the_table_has_a_block():
    present = {(block.page, block.name) for block in shell_blocks()}

    assert [
        (page, name)
        for name, pages in SCENARIOS.items()
        for page in pages
        if (page, name) not in present
    ] == []


def test_readme_marks_the_commands_of_the_ci():
    marked = {b.name for b in shell_blocks() if b.page == "README.md"}

    assert marked == README_COMMANDS


@pytest.fixture
def environment(tmp_path):
    """Put a `fairtrial` of this checkout and this `python` first on the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    python = shlex.quote(sys.executable)
    program = shlex.quote("from harness.cli.main import console; console()")
    for name, words in (("fairtrial", f"-c {program}"), ("python", "")):
        command = folder / name
        command.write_text(f'#!/bin/sh\nexec {python} {words} "$@"\n')
        command.chmod(0o755)
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in ("HOME", "LANG", "TMPDIR")
    }
    return inherited | {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }


@pytest.fixture
def work(tmp_path):
    """Give a folder, and end what pages started and named in a `.pid` file there."""
    folder = tmp_path / "work"
    folder.mkdir()
    yield folder
    for file in folder.glob("*.pid"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(file.read_text()), signal.SIGKILL)


@contextlib.contextmanager
def _own_endpoint(scenario, work):
    if scenario in ANSWERS:
        with ScriptedServer(ANSWERS[scenario]) as server:
            yield {"BASE_URL": server.url, "MODEL": "my-model"}
        return
    if scenario not in OWN_ENDPOINT:
        yield {}
        return
    key = OWN_ENDPOINT[scenario]
    with StandIn(work / "benchmark", key=key).served() as server:
        variables = {"BASE_URL": server.url, "MODEL": GOLD, "PROVIDER_KEY": key}
        yield {name: value for name, value in variables.items() if value}


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_blocks_of_a_scenario_run_in_order(scenario, work, environment):
    with _own_endpoint(scenario, work) as variables:
        for page in SCENARIOS[scenario]:
            _run_page(page, scenario, work, environment | variables)


def _run_page(page, scenario, work, environment):
    printed = ""
    for block in scenario_blocks(page, scenario):
        if block.kind == "shows":
            assert f"{block.text}\n" in printed, f"{page} shows what is not printed"
            continue
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.text],
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
        assert done.returncode == 0, f"{page}\n{block.text}\n{done.stderr}"
        printed = done.stdout
