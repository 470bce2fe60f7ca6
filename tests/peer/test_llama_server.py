"""Whole runs against llama.cpp's server and a real, very small model.

Nothing here says how good the model is. In one run it may finish its answers, in the
other they are cut after a few tokens.
"""

import hashlib
import json
from collections import Counter

import anyio
import pytest

from harness.benchmark.bundled import resolve_pack
from harness.benchmark.pack import load_pack
from harness.benchmark.publication import publish
from harness.causes import CAUSES, exit_status
from harness.config.starter import (
    OracleFiles,
    starter_candidate,
    write_starter_config,
)
from harness.evidence.task_table import read_task_rows
from harness.oracle.certifying import CertifyingOracle
from tests.peer.serving import MODEL, fairtrial, require_packages, served

pytestmark = [pytest.mark.peer, pytest.mark.slow, pytest.mark.timeout(900)]

MAX_TOKENS = {"whole": 40, "cut": 6}
"""For each run: a call of the library takes 30 to 40 tokens."""
LIMITS = {
    ("limits", "max_parallel_tasks"): 2,
    ("limits", "candidate_timeout_s"): 120.0,
    ("limits", "episode_timeout_s"): 400.0,
}


@pytest.fixture(scope="module", autouse=True)
def _packages():
    require_packages()


def _publish(folder):
    async def published():
        return await publish(
            load_pack(resolve_pack("library")),
            folder,
            max_variants=1,
            oracle=CertifyingOracle(),
        )

    return anyio.run(published).rows


def _write_config(path, benchmark, base_url, max_tokens):
    pack = resolve_pack("library")
    write_starter_config(
        path,
        run_manifest=benchmark / "run_manifest.json",
        candidates=[starter_candidate(base_url, MODEL)],
        oracle=OracleFiles("python", pack / "manifest.yaml", pack / "backend.py"),
        output_dir=path.stem,
        changes=LIMITS | {("candidates", 0, "inference", "max_tokens"): max_tokens},
    )


class PeerRun:
    """A run folder, how its command ended, and how many tasks were planned."""

    def __init__(self, config, planned):
        self.planned = planned
        self.done = fairtrial("run", str(config), "--json")
        self.folder = config.with_suffix("")
        assert (self.folder / "eval_manifest.json").is_file(), self.done.stderr
        self.rows = list(read_task_rows(self.folder / "eval_task_results.parquet"))
        self.causes = Counter(row.cause for row in self.rows)

    def attempts(self):
        """Every recorded attempt at a request."""
        with (self.folder / "candidate_io_cache.jsonl").open("rb") as lines:
            for line in lines:
                record = json.loads(line)
                if record["record_type"] == "attempt":
                    yield record["payload"]["attempt"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory, _packages):
    folder = tmp_path_factory.mktemp("peer")
    planned = _publish(folder / "benchmark")
    made = {}
    with served(folder / "server.log") as base_url:
        for name, max_tokens in MAX_TOKENS.items():
            config = folder / f"{name}.yaml"
            _write_config(config, folder / "benchmark", base_url, max_tokens)
            made[name] = PeerRun(config, planned)
    return made


@pytest.fixture(params=MAX_TOKENS)
def peer(request, runs):
    return runs[request.param]


def test_command_ends_done_or_over_its_cap_of_stops(peer):
    assert peer.done.returncode in (0, exit_status("stops.share_over_cap"))


def test_every_planned_episode_is_one_row_of_the_task_table(peer):
    assert len(peer.rows) == peer.planned
    assert len({row.task_id for row in peer.rows}) == peer.planned


def test_every_episode_ends_in_a_row_of_the_cause_table(peer):
    owners = {row.cause: row.owner for row in peer.rows}

    assert owners == {cause: CAUSES[cause].owner for cause in owners}


def test_calls_that_the_server_parsed_ran_in_the_live_pack(runs):
    assert sum(row.executed_calls for row in runs["whole"].rows) > 0


def test_answers_that_the_server_cut_are_booked_as_cut(runs):
    assert runs["cut"].causes == {"episode.incomplete_finish": runs["cut"].planned}


def test_evidence_holds_the_bytes_that_the_server_sent(peer):
    bodies = [
        (each["raw_response"].encode(), each["raw_response_hash"])
        for each in peer.attempts()
        if each["http_status"] == 200
    ]

    assert bodies
    assert [hash_ for _, hash_ in bodies] == [
        f"sha256:{hashlib.sha256(body).hexdigest()}" for body, _ in bodies
    ]
    assert {json.loads(body)["model"] for body, _ in bodies} == {MODEL}


def test_replay_without_the_server_gives_equal_hashes(peer):
    replayed = fairtrial("replay", str(peer.folder), "--json")
    stated = json.loads((peer.folder / "eval_manifest.json").read_text())

    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    answer = json.loads(replayed.stdout)
    assert answer["equal"] is True
    assert answer["aggregate_hashes"] == stated["candidate_aggregates"]
