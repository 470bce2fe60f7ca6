"""`fairtrial config init`, run as people run it."""

import json
import shutil

import pytest
import yaml

from harness.benchmark.bundled import bundled_pack
from harness.cli.main import main
from harness.config import load_config
from tests.config.config_files import Workspace

URL = "http://127.0.0.1:8000/v1"


@pytest.fixture
def workspace(tmp_path):
    made = Workspace(tmp_path)
    shutil.rmtree(made.pack)
    shutil.copytree(bundled_pack("library"), made.pack)
    return made


def _init(workspace, *words, output="new.yaml"):
    return main(["config", "init", *words, "--output", str(workspace.root / output)])


def _endpoint(workspace):
    benchmark = str(workspace.manifest.parent)
    return ("--benchmark", benchmark, "--base-url", URL, "--model", "gold")


def test_init_writes_a_trace_config(workspace):
    status = _init(workspace, *_endpoint(workspace))

    config = load_config(workspace.root / "new.yaml")
    assert (status, config.eval.mode) == (0, ("trace",))


@pytest.mark.parametrize("pack", ["library", "folder", "published"])
def test_init_writes_an_executable_config(workspace, capsys, pack):
    words = {
        "library": ("--pack", "library"),
        "folder": ("--pack", str(workspace.pack)),
        "published": ("--mode", "executable"),
    }[pack]
    status = _init(workspace, *_endpoint(workspace), *words)

    config = load_config(workspace.root / "new.yaml")
    chosen = "the bundled pack library" in capsys.readouterr().out
    assert (status, config.eval.mode) == (0, ("executable",))
    assert chosen == (pack == "published")


def test_init_names_the_key_variable_and_alias(workspace):
    _init(workspace, *_endpoint(workspace), "--api-key-env", "KEY", "--alias", "mine")

    endpoint = load_config(workspace.root / "new.yaml").endpoint("mine")
    assert endpoint["api_key_env"] == "KEY"


def test_init_prints_json(workspace, capsys):
    _init(workspace, *_endpoint(workspace), "--json")

    printed = json.loads(capsys.readouterr().out)
    config = load_config(workspace.root / "new.yaml")
    assert printed["eval_config_hash"] == config.eval_config_hash


def test_init_refuses_an_existing_file(workspace, capsys):
    assert _init(workspace, *_endpoint(workspace), output="eval.yaml") == 2
    assert "eval_output_exists" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["--benchmark", "--base-url", "--model"])
def test_init_needs_its_options(workspace, capsys, missing):
    words = list(_endpoint(workspace))
    at = words.index(missing)
    del words[at : at + 2]

    assert _init(workspace, *words) == 2
    assert f"{missing} is missing" in capsys.readouterr().err


def test_init_refuses_a_folder_that_is_no_publication(workspace, capsys):
    words = ("--benchmark", str(workspace.root), "--base-url", URL, "--model", "m")

    assert _init(workspace, *words) == 2
    assert "no run_manifest.json" in capsys.readouterr().err


def test_init_refuses_a_bad_endpoint_and_leaves_nothing(workspace):
    words = list(_endpoint(workspace))
    words[words.index(URL)] = "host/v1"

    assert _init(workspace, *words) == 2
    assert not (workspace.root / "new.yaml").exists()


def test_init_says_that_a_trace_config_does_not_use_the_pack(workspace, capsys):
    words = ("--mode", "trace", "--pack", "library")

    assert _init(workspace, *_endpoint(workspace), *words) == 0
    assert "--pack is not used" in capsys.readouterr().out


def _older(workspace, candidates=2):
    document = yaml.safe_load(workspace.config.read_text("utf-8"))
    document["schema_version"] = "1.2"
    del document["kind"], document["isolation"], document["limits"]["worker"]
    document["candidates"] = document["candidates"][:candidates]
    for section in document["candidates"]:
        del section["echo_reasoning"]
    old = workspace.root / "old.yaml"
    old.write_text(yaml.safe_dump(document), "utf-8")
    return ("--from", str(old))


def test_conversion_needs_no_other_option(workspace, capsys):
    assert _init(workspace, *_older(workspace)) == 0

    out = capsys.readouterr().out
    assert load_config(workspace.root / "new.yaml").candidate_aliases == (
        "alpha",
        "beta",
    )
    assert "chosen: limits.worker: older evaluators set no limits" in out


def test_options_replace_values_of_the_converted_config(workspace):
    words = (*_older(workspace, 1), *_endpoint(workspace), "--mode", "trace")
    assert _init(workspace, *words) == 0

    config = load_config(workspace.root / "new.yaml")
    (only,) = config.candidates
    assert (only.model, only.api.base_url) == ("gold", URL)
    assert only.model_identity.revision is None
    assert (config.eval.mode, config.source_oracle) == (("trace",), None)


def test_model_names_the_candidate_whose_endpoint_is_replaced(workspace):
    url = "http://127.0.0.1:9000/v1"
    words = (*_older(workspace), "--base-url", url, "--model", "beta")
    assert _init(workspace, *words) == 0

    config = load_config(workspace.root / "new.yaml")
    assert config.endpoint("beta")["base_url"] == url
    assert config.endpoint("alpha")["base_url"] != url
    assert config.candidate("beta").model_identity.revision is not None


def test_endpoint_for_nobody_in_particular_is_refused(workspace, capsys):
    words = (*_older(workspace), "--base-url", URL, "--model", "gamma")

    assert _init(workspace, *words) == 2
    assert "has 2 candidates" in capsys.readouterr().err
