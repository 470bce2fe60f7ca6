import pytest
import yaml

from harness.canonical import hash_file
from harness.config import load_config
from harness.config.contract import SCORING_CONTRACTS, is_bundled_contract
from harness.config.render import render
from harness.config.starter import (
    CONTRACT_NAME,
    bundled_document,
    provider_of,
    starter_candidate,
    write_starter_config,
)
from harness.errors import ConfigError, UsageError
from harness.strict_yaml import load_yaml

URL = "http://127.0.0.1:8000/v1"


def _write(workspace, name="new/eval.yaml", **options):
    return write_starter_config(
        workspace.root / name,
        run_manifest=workspace.manifest,
        candidates=[starter_candidate(URL, "gold")],
        **options,
    )


def test_bundled_contract_has_a_released_hash():
    digest = hash_file(bundled_document(CONTRACT_NAME))

    assert is_bundled_contract(digest), (
        f"{CONTRACT_NAME} changed: add {digest} to SCORING_CONTRACTS with a new "
        "version, and write a comparability note"
    )
    assert len(set(SCORING_CONTRACTS.values())) == len(SCORING_CONTRACTS)


def test_new_config_loads_with_the_contract_beside_it(workspace):
    config = _write(workspace, oracle=workspace.oracle())

    assert load_config(config.paths.config).eval_config_hash == config.eval_config_hash
    assert (workspace.root / "new" / CONTRACT_NAME).is_file()


def test_new_config_without_a_pack_is_a_trace_config(workspace):
    assert _write(workspace).eval.mode == ("trace",)


def test_paths_in_the_file_are_relative(workspace):
    path = _write(workspace, oracle=workspace.oracle()).paths.config
    document = load_yaml(path).value

    assert document["source_run_manifest"] == "../benchmark/run_manifest.json"
    assert document["source_oracle"]["resource"] == "../pack/backend.py"


def test_config_inside_the_benchmark_gets_a_run_folder_outside(workspace):
    config = _write(workspace, "benchmark/eval.yaml")

    assert config.paths.output_dir == workspace.root / "run"


def test_existing_file_is_not_replaced(workspace):
    before = workspace.config.read_bytes()
    with pytest.raises(UsageError) as caught:
        _write(workspace, "eval.yaml")

    assert caught.value.code == "eval_output_exists"
    assert workspace.config.read_bytes() == before


def test_another_contract_beside_the_file_is_not_replaced(workspace):
    other = workspace.root / "new" / CONTRACT_NAME
    other.parent.mkdir()
    other.write_text("ours", encoding="utf-8")

    with pytest.raises(UsageError):
        _write(workspace)

    assert other.read_text(encoding="utf-8") == "ours"


def test_refused_value_leaves_nothing_behind(workspace):
    with pytest.raises(ConfigError):
        _write(workspace, changes={("limits", "max_turns"): 0})

    assert list((workspace.root / "new").iterdir()) == []


def test_single_values_may_be_changed(workspace):
    config = _write(workspace, changes={("isolation", "level"): "confined"}, trials=3)

    assert (config.isolation.level, config.eval.trials) == ("confined", 3)


@pytest.mark.parametrize(
    ("url", "provider"),
    [
        (URL, "local"),
        ("http://localhost:1/v1", "local"),
        ("http://[::1]:1/v1", "local"),
        ("https://API.example.org/v1", "api.example.org"),
    ],
)
def test_provider_is_the_host_of_the_endpoint(url, provider):
    assert provider_of(url) == provider


@pytest.mark.parametrize(
    ("model", "alias"),
    [
        ("gold", "gold"),
        ("Org/Model-7B", "org-model-7b"),
        ("__x", "x"),
        ("模型", "candidate"),
    ],
)
def test_alias_is_made_from_the_model_name(model, alias):
    assert starter_candidate(URL, model)["alias"] == alias


def test_rendered_text_keeps_every_value():
    document = {
        "yes": "no",
        "text": 'a "quoted": # value \u2028 \x07 ü',
        "number": "1.0",
        "list": ["on", 1, 1.5, None, True, {"a b": []}],
        "empty": {},
        "items": [{"a": 1, "b": {"c": "~"}}, {"a": "2", "b": {"c": None}}],
    }

    assert load_yaml(render(document)).value == document
    assert yaml.safe_load(render(document)) == document


def test_note_stands_above_its_key():
    text = render({"a": {"b": 1}}, {("a", "b"): "Chosen."})

    assert text == "a:\n  # Chosen.\n  b: 1\n"
