"""Certification finds every broken promise of a pack by running it."""

import json

import anyio
import pytest

from harness.benchmark.certification import CHECKS, checks_of
from harness.benchmark.certify import certify
from harness.benchmark.never_returns import (
    hanging_endpoint_problem,
    hanging_tool_problem,
)
from harness.benchmark.templates import expand
from harness.errors import OracleError, UsageError
from tests.benchmark.shop import (
    ASSERTIONS,
    BACKEND,
    CASES,
    TOOLS,
    loaded,
    oracle,
    purchase,
    template,
)

pytestmark = pytest.mark.slow


def _certified(pack):
    async def main():
        return await certify(pack, expand(pack, seed=0), oracle())

    return anyio.run(main)


def _broken(certification):
    return {
        name: check.status
        for name, check in certification.checks.items()
        if check.status != "passed"
    }


def _texts(certification, name):
    return json.dumps(certification.checks[name].failures)


def test_sound_pack_passes_every_check(tmp_path):
    pack = loaded(tmp_path, template(), purchase(mutates=True))

    certification = _certified(pack)

    assert _broken(certification) == {}
    assert [c["check"] for c in certification.report(pack)["checks"]] == list(CHECKS)


LYING = (
    BACKEND.replace('return ["get_item", "buy_item"]', 'return ["get_item", "fly"]')
    .replace('{"error": {"code": "unknown_item"}}', '{"error": {"code": ""}}')
    .replace('if name == "get_item":', 'if name == "get_item":\n        look()')
    .replace('return {"status": "awaiting_confirmation"}', 'return {"status": "sold"}')
    .replace("def get_state", "def look():\n    STATE['seen'] = 1\n\n\ndef get_state")
)


@pytest.fixture(scope="module")
def lying(tmp_path_factory):
    """A pack that breaks several promises at once."""
    tools = json.loads(json.dumps(TOOLS))
    cases = json.loads(json.dumps(CASES))
    cases[0]["expect"] = {"result_class": "success", "colour": "red"}
    idle = template(template_id="idle", mutates=False)
    pack = loaded(
        tmp_path_factory.mktemp("lying"),
        purchase(mutates=False),
        idle,
        tools=tools,
        cases=cases,
        backend=LYING,
        assertions=ASSERTIONS + "\n\ndef assert_sure(**kwargs):\n    return True\n",
    )
    return _certified(pack)


def test_served_tools_are_compared_with_declared_ones(lying):
    assert "fly" in _texts(lying, "backend_schema_alignment")


def test_unmet_expectations_are_named(lying):
    assert "colour" in _texts(lying, "declared_validation_cases")


def test_unconfirmed_call_must_say_that_it_waits(lying):
    assert "awaiting_confirmation" in _texts(lying, "confirmation_policy")


def test_read_only_tool_that_changes_state_breaks_m1(lying):
    assert "a read-only tool changed state" in _texts(lying, "M1")


def test_template_that_mutates_against_its_word_breaks_m1(lying):
    assert "mutates: false does not hold" in _texts(lying, "M1")


def test_error_without_code_breaks_d2(lying):
    assert "an error without a code" in _texts(lying, "D2")


def test_broken_promises_are_not_gold(lying):
    assert (lying.gold_eligible, lying.tier) == (False, "silver")
    assert "M1.failed" in lying.ineligibility_reasons()


def test_mutating_tool_that_never_changes_state_breaks_m1(tmp_path):
    backend = BACKEND.replace('STATE["sold"].append', "list().append")

    certification = _certified(loaded(tmp_path, template(), backend=backend))

    assert "no call changed state" in _texts(certification, "M1")


def test_unseeded_randomness_is_found_twice(tmp_path):
    backend = BACKEND.replace("import copy", "import copy, uuid").replace(
        '"similar":', '"token": uuid.uuid4().hex, "similar":'
    )

    certification = _certified(loaded(tmp_path, template(), backend=backend))

    assert {"D1", "gold_replay"} <= _broken(certification).keys()
    assert "the second run differs" in _texts(certification, "gold_replay")
    assert all("replay" not in passed for passed in certification.stages.values())


