"""The library behind HTTPS: certified, published, run, and equal to the local one."""

import json
import shutil

import anyio
import pytest

from harness.benchmark.bundled import bundled_pack
from harness.benchmark.pack import load_pack
from harness.benchmark.publication import publish
from harness.benchmark.source import verify_source
from harness.benchmark.tables import read_rows
from harness.cli.main import main
from harness.config.starter import (
    OracleFiles,
    starter_candidate,
    write_starter_config,
)
from harness.errors import OracleError, SourceError, UsageError
from harness.evidence.task_table import read_task_rows
from harness.oracle.certifying import CertifyingOracle
from harness.oracle.contracts import WorkerDeadlines
from harness.oracle.sandbox import detect_sandbox
from harness.run.evaluate import dry_run, evaluate
from harness.verification.extras import all_extras
from harness.verification.verify import verify
from tests.oracle.reference import reference_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

TOKEN = "oracle-token-" + "73a1f09c52"
POLICY = "BFCL_ENDPOINT_CREDENTIAL_POLICY"
PATIENT = WorkerDeadlines(30.0, 30.0, 30.0, 30.0, 30.0, 10.0)
PATIENT_LIMITS = [
    ("limits", f"{operation}_timeout_s")
    for operation in ("import", "reset", "tool", "state", "assertion", "close")
]
CONFORMANCE = b'{"kind":"bfcl-endpoint-conformance-v1","result":"passed"}'


class Remote:
    """An endpoint pack, its server and what was made with them."""

    def __init__(self, folder):
        self.folder = folder
        self.pack = folder / "pack"
        self.benchmark = folder / "benchmark"
        self.policy = folder / "policy.json"
        self.server = None
        (folder / "conformance.json").write_bytes(CONFORMANCE)

    def serving(self, pack="library", *, port=0, write=False):
        options = ["--conformance", self.folder / "conformance.json"]
        options += ["--bearer-token-env", "ORACLE_TOKEN"]
        if write:
            options += ["--write-pack", self.pack]
        return reference_server(
            self.folder, pack, *options, port=port, ORACLE_TOKEN=TOKEN
        )

    def grant(self, base_url):
        grants = [{"base_url": base_url, "credential_references": ["ORACLE_TOKEN"]}]
        schema = "bfcl-endpoint-credential-policy-v1"
        self.policy.write_text(json.dumps({"schema_version": schema, "grants": grants}))

    def config(self, folder, base_url, *models, publication=None, **changes):
        return write_starter_config(
            folder / "eval.yaml",
            run_manifest=(publication or self.benchmark) / "run_manifest.json",
            candidates=[starter_candidate(base_url, model) for model in models],
            oracle=OracleFiles(
                "endpoint",
                self.pack / "manifest.yaml",
                self.pack / "endpoint_config.yaml",
            ),
            output_dir="out",
            changes={
                **dict.fromkeys(PATIENT_LIMITS, 30.0),
                **{tuple(k.split("__")): v for k, v in changes.items()},
            },
        )


def evaluated(config, *, resume=False):
    return evaluate(
        config,
        resume=resume,
        watch=lambda _: None,
        render_page=lambda _: "<!doctype html>\n",
    )


@pytest.fixture(scope="module")
def remote(tmp_path_factory):
    """The library served by the reference server, and published over HTTP."""
    remote = Remote(tmp_path_factory.mktemp("remote"))
    with pytest.MonkeyPatch.context() as patch, remote.serving(write=True) as server:
        remote.server = server
        remote.grant(server.url)
        patch.setenv("ORACLE_TOKEN", TOKEN)
        patch.setenv(POLICY, str(remote.policy))
        pack = load_pack(remote.pack)
        oracle = CertifyingOracle(deadlines=PATIENT)
        remote.published = anyio.run(
            lambda: publish(pack, remote.benchmark, oracle=oracle)
        )
        yield remote


def test_publication_is_gold_and_says_who_answered(remote):
    checks = {c["check"]: c["status"] for c in remote.published.report["checks"]}
    manifest = json.loads((remote.benchmark / "run_manifest.json").read_text())
    endpoint = manifest["oracle"]["endpoint"]

    assert remote.published.exit_status == 0
    assert set(checks.values()) == {"passed"}
    assert {"endpoint_identity", "endpoint_attestation", "T1"} <= checks.keys()
    assert manifest["oracle"]["kind"] == "endpoint"
    assert endpoint["base_url"] == remote.server.url
    assert endpoint["oracle_id"] == "library"
    assert endpoint["attestation"]["kind"] == "bfcl-endpoint-conformance-v1"


def test_rows_are_those_of_the_local_pack(remote, benchmark):
    local = list(read_rows(benchmark / "benchmark.parquet"))

    assert list(read_rows(remote.benchmark / "benchmark.parquet")) == local


@pytest.fixture(scope="module")
def finished(remote, controls, tmp_path_factory):
    """A whole run over HTTP, at the strongest level of this machine."""
    folder = tmp_path_factory.mktemp("endpoint-run")
    levels = detect_sandbox()["levels"]
    level = max((n for n in levels if levels[n]["available"]), key=list(levels).index)
    config = remote.config(
        folder, controls, "gold", "wrong-argument", isolation__level=level
    )
    assert evaluated(config).exit_status == 0
    return folder / "out"


