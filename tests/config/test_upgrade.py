import copy

import pytest
import yaml

from harness.config.starter import write_document
from harness.config.upgrade import upgrade
from harness.errors import ConfigError

NEW_KEYS = (
    ("kind",),
    ("eval", "trials"),
    ("scoring", "attribution"),
    ("limits", "import_timeout_s"),
    ("limits", "reset_timeout_s"),
    ("limits", "state_timeout_s"),
    ("limits", "assertion_timeout_s"),
    ("limits", "close_timeout_s"),
    ("limits", "max_stops"),
    ("limits", "worker"),
    ("isolation",),
    ("publication", "max_stop_share"),
)


def _older(workspace, version="1.2"):
    """Return a config as the older schema has it."""
    document = copy.deepcopy(workspace.document)
    for path in NEW_KEYS:
        place = document
        for part in path[:-1]:
            place = place[part]
        del place[path[-1]]
    for candidate in document["candidates"]:
        del candidate["echo_reasoning"]
    document["schema_version"] = version
    document["config_status"] = "runnable"
    document["scoring"]["contract"] = "contracts/older.md"
    document["limits"]["tool_timeout_s"] = 7.5
    return document


def _upgrade(workspace, document):
    old = workspace.root / "older" / "eval.yaml"
    old.parent.mkdir()
    document = copy.deepcopy(document)
    document["source_run_manifest"] = "../benchmark/run_manifest.json"
    document["source_oracle"]["pack_manifest"] = "../pack/manifest.yaml"
    document["source_oracle"]["resource"] = "../pack/backend.py"
    document["outputs"]["output_dir"] = "../old-run"
    old.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    output = workspace.root / "a" / "b" / "eval.yaml"
    return upgrade(old, output), output


@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_older_config_loads_after_the_conversion(workspace, version):
    result, output = _upgrade(workspace, _older(workspace, version))
    config = write_document(output, result.document)

    assert config.paths.run_manifest == workspace.manifest
    assert config.paths.output_dir == workspace.root / "old-run"


def test_stated_values_are_carried_over(workspace):
    older = _older(workspace)
    older["limits"]["max_turns"] = 5
    older["candidates"][0]["inference"]["temperature"] = 0.25
    result, output = _upgrade(workspace, older)
    config = write_document(output, result.document)

    assert config.limits.max_turns == 5
    assert config.candidates[0].inference.temperature == 0.25


def test_older_behaviour_is_kept_where_it_had_one(workspace):
    result, output = _upgrade(workspace, _older(workspace))
    config = write_document(output, result.document)

    assert config.scoring.attribution == "strict-002"
    assert config.limits.reset_timeout_s == 7.5
    assert config.limits.close_timeout_s == 9.5
    assert config.eval.trials == 1
    assert config.publication.max_stop_share == 1.0


def test_every_value_that_was_not_stated_is_listed(workspace):
    result, _ = _upgrade(workspace, _older(workspace))

    assert set(result.choices) == {
        *NEW_KEYS,
        ("scoring", "contract"),
        ("candidates", 0, "echo_reasoning"),
        ("candidates", 1, "echo_reasoning"),
    }


def test_choices_stand_in_the_file(workspace):
    result, output = _upgrade(workspace, _older(workspace))
    write_document(output, result.document, result.choices)

    assert "# older evaluators set no limits; these are ours" in output.read_text(
        "utf-8"
    )


def test_own_config_is_converted_into_itself(workspace):
    before = workspace.load()
    result, output = _upgrade(workspace, workspace.document)
    config = write_document(output, result.document)

    assert config.eval_config_hash == before.eval_config_hash
    assert set(result.choices) == {("scoring", "contract")}


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        ({"held_out_eval": {"seed": 1}}, "unsupported_eval_mode"),
        ({"translation_manifest": "t.json"}, "unsupported_eval_mode"),
        ({"surprise": 1}, "eval_config_invalid"),
        ({"config_status": "template"}, "eval_config_invalid"),
    ],
)
def test_what_cannot_be_mapped_is_refused_by_name(workspace, edit, code):
    result, output = _upgrade(workspace, {**_older(workspace), **edit})
    with pytest.raises(ConfigError) as caught:
        write_document(output, result.document)

    assert caught.value.code == code
    assert not output.exists()


@pytest.mark.parametrize("text", ["schema_version: '0.9'", "[]", "a: 1"])
def test_file_of_another_schema_is_refused(workspace, text):
    old = workspace.root / "old.yaml"
    old.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        upgrade(old, workspace.root / "new.yaml")

    assert caught.value.code == "eval_config_schema_invalid"


def test_missing_file_is_refused(workspace):
    with pytest.raises(ConfigError):
        upgrade(workspace.root / "none.yaml", workspace.root / "new.yaml")
