"""Endpoint packs on their way to a publication: attested, identified, confirmed."""

import json

import anyio
import pytest

from harness.benchmark.certify import certify
from harness.benchmark.pack import load_pack
from harness.benchmark.publication import confirm_endpoint
from harness.benchmark.templates import expand
from harness.errors import OracleError
from tests.benchmark.shop import loaded, oracle, purchase, template, write_pack
from tests.oracle.endpoints import CERTIFICATE, IDENTITY, scripted_oracle
from tests.oracle.reference import reference_server

pytestmark = pytest.mark.slow


def shop_behind(folder, server):
    """Return the shop as a pack whose oracle is the scripted one."""
    expected = {k: v for k, v in IDENTITY.items() if k != "protocol_version"}
    config = {
        "protocol_version": IDENTITY["protocol_version"],
        "base_url": f"https://127.0.0.1:{server.port}/base",
        "expected": expected,
        "tls": {"ca_bundle_path": "ca.pem"},
    }
    return loaded(
        folder,
        files={
            "backend.py": None,
            "endpoint_config.yaml": json.dumps(config),
            "ca.pem": CERTIFICATE.read_text(),
        },
    )


def test_certified_oracle_is_confirmed_and_another_one_stops_it(tmp_path):
    with scripted_oracle() as (served, server):
        pack = shop_behind(tmp_path / "pack", server)
        anyio.run(confirm_endpoint, pack, oracle())
        served.identity["oracle_version"] = "4"

        with pytest.raises(OracleError, match="oracle_version") as caught:
            anyio.run(confirm_endpoint, pack, oracle())

    assert caught.value.code == "eval_oracle_identity_drift"


def test_oracle_that_has_gone_stops_it(tmp_path):
    with scripted_oracle() as (_, server):
        pack = shop_behind(tmp_path / "pack", server)

    with pytest.raises(OracleError, match="does not answer any more") as caught:
        anyio.run(confirm_endpoint, pack, oracle())

    assert caught.value.code == "eval_oracle_session_failed"


def test_local_pack_has_nothing_to_confirm(tmp_path):
    anyio.run(confirm_endpoint, loaded(tmp_path), oracle())


def test_pack_without_an_attestation_is_not_gold_for_that_alone(tmp_path):
    local = write_pack(tmp_path / "local", template(), purchase(mutates=True))
    remote = tmp_path / "remote"

    async def certified():
        pack = load_pack(remote)
        return await certify(pack, expand(pack, seed=0), oracle())

    with reference_server(tmp_path, local, "--write-pack", remote) as server:
        certification = anyio.run(certified)

    assert certification.ineligibility_reasons() == ["endpoint_attestation.failed"]
    assert certification.tier == "silver"
    assert set(server.sessions().values()) == {"deleted"}
