"""The config of kind `mlperf-agentic`: closed, mandatory, one hash of its meaning."""

import copy
import hashlib

import pytest
import yaml

from harness.config import load_config
from harness.config.load import kind_of
from harness.config.teacher_forced import (
    TeacherForcedConfig,
    load_teacher_forced_config,
)
from harness.config.teacher_forced_starter import write_teacher_forced_config
from harness.errors import ConfigError, EvidenceError, UsageError
from tests.config.config_files import drop, key_paths, put

OPTIONAL = {
    "candidates.0.model_identity.revision",
    "candidates.0.model_identity.weights_digest",
    "candidates.0.inference.seed",
    "candidates.0.inference.provider_extensions",
}


class Recorded:
    """A starter config and changes to it."""

    def __init__(self, folder):
        self.file = folder / "eval.yaml"
        self.dataset = folder / "rows.jsonl"
        self.dataset.write_text("{}\n")
        write_teacher_forced_config(
            self.file,
            dataset=self.dataset,
            base_url="http://127.0.0.1:8000/v1",
            model="m",
        )
        self.document = yaml.safe_load(self.file.read_text())

    def load(self, *changes):
        document = copy.deepcopy(self.document)
        for change in changes:
            if callable(change):
                change(document)
            else:
                put(document, *change)
        self.file.write_text(yaml.safe_dump(document, sort_keys=False))
        return load_teacher_forced_config(self.file)

    def refusals(self, *changes):
        try:
            self.load(*changes)
        except ConfigError as error:
            return [(v.code, v.where.split(" (")[0]) for v in error.violations]
        return []


@pytest.fixture
def recorded(tmp_path):
    return Recorded(tmp_path)


def test_starter_loads_and_states_its_kind(recorded):
    config = recorded.load()

    assert kind_of(recorded.file) == config.kind == "mlperf-agentic"
    assert config.paths.output_dir == recorded.file.parent / "run"


def test_every_key_is_mandatory(recorded):
    for path in key_paths(recorded.document):
        refused = recorded.refusals(drop(path))
        assert bool(refused) == (path not in OPTIONAL), path


def test_unknown_keys_are_refused_everywhere(recorded):
    for section in ("", "dataset.", "asking.", "limits.", "publication.", "outputs."):
        assert recorded.refusals((f"{section}other", 1)), section


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("asking.repeats", 0),
        ("asking.repeats", "2"),
        ("asking.salt", ""),
        ("asking.inject_tool_delay", 1),
        ("asking.inter_turn_delay_s", -1.0),
        ("asking.routing_header", "Authorization"),
        ("asking.routing_header", "content-length"),
        ("asking.routing_header", "X Session"),
        ("asking.routing_header", "X-Session:\r\nEvil"),
        ("asking.on_failed_turn", "stop"),
        ("asking.row_overrides", None),
        ("limits.max_parallel_conversations", 0),
        ("limits.candidate_timeout_s", 0.0),
        ("publication.max_stop_share", 1.5),
        ("dataset.sha256", "abc"),
        ("candidates", []),
        ("candidates.0.inference.top_p", 0.0),
    ],
)
def test_value_out_of_range_is_refused_at_its_place(recorded, path, value):
    ((_, where),) = recorded.refusals((path, value))

    assert where == path.replace(".0.", "[0].")


def test_two_candidates_are_refused_for_a_run_has_one_log(recorded):
    def twice(document):
        document["candidates"].append({**document["candidates"][0], "alias": "two"})

    assert ("eval_config_invalid", "candidates") in recorded.refusals(twice)


def test_rules_of_candidates_hold_here_too(recorded):
    extension = {"local.v1": {"temperature": 2}}

    assert recorded.refusals(
        ("candidates.0.inference.temperature", 1.0),
        ("candidates.0.inference.top_p", None),
        ("candidates.0.inference.provider_extensions", extension),
        ("candidates.0.model_identity.revision", "main"),
    ) == [
        ("candidate_revision_mutable", "candidates[0].model_identity.revision"),
        ("eval_config_invalid", "candidates[0].inference.top_p"),
        (
            "eval_config_invalid",
            "candidates[0].inference.provider_extensions.local.v1.temperature",
        ),
    ]


def test_secret_in_the_file_is_refused_and_not_repeated(recorded):
    with pytest.raises(ConfigError) as caught:
        recorded.load(("asking.salt", "sk-abcdefghijklmnop"))

    assert caught.value.code == "secret_in_eval_config"
    assert "sk-abc" not in str(caught.value)


def test_data_set_that_is_not_the_declared_one_is_refused(recorded):
    digest = hashlib.sha256(recorded.dataset.read_bytes()).hexdigest()

    assert recorded.refusals(("dataset.sha256", digest)) == []
    assert recorded.refusals(("dataset.sha256", "0" * 64)) == [
        ("eval_predictions_drift", "dataset.sha256")
    ]


def test_data_set_that_is_not_there_is_refused(recorded):
    assert recorded.refusals(("dataset.path", "nowhere.jsonl")) == [
        ("eval_config_path_invalid", "dataset.path")
    ]


def test_data_set_may_not_lie_in_the_output_folder(recorded):
    assert recorded.refusals(("outputs.output_dir", ".")) == [
        ("eval_config_path_invalid", "outputs.output_dir")
    ]


def test_hash_is_that_of_the_meaning_and_of_no_place(recorded):
    before = recorded.load().eval_config_hash
    recorded.dataset.rename(recorded.dataset.with_name("moved.jsonl"))
    moved = recorded.load(
        ("dataset.path", "moved.jsonl"), ("outputs.output_dir", "elsewhere")
    )

    assert moved.eval_config_hash == before
    recorded.dataset.with_name("moved.jsonl").write_text("{}\n\n")
    other = recorded.load(("dataset.path", "moved.jsonl"))
    assert other.eval_config_hash != before


def test_meaning_rebuilds_the_config(recorded):
    config = recorded.load()
    rebuilt = TeacherForcedConfig.from_resolved(config.resolved_document())

    assert rebuilt.eval_config_hash == config.eval_config_hash
    assert rebuilt.resolved_document() == config.resolved_document()


def test_meaning_that_was_edited_is_refused(recorded):
    document = recorded.load().resolved_document()
    document["semantic_payload"]["asking"]["repeats"] = 9

    with pytest.raises(EvidenceError) as caught:
        TeacherForcedConfig.from_resolved(document)

    assert caught.value.code == "eval_artifact_invalid"


def test_starter_leaves_an_existing_file_alone(recorded):
    with pytest.raises(UsageError) as caught:
        write_teacher_forced_config(
            recorded.file, dataset=recorded.dataset, base_url="http://x/v1", model="m"
        )

    assert caught.value.code == "eval_output_exists"


def test_starter_that_cannot_be_loaded_leaves_nothing(tmp_path):
    file = tmp_path / "eval.yaml"

    with pytest.raises(ConfigError):
        write_teacher_forced_config(
            file, dataset=tmp_path / "none", base_url="ftp://x", model="m"
        )

    assert not file.exists()


def test_other_readers_refuse_the_kind_by_name(recorded):
    with pytest.raises(ConfigError) as caught:
        load_config(recorded.file)

    assert caught.value.code == "unsupported_eval_mode"
    assert "`fairtrial run`" in str(caught.value)


@pytest.mark.parametrize("special", ["/dev/zero", "."])
def test_dataset_that_is_no_regular_file_is_refused_unread(recorded, special):
    assert recorded.refusals(("dataset.path", special)) == [
        ("eval_config_path_invalid", "dataset.path")
    ]
