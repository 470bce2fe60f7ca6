"""`fairtrial doctor` as a user calls it."""

import json

import pytest

from harness.cli.main import main
from tests.doctor.endpoint import answering, refusing
from tests.servers import ScriptedServer, completion


def doctor(server, *words):
    return main(["doctor", "--base-url", server.url, "--model", "m", *words])


def test_good_endpoint_exits_0_with_a_table_and_a_summary(capsys):
    with ScriptedServer(answering()) as server:
        status = doctor(server)

    lines = capsys.readouterr().out.splitlines()
    assert status == 0
    assert lines[-1] == "doctor: good 10, costs 0, cannot tell 0"
    assert any(line.startswith("nested arguments") for line in lines)


def test_endpoint_that_costs_exits_1_and_says_what_is_lost(capsys):
    with ScriptedServer(answering(tool_call=completion("Sunny."))) as server:
        status = doctor(server)

    out = capsys.readouterr().out
    assert status == 1
    assert "loses: tasks that need a call fail" in out


def test_json_holds_the_ten_verdicts(capsys):
    with ScriptedServer(answering()) as server:
        doctor(server, "--json")

    report = json.loads(capsys.readouterr().out)
    assert report["counts"] == {"good": 10, "costs": 0, "cannot_tell": 0}
    assert [probe["verdict"] for probe in report["probes"]] == ["good"] * 10


def test_refused_key_exits_2(capsys, monkeypatch):
    monkeypatch.setenv("DOCTOR_KEY", "k-123456")
    with ScriptedServer(refusing(401)) as server:
        status = doctor(server, "--api-key-env", "DOCTOR_KEY")

    assert status == 2
    assert "the key is refused" in capsys.readouterr().out


@pytest.mark.slow
def test_place_where_nobody_listens_exits_2(capsys):
    status = main(["doctor", "--base-url", "http://127.0.0.1:9/v1", "--model", "m"])

    assert status == 2
    assert "transport_error" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--model", "m"],
        ["--sandbox", "--model", "m"],
        ["--base-url", "ftp://x/v1", "--model", "m"],
        ["--base-url", "http://x", "--model", "m", "--api-key-env", "NO_SUCH_KEY"],
    ],
)
def test_usage_errors_exit_2_with_their_remedy(words, capsys, monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)

    status = main(["doctor", *words])

    assert status == 2
    assert "--help" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://user:hunter2@127.0.0.1:9/v1", "secret_in_eval_config"),
        ("http://127.0.0.1:9/v1?key=hunter2", "eval_config_invalid"),
    ],
)
def test_secret_in_an_address_is_refused_and_not_shown(url, code, capsys):
    status = main(["doctor", "--base-url", url, "--model", "m", "--json"])

    shown = capsys.readouterr()
    assert status == 2
    assert shown.err.startswith(code)
    assert "hunter2" not in shown.out + shown.err


def test_sandbox_names_every_level(capsys):
    status = main(["doctor", "--sandbox"])

    out = capsys.readouterr().out
    assert status == 0
    assert all(level in out for level in ("process", "confined", "namespaces"))


def test_sandbox_as_json(capsys):
    main(["doctor", "--sandbox", "--json"])

    assert set(json.loads(capsys.readouterr().out)["levels"]) == {
        "process",
        "confined",
        "namespaces",
    }
