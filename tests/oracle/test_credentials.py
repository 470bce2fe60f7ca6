"""Credentials come from a grant of the operator and show themselves nowhere."""

import copy
import json
import os
import pickle

import pytest

from harness.benchmark.endpoint_config import load_endpoint
from harness.errors import UsageError
from harness.oracle.credentials import POLICY_VARIABLE, resolve_credentials

URL = "https://oracle.example/v"
SECRET = "very-secret-value"


@pytest.fixture
def resolve(tmp_path):
    """Return a function from auth, grants and variables to credentials."""

    def resolve(auth, grants=None, *, policy=None, **variables):
        config = {
            "protocol_version": "bfcl-oracle-http-v1",
            "base_url": URL + "/",
            "expected": {
                "oracle_id": "o",
                "oracle_version": "1",
                "content_digest": "sha256:" + "0" * 64,
            },
            **({"auth": auth} if auth else {}),
        }
        file = tmp_path / "endpoint_config.yaml"
        file.write_text(json.dumps(config))
        if policy is None and grants is not None:
            policy = json.dumps(
                {
                    "schema_version": "bfcl-endpoint-credential-policy-v1",
                    "grants": grants,
                }
            )
        if policy is not None:
            place = tmp_path / "policy.json"
            place.write_text(policy)
            variables[POLICY_VARIABLE] = str(place)
        return resolve_credentials(load_endpoint(file, tmp_path), variables)

    return resolve


def grant(*references, base_url=URL):
    return {"base_url": base_url, "credential_references": list(references)}


BEARER = {"bearer_token_env": "TOKEN"}


def test_pack_without_auth_needs_no_policy(resolve):
    assert resolve(None).introduction() == {"op": "open", "headers": {}, "secrets": []}


def test_granted_references_become_headers(resolve, tmp_path):
    file = tmp_path / "key"
    file.write_text(SECRET + "\n")
    auth = {
        "bearer_token_env": "TOKEN",
        "headers": {"X-A": "env:OTHER", "X-B": f"file:{file}"},
    }

    found = resolve(
        auth,
        [grant("env:TOKEN", "OTHER"), grant(f"file:{file}")],
        TOKEN="abc",
        OTHER="d e",
    ).introduction()

    assert found["headers"] == {
        "Authorization": "Bearer abc",
        "X-A": "d e",
        "X-B": SECRET,
    }
    assert sorted(found["secrets"]) == ["abc", "d e", SECRET]


@pytest.mark.parametrize("url", ["HTTPS://Oracle.Example:443/v/", URL, URL + "/"])
def test_address_is_compared_in_its_normal_form(resolve, url):
    resolve(BEARER, [grant("TOKEN", base_url=url)], TOKEN=SECRET)


@pytest.mark.parametrize(
    "grants",
    [
        [],
        [grant("OTHER")],
        [grant("TOKEN", base_url="https://oracle.example")],
        [grant("TOKEN", base_url="https://oracle.example:8443/v")],
        [grant("TOKEN", base_url="https://oracle.example/v/w")],
    ],
    ids=["none", "another", "host alone", "another port", "below"],
)
def test_what_is_not_granted_is_not_read(resolve, grants):
    with pytest.raises(UsageError, match="does not grant") as caught:
        resolve(BEARER, grants, TOKEN=SECRET)

    assert caught.value.code == "eval_oracle_credentials_refused"
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("variables", [{}, {POLICY_VARIABLE: ""}])
def test_without_a_policy_nothing_is_granted(resolve, variables):
    with pytest.raises(UsageError, match="no policy that grants any"):
        resolve(BEARER, TOKEN=SECRET, **variables)


@pytest.mark.parametrize(
    "policy",
    [
        "{",
        "[]",
        '{"schema_version": "bfcl-endpoint-credential-policy-v1"}',
        '{"schema_version": "2", "grants": []}',
        '{"schema_version": "bfcl-endpoint-credential-policy-v1", "grants": {}}',
        '{"schema_version": "bfcl-endpoint-credential-policy-v1", "grants": [1]}',
        json.dumps(
            {
                "schema_version": "bfcl-endpoint-credential-policy-v1",
                "grants": [{**grant("TOKEN"), "more": 1}],
            }
        ),
        json.dumps(
            {
                "schema_version": "bfcl-endpoint-credential-policy-v1",
                "grants": [grant("TOKEN", base_url="http://oracle.example/v")],
            }
        ),
        json.dumps(
            {
                "schema_version": "bfcl-endpoint-credential-policy-v1",
                "grants": [grant("not a reference")],
            }
        ),
        json.dumps(
            {
                "schema_version": "bfcl-endpoint-credential-policy-v1",
                "grants": [{**grant(), "credential_references": "TOKEN"}],
            }
        ),
        '{"schema_version": "bfcl-endpoint-credential-policy-v1", "grants": [], '
        '"grants": []}',
    ],
)
def test_broken_policy_grants_nothing(resolve, policy):
    with pytest.raises(UsageError, match="the credential policy"):
        resolve(BEARER, policy=policy, TOKEN=SECRET)


def test_policy_that_is_not_there_grants_nothing(resolve, tmp_path):
    missing = {POLICY_VARIABLE: str(tmp_path / "none.json")}

    with pytest.raises(UsageError, match="No such file"):
        resolve(BEARER, TOKEN=SECRET, **missing)


def test_policy_that_is_a_pipe_is_not_waited_for(resolve, tmp_path):
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(UsageError, match="Not a regular file"):
        resolve(BEARER, TOKEN=SECRET, **{POLICY_VARIABLE: str(tmp_path / "pipe")})


def test_secret_that_is_a_pipe_is_not_waited_for(resolve, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reference = f"file:{tmp_path}/pipe"

    with pytest.raises(UsageError, match="cannot be used"):
        resolve({"bearer_token_ref": reference}, [grant(reference)])


@pytest.mark.parametrize("value", [None, "", "line\nbreak", "é", "a\tb"])
def test_credential_that_no_header_can_carry_is_refused_unseen(resolve, value):
    variables = {} if value is None else {"TOKEN": value}

    with pytest.raises(UsageError, match="cannot be used") as caught:
        resolve(BEARER, [grant("TOKEN")], **variables)

    assert not value or value not in str(caught.value)


def test_file_that_is_not_there_is_refused(resolve, tmp_path):
    reference = f"file:{tmp_path}/none"

    with pytest.raises(UsageError, match="cannot be used"):
        resolve({"bearer_token_ref": reference}, [grant(reference)])


@pytest.mark.parametrize("way", [repr, str, "{}".format])
def test_credentials_have_no_text(resolve, way):
    assert SECRET not in way(resolve(BEARER, [grant("TOKEN")], TOKEN=SECRET))


@pytest.mark.parametrize("way", [pickle.dumps, copy.copy, copy.deepcopy])
def test_credentials_are_never_copied(resolve, way):
    credentials = resolve(BEARER, [grant("TOKEN")], TOKEN=SECRET)

    with pytest.raises(TypeError):
        way(credentials)