def test_gold_is_gold_and_every_verdict_is_that_of_the_local_pack(finished, bench):
    bench.run(bench.config("gold", "wrong-argument"))
    report = json.loads((finished / "eval_report.json").read_text())
    by_alias = {c["alias"]: c for c in report["candidates"]}
    local = {c["alias"]: c for c in bench.report()["candidates"]}

    assert by_alias["gold"]["metrics"]["task_success_rate"]["value"] == 1.0
    for alias in ("gold", "wrong-argument"):
        assert by_alias[alias]["metrics"] == local[alias]["metrics"]
    assert _verdicts(finished) == _verdicts(bench.output())


def _verdicts(folder):
    return [
        {
            name: value
            for name, value in row.semantic_payload().items()
            if name not in ("episode_hash", "score_hash", "latency_ms")
        }
        for row in read_task_rows(folder / "eval_task_results.parquet")
    ]


def test_every_session_of_publication_and_run_is_deleted(remote, finished):
    fates = remote.server.sessions()

    assert len(fates) > 200
    assert set(fates.values()) == {"deleted"}


def test_secret_is_in_nothing_that_was_written(remote, finished):
    files = [
        path
        for root in (finished.parent, remote.folder)
        for path in root.rglob("*")
        if path.is_file()
    ]
    holding = [path for path in files if TOKEN.encode() in path.read_bytes()]

    assert len(files) > 20
    assert holding == []


def test_finished_run_replays_without_its_oracle(finished, monkeypatch, capsys):
    monkeypatch.delenv("ORACLE_TOKEN")
    monkeypatch.delenv(POLICY)

    assert main(["replay", str(finished)]) == 0
    assert "result: equal" in capsys.readouterr().out


def test_finished_run_is_intact_without_its_oracle(finished):
    assert verify(finished, all_extras()).findings.violations == ()


def test_gates_contact_nobody(remote, controls, tmp_path):
    before = remote.server.log()
    config = remote.config(tmp_path, controls, "gold")

    found = dry_run(config)

    assert found["status"] == "preflight_passed"
    assert found["oracle_probed"] is False
    assert remote.server.log() == before


def test_endpoint_that_is_not_the_published_one_is_refused(remote, controls, tmp_path):
    publication = tmp_path / "publication"
    shutil.copytree(remote.benchmark, publication)
    manifest = json.loads((publication / "run_manifest.json").read_text())
    manifest["oracle"]["endpoint"]["base_url"] = "https://other.example"
    (publication / "run_manifest.json").write_text(json.dumps(manifest))
    config = remote.config(tmp_path, controls, "gold", publication=publication)

    with pytest.raises(SourceError, match="not the published one") as caught:
        verify_source(config)

    assert caught.value.code == "eval_source_oracle_resource_mismatch"


def test_run_without_a_grant_is_refused_before_anybody_is_asked(
    remote, controls, tmp_path, monkeypatch
):
    monkeypatch.delenv(POLICY)
    config = remote.config(tmp_path, controls, "gold")

    with pytest.raises(UsageError) as caught:
        evaluated(config)

    assert caught.value.code == "eval_oracle_credentials_refused"
    assert main(["run", str(tmp_path / "eval.yaml"), "--resume"]) == 2


def test_other_oracle_at_the_address_stops_the_run_which_then_goes_on(
    controls, tmp_path, monkeypatch, benchmark
):
    remote = Remote(tmp_path)
    monkeypatch.setenv("ORACLE_TOKEN", TOKEN)
    monkeypatch.setenv(POLICY, str(remote.policy))
    with remote.serving(write=True) as server:
        port = int(server.url.rpartition(":")[2])
    remote.grant(server.url)
    # The publication of the same pack with a backend serves, but for its oracle.
    _as_endpoint_publication(benchmark, remote)
    config = remote.config(tmp_path, controls, "gold")

    with pytest.raises(OracleError, match="no connection"):
        evaluated(config)

    other = tmp_path / "other"
    shutil.copytree(bundled_pack("library"), other)
    with (other / "backend.py").open("a") as stream:
        stream.write("\n# Another backend.\n")
    with remote.serving(other, port=port):
        with pytest.raises(OracleError, match="content_digest") as caught:
            evaluated(config, resume=True)
        assert caught.value.code == "eval_oracle_identity_drift"

    with remote.serving(port=port) as server:
        assert evaluated(config, resume=True).exit_status == 0
        assert set(server.sessions().values()) == {"deleted"}


def _as_endpoint_publication(benchmark, remote):
    """Give a local publication the endpoint pack of the same rows."""
    shutil.copytree(benchmark, remote.benchmark)
    pack = load_pack(remote.pack)
    manifest = json.loads((remote.benchmark / "run_manifest.json").read_text())
    manifest["oracle"] = {"kind": "endpoint", "endpoint": pack.endpoint.metadata()}
    docs = pack.tree.docs_files()
    manifest["pack"] |= {
        "content_hash": pack.fingerprint.value,
        "files": {n: h for n, h in pack.files.items() if n not in docs},
    }
    (remote.benchmark / "run_manifest.json").write_text(json.dumps(manifest))
