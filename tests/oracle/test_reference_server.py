"""The reference server speaks the protocol, refuses what it must, and cleans up."""

import json
import socket
import subprocess

import pytest

from harness.benchmark.bundled import bundled_pack
from harness.benchmark.pack import load_pack
from harness.canonical import hash_bytes
from harness.errors import PackError, UsageError
from harness.oracle.reference_server import (
    main,
    make_certificate,
    write_endpoint_pack,
)
from tests.oracle.endpoints import CERTIFICATE, CLOCK, TLS
from tests.oracle.reference import reference_server

pytestmark = pytest.mark.slow

CONTEXT = {"clock": CLOCK, "seed": 1, "timeout_s": 5.0, "task_id": "t"}
TOKEN = "a-token-of-trust"
PAIR = ("--certificate", str(CERTIFICATE), "--key", str(TLS / "key.pem"))
BACKEND = """
import os
import time

STATE = {}


def list_tools():
    return ["do"]


def reset(*, ctx, fixtures=None):
    STATE.clear()
    STATE.update(fixtures or {}, timeout_s=ctx.timeout_s, task_id=ctx.task_id)


def call_tool(name, arguments, *, ctx):
    what = arguments["what"]
    if what == "raise":
        raise ValueError("broken")
    if what == "die":
        os._exit(1)
    if what == "list":
        return [ctx.turn_index]
    STATE["done"] = STATE.get("done", 0) + 1
    return {"seed": ctx.seed, "done": STATE["done"]}


def get_state():
    return dict(STATE)
"""


def _pack(folder):
    """Write a pack around BACKEND."""
    root = folder / "pack"
    root.mkdir()
    tool = {
        "type": "function",
        "function": {"name": "do", "parameters": {"type": "object"}},
    }
    case = {"id": "c", "tool": "do", "arguments": {"what": "x"}, "reset_before": True}
    negative = {**case, "id": "n", "coverage": "negative"}
    template = {
        "template_id": "t",
        "turn_policy": "single_turn",
        "slots": {},
        "success_assertions": ["assert_x"],
        "user_turn_templates": {"en": "Please act."},
        "assistant_milestones": [
            {"type": "tool_call", "tool": "do"},
            {"type": "final_answer"},
        ],
        "assistant_turn_templates": {"final_answer": {"en": "Done."}},
    }
    for name, content in {
        "manifest.yaml": {"pack_id": "served", "version": "2"},
        "tools.json": [tool],
        "validation_cases.yaml": [
            {**case, "expect": {"result_class": "success"}},
            {**negative, "expect": {"result_class": "structured_error"}},
        ],
        "task_templates.yaml": [template],
    }.items():
        (root / name).write_text(json.dumps(content))
    (root / "backend.py").write_text(BACKEND)
    (root / "assertions.py").write_text("def assert_x(*, state, trace, task, ctx): ...")
    return root


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    document = folder / "conformance.json"
    document.write_bytes(b'{ "any": "document" }\n')
    options = ("--conformance", document, "--bearer-token-env", "ORACLE_TOKEN")
    written = ("--write-pack", folder / "endpoint-pack")
    pack = _pack(folder)
    with reference_server(
        folder, pack, *options, *written, ORACLE_TOKEN=TOKEN
    ) as server:
        server.folder = folder
        yield server


def ask(server, method, path, body=None):
    return server.ask(method, path, body, Authorization=f"Bearer {TOKEN}")


def create(server, **fixtures):
    status, answer = ask(
        server, "POST", "/v1/sessions", {"context": CONTEXT, "fixtures": fixtures}
    )
    assert status == 200
    return answer


def test_metadata_names_the_pack_and_its_fingerprint(server):
    pack = load_pack(server.folder / "pack")

    assert ask(server, "GET", "/v1/metadata") == (
        200,
        {
            "protocol_version": "bfcl-oracle-http-v1",
            "oracle_id": "served",
            "oracle_version": "2",
            "content_digest": pack.fingerprint.value,
        },
    )


def test_tools_and_conformance_are_served(server):
    assert ask(server, "GET", "/v1/tools") == (200, {"tools": ["do"]})
    assert ask(server, "GET", "/v1/conformance") == (200, {"any": "document"})


def test_session_is_created_used_and_deleted(server):
    created = create(server, rows=[1])
    path = f"/v1/sessions/{created['session_id']}"
    call = {"name": "do", "arguments": {"what": "x"}, "turn_index": 3}

    assert created["oracle"] == ask(server, "GET", "/v1/metadata")[1]
    assert ask(server, "POST", f"{path}/calls", call) == (200, {"seed": 1, "done": 1})
    assert ask(server, "GET", f"{path}/state") == (
        200,
        {"rows": [1], "timeout_s": 5.0, "task_id": "t", "done": 1},
    )
    assert ask(server, "DELETE", path) == (204, None)
    assert ask(server, "GET", f"{path}/state")[0] == 404
    assert server.sessions()[created["session_id"]] == "deleted"


def test_sessions_share_nothing(server):
    first, second = create(server), create(server)
    call = {"name": "do", "arguments": {"what": "x"}, "turn_index": 0}
    path = f"/v1/sessions/{first['session_id']}"
    for _ in range(2):
        ask(server, "POST", f"{path}/calls", call)
    other = f"/v1/sessions/{second['session_id']}"

    assert ask(server, "POST", f"{other}/calls", call)[1]["done"] == 1
    for session in (path, other):
        ask(server, "DELETE", session)


def test_whole_result_of_another_type_is_passed_on(server):
    path = f"/v1/sessions/{create(server)['session_id']}"
    call = {"name": "do", "arguments": {"what": "list"}, "turn_index": 3}

    assert ask(server, "POST", f"{path}/calls", call) == (200, [3])
    assert ask(server, "DELETE", path) == (204, None)


