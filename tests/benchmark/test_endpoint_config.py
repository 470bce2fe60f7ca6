"""An endpoint's file: normal forms, references, and what a publication says of it."""

import json

import pytest

from harness.benchmark.endpoint_config import (
    load_endpoint,
    normal_reference,
    normal_url,
)
from harness.errors import PackError

DIGEST = "sha256:" + "0" * 64
EXPECTED = {"oracle_id": "o", "oracle_version": "1", "content_digest": DIGEST}


def load(folder, **changes):
    content = {
        "protocol_version": "bfcl-oracle-http-v1",
        "base_url": "https://Oracle.example:443/v/",
        "expected": EXPECTED,
        **changes,
    }
    (folder / "ca.pem").write_text("x")
    file = folder / "endpoint_config.yaml"
    file.write_text(json.dumps(content))
    return load_endpoint(file, folder)


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("https://a.example", "https://a.example"),
        ("HTTPS://A.Example/", "https://a.example"),
        ("https://a.example:443/x/", "https://a.example/x"),
        ("https://a.example:8443", "https://a.example:8443"),
        ("https://[::1]:9/x", "https://[::1]:9/x"),
    ],
)
def test_address_has_one_normal_form(url, normal):
    assert normal_url(url) == normal


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://a.example",
        "https://",
        "https://u@a.example",
        "https://a.example?x",
        "https://a.example#x",
        "https://a.example:99999",
        "https://a.example/a b",
        "https://é.example",
    ],
)
def test_what_is_no_plain_address_is_refused(url):
    with pytest.raises(ValueError, match=r".*"):
        normal_url(url)


@pytest.mark.parametrize(
    ("reference", "normal"),
    [("A_1", "env:A_1"), ("env:A_1", "env:A_1"), ("file:/a b", "file:/a b")],
)
def test_reference_has_one_normal_form(reference, normal):
    assert normal_reference(reference) == normal


@pytest.mark.parametrize("reference", ["", "lower", "env:", "file:a", "vault:x", "A B"])
def test_what_is_no_reference_is_refused(reference):
    with pytest.raises(ValueError, match=r".*"):
        normal_reference(reference)


def test_defaults_are_the_contracts(tmp_path):
    endpoint = load(tmp_path)

    assert (endpoint.host, endpoint.port) == ("oracle.example", 443)
    assert endpoint.path_prefix == "/v"
    assert endpoint.max_request_bytes == endpoint.max_response_bytes == 10 << 20
    assert endpoint.references == ()
    assert (endpoint.attestation, endpoint.ca_bundle) == (None, None)


def test_references_are_collected(tmp_path):
    auth = {"bearer_token_ref": "file:/k", "headers": {"X-A": "B", "X-C": "env:B"}}

    assert load(tmp_path, auth=auth).references == ("env:B", "file:/k")


def test_bundle_is_found_in_the_pack(tmp_path):
    tls = {"ca_bundle_path": "ca.pem"}

    assert load(tmp_path, tls=tls).ca_bundle == tmp_path / "ca.pem"


def test_publication_states_identity_address_and_attestation(tmp_path):
    attestation = {"kind": "bfcl-endpoint-conformance-v1", "expected_digest": DIGEST}

    assert load(tmp_path, attestation=attestation).metadata() == {
        "protocol_version": "bfcl-oracle-http-v1",
        **EXPECTED,
        "base_url": "https://oracle.example/v",
        "attestation": {"kind": "bfcl-endpoint-conformance-v1", "digest": DIGEST},
    }


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"auth": {"headers": {"X-A": "Bearer sk-123"}}}, "credential reference"),
        ({"auth": {"bearer_token_ref": "sk-123"}}, "credential reference"),
        ({"auth": {"headers": {"X A": "B"}}}, "no header name"),
        ({"auth": {"headers": {"Transfer-Encoding": "B"}}}, "reserved"),
        ({"auth": {"headers": ["B"]}}, "not an object"),
        ({"expected": {**EXPECTED, "content_digest": "x"}}, "64 hex digits"),
        (
            {
                "auth": {},
                "expected": {**EXPECTED, "authorization_context_digest": DIGEST},
            },
            "needs principal_digest",
        ),
        ({"tls": {"ca_bundle_path": "../ca.pem"}}, "leads out of the pack"),
        ({"max_response_bytes": True}, "positive integer"),
    ],
)
def test_problem_is_reported(tmp_path, changes, words):
    with pytest.raises(PackError, match=words) as caught:
        load(tmp_path, **changes)

    assert "sk-123" not in str(caught.value)
