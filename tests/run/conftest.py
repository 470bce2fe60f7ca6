"""A published library, its control candidates, and runs made with them."""

import json
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.from_thread
import pytest

from harness.benchmark.bundled import resolve_pack
from harness.benchmark.pack import load_pack
from harness.benchmark.publication import publish
from harness.candidates.control_process import control_server
from harness.config.starter import (
    OracleFiles,
    starter_candidate,
    write_starter_config,
)
from harness.oracle.certifying import CertifyingOracle
from harness.run.evaluate import evaluate
from tests.run.bent_server import BentControl

PACK = "library"


@pytest.fixture(scope="session")
def benchmark(tmp_path_factory):
    """The library's publication, made once."""
    folder = tmp_path_factory.mktemp("publication") / "benchmark"
    pack = load_pack(resolve_pack(PACK))

    async def published():
        return await publish(pack, folder, oracle=CertifyingOracle())

    anyio.run(published)
    return folder


@pytest.fixture(scope="session")
def controls(benchmark, tmp_path_factory):
    """A served set of control candidates: its base URL."""
    log = tmp_path_factory.mktemp("controls") / "candidates.log"
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(control_server(benchmark, log=log)) as server,
    ):
        yield server.base_url


@dataclass
class Bench:
    """Writes configs for the published library in one folder."""

    folder: Path
    publication: Path
    base_url: str

    def config(
        self,
        *models,
        executable=True,
        name="eval",
        base_url=None,
        api_key_env=None,
        **changes,
    ):
        """Write a config; `changes` are top-level sections to update."""
        pack = resolve_pack(PACK)
        flat = {
            (section, *key.split(".")): value
            for section, values in changes.items()
            for key, value in values.items()
        }
        return write_starter_config(
            self.folder / f"{name}.yaml",
            run_manifest=self.publication / "run_manifest.json",
            candidates=[
                starter_candidate(
                    base_url or self.base_url, model, api_key_env=api_key_env
                )
                for model in models
            ],
            oracle=OracleFiles("python", pack / "manifest.yaml", pack / "backend.py")
            if executable
            else None,
            output_dir=f"{name}-run",
            changes=flat,
        )

    def run(self, config, *, resume=False):
        """Evaluate and return the finished run."""
        return evaluate(
            config,
            resume=resume,
            watch=lambda _: None,
            render_page=lambda _: "<!doctype html>\n",
        )

    def output(self, name="eval"):
        """The run folder of a config by its name."""
        return self.folder / f"{name}-run"

    def report(self, name="eval"):
        """The report of a finished run."""
        return json.loads((self.output(name) / "eval_report.json").read_text())


@pytest.fixture
def bench(tmp_path, benchmark, controls):
    """Configs and runs of one test."""
    return Bench(tmp_path, benchmark, controls)


TRACED = ("gold", "extras", "shouts", "chatty", "split-group", "stutters")


@pytest.fixture(scope="session")
def bent(benchmark, tmp_path_factory):
    """Three finished runs of bent controls: `trace`, `executable`, `verbatim`."""
    bench = Bench(tmp_path_factory.mktemp("bent"), benchmark, "")
    with BentControl(benchmark).served() as server:
        bench.base_url = server.url
        bench.run(bench.config(*TRACED, executable=False, name="trace"))
        bench.run(bench.config("extras", "chatty", name="executable"))
        bench.run(
            bench.config(
                "chatty",
                executable=False,
                name="verbatim",
                scoring={"intermediate_text_matching": "verbatim"},
            )
        )
    return bench