@pytest.mark.parametrize("what", ["raise", "die"])
def test_fault_ends_the_session(server, what):
    created = create(server)
    path = f"/v1/sessions/{created['session_id']}"
    call = {"name": "do", "arguments": {"what": what}, "turn_index": 0}

    status, answer = ask(server, "POST", f"{path}/calls", call)

    assert status == 502
    assert answer["error"]["code"].startswith("oracle_")
    assert ask(server, "DELETE", path)[0] == 404
    assert server.sessions()[created["session_id"]].startswith("fault: call")


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/v1/nothing", None, 404),
        ("POST", "/v1/metadata", "{}", 404),
        ("GET", "/v1/sessions/unknown/state", None, 404),
        ("PUT", "/v1/sessions", "{}", 501),
        ("POST", "/v1/sessions", "{", 400),
        ("POST", "/v1/sessions", '{"context": {}, "fixtures": {}}', 400),
        ("POST", "/v1/sessions", '{"fixtures": {}}', 400),
        ("POST", "/v1/sessions", json.dumps({"context": CONTEXT, "fixtures": []}), 400),
        (
            "POST",
            "/v1/sessions",
            json.dumps({"context": {**CONTEXT, "seed": True}, "fixtures": {}}),
            400,
        ),
    ],
)
def test_request_outside_the_protocol_is_refused(server, method, path, body, status):
    assert ask(server, method, path, body)[0] == status


def test_request_without_the_token_is_refused(server):
    assert server.ask("GET", "/v1/metadata")[0] == 401
    assert server.ask("GET", "/v1/metadata", Authorization="Bearer x")[0] == 401


def test_body_without_a_length_is_refused(server):
    assert server.ask("POST", "/v1/sessions", Content_Length="many")[0] == 411


def test_silent_client_holds_up_nobody(server):
    port = int(server.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)):
        assert ask(server, "GET", "/v1/tools")[0] == 200


def test_written_pack_is_the_pack_without_its_backend(server):
    pack = load_pack(server.folder / "endpoint-pack")
    endpoint = pack.endpoint
    original = load_pack(server.folder / "pack")

    assert pack.oracle_kind == "endpoint"
    assert endpoint.base_url == server.url
    assert endpoint.expected["content_digest"] == original.fingerprint.value
    assert endpoint.attestation == hash_bytes(b'{ "any": "document" }\n')
    assert endpoint.bearer == "env:ORACLE_TOKEN"
    assert endpoint.ca_bundle.read_bytes() == CERTIFICATE.read_bytes()
    assert not (pack.root / "backend.py").exists()


def test_sessions_end_with_the_server(tmp_path):
    with reference_server(tmp_path, _pack(tmp_path)) as server:
        body = {"context": CONTEXT, "fixtures": {}}
        _, created = server.ask("POST", "/v1/sessions", body)

    assert server.sessions() == {created["session_id"]: "ended with the server"}


def test_certificate_is_made_once_and_fits_its_address(tmp_path):
    certificate, key = make_certificate(tmp_path / "tls", "127.0.0.1")
    made = certificate.read_bytes()
    text = subprocess.run(
        ["openssl", "x509", "-in", certificate, "-noout", "-ext", "subjectAltName"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout

    assert "IP Address:127.0.0.1" in text
    assert key.stat().st_mode & 0o077 == 0
    assert make_certificate(tmp_path / "tls", "127.0.0.1")[0].read_bytes() == made


def test_no_openssl_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(UsageError, match="`openssl` command"):
        make_certificate(tmp_path / "tls", "127.0.0.1")


def test_endpoint_pack_is_not_written_over_anything(tmp_path):
    pack = load_pack(bundled_pack("library"))

    with pytest.raises(UsageError, match="exists"):
        write_endpoint_pack(
            pack, tmp_path, base_url="https://127.0.0.1:1", certificate=CERTIFICATE
        )


def test_manifest_that_names_its_backend_has_to_be_edited(tmp_path):
    root = _pack(tmp_path)
    manifest = {"pack_id": "p", "version": "1", "paths": {"backend": "backend.py"}}
    (root / "manifest.yaml").write_text(json.dumps(manifest))

    with pytest.raises(PackError, match=r"backend\.py does not exist"):
        write_endpoint_pack(
            load_pack(root),
            tmp_path / "out",
            base_url="https://127.0.0.1:1",
            certificate=CERTIFICATE,
        )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "no certificate"),
        (["--certificate", TLS / "key.pem", "--key", TLS / "key.pem"], "cannot listen"),
        (["--certificate", "none", "--key", "none"], "--certificate names no file"),
        (["--certificate", CERTIFICATE, "--key", "."], "--key names no file"),
        ([*PAIR, "--conformance", "."], "--conformance names no file"),
    ],
)
def test_server_that_cannot_start_says_why(capsys, options, words):
    assert main(["library", *map(str, options)]) == 2
    assert words in capsys.readouterr().err


def test_variable_without_a_token_is_refused(capsys, monkeypatch):
    monkeypatch.delenv("ORACLE_TOKEN", raising=False)

    assert main(["library", *PAIR, "--bearer-token-env", "ORACLE_TOKEN"]) == 2
    assert "ORACLE_TOKEN" in capsys.readouterr().err


def test_endpoint_pack_cannot_be_served(server, capsys):
    pair = ["--certificate", str(CERTIFICATE), "--key", str(TLS / "key.pem")]

    assert main([str(server.folder / "endpoint-pack"), *pair]) == 2
    assert "no backend to serve" in capsys.readouterr().err