def test_task_that_breaks_off_when_it_runs_alone_says_how(tmp_path):
    """The last reset of a certification fails, and no other one."""
    marker = tmp_path / "seen"
    backend = BACKEND + (
        "\n_reset = reset\n\n\ndef reset(*args, **kwargs):\n"
        "    with open(MARKER, 'a') as seen:\n        seen.write('x')\n"
        "    with open(MARKER) as seen:\n"
        "        if len(seen.read()) > LIMIT:\n"
        "            raise RuntimeError('the database is down')\n"
        "    return _reset(*args, **kwargs)\n"
    )
    counted = f"MARKER, LIMIT = {str(marker)!r}, {{limit}}\n"
    _certified(
        loaded(
            tmp_path / "a", template(), backend=counted.format(limit=10**6) + backend
        )
    )
    resets = len(marker.read_text())
    marker.unlink()

    certification = _certified(
        loaded(
            tmp_path / "b",
            template(),
            backend=counted.format(limit=resets - 1) + backend,
        )
    )

    (failure,) = certification.checks["state_bleed"].failures
    assert "the database is down" in failure["ended"]


def test_task_that_differs_alone_is_state_bleed(tmp_path):
    backend = BACKEND.replace("import copy", "import copy, os\n\nHOME = os.getpid()")
    backend = backend.replace('"similar":', '"alone": os.getpid() == HOME, "similar":')

    certification = _certified(loaded(tmp_path, template(), backend=backend))

    assert _broken(certification) == {"state_bleed": "failed"}


def test_assertion_that_returns_something_is_no_pass(tmp_path):
    assertions = ASSERTIONS + "\n\ndef assert_sure(**kwargs):\n    return True\n"
    made = template(success_assertions=["assert_sure"])

    certification = _certified(loaded(tmp_path, made, assertions=assertions))

    assert _broken(certification) == {"gold_assertions": "failed"}


def test_assertions_that_never_apply_are_no_pass(tmp_path):
    assertions = (
        "def assert_sold(**kwargs):\n"
        "    return {'status': 'not_applicable', 'detail': 'never'}\n"
    )

    certification = _certified(loaded(tmp_path, assertions=assertions))

    assert _broken(certification) == {"gold_assertions": "failed"}


def test_computed_exports_are_checked_by_importing(tmp_path):
    assertions = (
        "ASSERTIONS = dict(assert_other=lambda *, state, trace, task, ctx: None)\n"
    )

    certification = _certified(loaded(tmp_path, assertions=assertions))

    assert "assert_sold" in _texts(certification, "assertions_importable")


def test_pack_that_does_not_import_skips_what_needs_it(tmp_path):
    backend = "raise RuntimeError('broken shop')\n"

    certification = _certified(loaded(tmp_path, backend=backend))

    broken = _broken(certification)
    assert broken["backend_schema_alignment"] == "failed"
    assert broken["gold_replay"] == broken["D1"] == "skipped"
    assert "broken shop" in _texts(certification, "backend_schema_alignment")


def test_worker_that_dies_in_a_probe_fails_its_case(tmp_path):
    backend = BACKEND.replace("import copy", "import copy, os").replace(
        "    if not found:", "    if not found:\n        os._exit(3)"
    )

    certification = _certified(loaded(tmp_path, purchase(), backend=backend))

    assert "get_unknown" in _texts(certification, "declared_validation_cases")


def test_hanging_tool_is_killed():
    assert anyio.run(hanging_tool_problem, oracle()) == ""


def _endpoint(port, **more):
    config = {
        "protocol_version": "bfcl-oracle-http-v1",
        "base_url": f"https://127.0.0.1:{port}",
        "expected": {
            "oracle_id": "o",
            "oracle_version": "1",
            "content_digest": "sha256:" + "0" * 64,
        },
        **more,
    }
    return {"backend.py": None, "endpoint_config.yaml": json.dumps(config)}


def test_endpoint_that_does_not_answer_is_no_verdict(tmp_path):
    with pytest.raises(OracleError, match="Connection refused") as caught:
        _certified(loaded(tmp_path, files=_endpoint(1)))

    assert caught.value.code == "eval_oracle_session_failed"


def test_credential_without_a_policy_is_no_verdict(tmp_path, monkeypatch):
    monkeypatch.delenv("BFCL_ENDPOINT_CREDENTIAL_POLICY", raising=False)
    auth = {"bearer_token_env": "ORACLE_TOKEN"}

    with pytest.raises(UsageError) as caught:
        _certified(loaded(tmp_path, files=_endpoint(1, auth=auth)))

    assert caught.value.code == "eval_oracle_credentials_refused"


def test_endpoint_that_never_answers_is_killed_in_time():
    assert anyio.run(hanging_endpoint_problem, oracle()) == ""


def test_endpoint_pack_has_two_checks_of_its_own(tmp_path):
    local = loaded(tmp_path / "local", template())
    remote = loaded(tmp_path / "remote", template(), files=_endpoint(1))

    assert list(checks_of(local)) == list(CHECKS)
    assert list(checks_of(remote)) == [
        *CHECKS,
        "endpoint_identity",
        "endpoint_attestation",
    ]
