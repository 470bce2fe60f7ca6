import copy
import json
import shutil

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.config import EvalConfig
from harness.conversation.task import ScoringPolicy
from harness.errors import ConfigError, EvidenceError
from tests.config.config_files import MANIFEST, Workspace, put

MEANING = {
    "eval.mode": ["trace", "executable"],
    "eval.trials": 2,
    "scoring.argument_matching": "canonical_only",
    "scoring.insert_declared_defaults": False,
    "scoring.respect_call_order": False,
    "scoring.respect_call_group": False,
    "scoring.allow_llm_repair": True,
    "scoring.task_success": "assertions_only",
    "scoring.intermediate_text_matching": "verbatim",
    "scoring.attribution": "strict-002",
    "limits.max_turns": 17,
    "limits.import_timeout_s": 11,
    "limits.reset_timeout_s": 6,
    "limits.tool_timeout_s": 11,
    "limits.state_timeout_s": 6,
    "limits.assertion_timeout_s": 6,
    "limits.close_timeout_s": 6,
    "limits.candidate_timeout_s": 61,
    "limits.episode_timeout_s": 301,
    "limits.max_parallel_tasks": 9,
    "limits.max_retries": 3,
    "limits.max_stops": 26,
    "limits.worker.cpu_s": 61,
    "limits.worker.memory_bytes": 1,
    "limits.worker.open_files": 65,
    "limits.worker.processes": 33,
    "limits.worker.file_bytes": 1,
    "limits.worker.output_bytes": 1,
    "isolation.level": "confined",
    "isolation.host": "per_task",
    "candidates.0.alias": "gamma",
    "candidates.0.model": "gamma",
    "candidates.0.provider": "elsewhere",
    "candidates.0.provider_api_version": "v2",
    "candidates.0.api.base_url": "http://127.0.0.1:8001/v1",
    "candidates.0.api.api_key_env": "KEY",
    "candidates.0.model_identity.source": "huggingface",
    "candidates.0.model_identity.model": "org/alpha",
    "candidates.0.model_identity.revision": "b" * 40,
    "candidates.0.model_identity.weights_digest": "sha256:" + "c" * 64,
    "candidates.0.inference.temperature": 0.5,
    "candidates.0.inference.top_p": 0.5,
    "candidates.0.inference.max_tokens": 1025,
    "candidates.0.inference.seed": None,
    "candidates.0.inference.tool_choice": "required",
    "candidates.0.inference.provider_extensions": {"local.v1": {"top_k": 1}},
    "candidates.0.echo_reasoning": True,
    "contamination.enforce": False,
    "contamination.on_violation": "exclude_row",
    "contamination.comparison_set": "per_candidate",
    "publication.max_stop_share": 0.1,
    "publication.requested": True,
    "outputs.write_task_results": False,
}
"""Another legal value of every key that has one, pinned sources apart."""
FIXED = {
    "schema_version",
    "kind",
    "translation_manifest",
    "publication.require_same_task_ids",
    "source_oracle.kind",
    "outputs.write_eval_manifest",
    "outputs.cache_candidate_responses",
    "outputs.cache_tool_results",
}
BY_CONTENT = ("source_run_manifest", "source_oracle", "scoring.contract")


def _leaves(value, path=""):
    if not isinstance(value, dict) or not value:
        yield path
        return
    for key, item in value.items():
        place = f"{path}.{key}" if path else key
        if key == "candidates":
            yield from _leaves(item[0], "candidates.0")
        else:
            yield from _leaves(item, place)


def test_table_of_meaning_names_every_key_of_the_payload(workspace):
    leaves = {
        leaf
        for leaf in _leaves(workspace.load().semantic_payload)
        if leaf not in FIXED and not leaf.startswith(BY_CONTENT)
    }

    assert set(MEANING) == leaves


@pytest.mark.parametrize("path", MEANING)
def test_every_key_of_meaning_moves_the_hash(workspace, path):
    before = workspace.load().eval_config_hash

    assert workspace.load((path, MEANING[path])).eval_config_hash != before


@pytest.mark.parametrize(
    "name", ["benchmark/run_manifest.json", "pack/manifest.yaml", "pack/backend.py"]
)
def test_content_of_every_file_moves_the_hash(workspace, name):
    before = workspace.load().eval_config_hash
    with (workspace.root / name).open("a", encoding="utf-8") as stream:
        stream.write("\n")

    assert workspace.load().eval_config_hash != before


def test_content_of_the_contract_moves_both_hashes(workspace):
    before = workspace.load()
    (workspace.root / "scoring-contract.md").write_text("Rules.", encoding="utf-8")
    after = workspace.load()

    assert after.eval_config_hash != before.eval_config_hash
    assert after.scoring_policy_hash != before.scoring_policy_hash


@pytest.mark.parametrize("path", [p for p in MEANING if not p.startswith("scoring.")])
def test_scoring_hash_is_of_the_scoring_section_alone(workspace, path):
    before = workspace.load().scoring_policy_hash

    assert workspace.load((path, MEANING[path])).scoring_policy_hash == before


@pytest.mark.parametrize("path", [p for p in MEANING if p.startswith("scoring.")])
def test_every_scoring_rule_moves_the_scoring_hash(workspace, path):
    before = workspace.load().scoring_policy_hash

    assert workspace.load((path, MEANING[path])).scoring_policy_hash != before


def test_hash_does_not_depend_on_the_folder(workspace, tmp_path):
    before = workspace.load().eval_config_hash
    other = Workspace(tmp_path / "deeper" / "elsewhere")

    assert other.load().eval_config_hash == before


def test_hash_does_not_depend_on_file_names(workspace):
    before = workspace.load().eval_config_hash
    shutil.move(workspace.pack, workspace.root / "renamed")
    source = {
        "kind": "python",
        "pack_manifest": "renamed/manifest.yaml",
        "resource": "renamed/backend.py",
    }

    assert workspace.load(("source_oracle", source)).eval_config_hash == before


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("outputs.output_dir", "elsewhere/run"),
        ("limits.tool_timeout_s", 10),
        ("candidates.0.inference.temperature", 0),
        ("candidates.0.api.base_url", "http://127.0.0.1:8000/v1/"),
        ("eval.mode", ["executable"]),
    ],
)
def test_other_spelling_of_the_same_meaning_keeps_the_hash(workspace, path, value):
    before = workspace.load().eval_config_hash

    assert workspace.load((path, value)).eval_config_hash == before


def test_order_of_candidates_does_not_matter(workspace):
    before = workspace.load()
    after = workspace.load(lambda document: document["candidates"].reverse())

    assert after.eval_config_hash == before.eval_config_hash
    assert after.candidate_aliases == ("alpha", "beta")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    workspace = Workspace(tmp_path_factory.mktemp("shared"))
    return workspace, workspace.load().eval_config_hash


def _shuffled(value, draw):
    if isinstance(value, dict):
        keys = draw(st.permutations(list(value)))
        return {key: _shuffled(value[key], draw) for key in keys}
    if isinstance(value, list):
        return [_shuffled(item, draw) for item in value]
    return value


@pytest.mark.slow
@settings(max_examples=50)
@given(data=st.data())
def test_order_of_keys_does_not_matter(shared, data):
    workspace, before = shared
    document = _shuffled(copy.deepcopy(workspace.document), data.draw)
    text = yaml.safe_dump(document, sort_keys=False)

    assert workspace.load_text(text).eval_config_hash == before


@pytest.mark.slow
@settings(max_examples=50)
@given(
    first=st.sampled_from(sorted(MEANING)),
    second=st.sampled_from(sorted(MEANING)),
)
def test_two_different_changes_never_meet_in_one_hash(shared, first, second):
    workspace, before = shared
    base = workspace.load().semantic_payload
    hashes = set()
    for path in {first, second}:
        payload = copy.deepcopy(base)
        put(payload, path, MEANING[path])
        hashes.add(EvalConfig.from_meaning(payload).eval_config_hash)

    assert len(hashes | {before}) == len({first, second}) + 1


def test_scoring_policy_is_the_section_with_its_contract_by_content(workspace):
    policy = workspace.load().scoring_policy

    assert isinstance(policy, ScoringPolicy)
    assert policy.argument_matching == "schema_then_canonical"
    assert policy.contract_hash.startswith("sha256:")


def test_endpoint_has_what_a_client_needs(workspace):
    endpoint = workspace.load().endpoint("alpha")

    assert endpoint == {
        "alias": "alpha",
        "canonical_id": "local:alpha@" + "a" * 40,
        "provider": "local",
        "provider_api_version": "v1",
        "base_url": "http://127.0.0.1:8000/v1",
        "model": "alpha",
        "api_key_env": None,
        "inference": {
            "temperature": 0.0,
            "top_p": 1.0,
            "max_tokens": 1024,
            "seed": 42,
            "tool_choice": "auto",
            "provider_extensions": {},
        },
        "echo_reasoning": False,
    }


def _resolved(config):
    return json.loads(json.dumps(config.resolved_document()))


@pytest.mark.parametrize("path", [None, *MEANING])
def test_resolved_document_rebuilds_the_same_meaning(workspace, path):
    config = workspace.load(*([] if path is None else [(path, MEANING[path])]))
    rebuilt = EvalConfig.from_resolved(_resolved(config))

    assert rebuilt.eval_config_hash == config.eval_config_hash
    assert rebuilt.resolved_document() == config.resolved_document()


def test_resolved_document_holds_no_path(workspace):
    text = json.dumps(workspace.load().resolved_document())

    assert str(workspace.root) not in text
    assert "output_dir" not in text


def test_resolved_document_rebuilds_without_any_file(workspace):
    payload = _resolved(workspace.load())
    shutil.rmtree(workspace.root)

    config = EvalConfig.from_resolved(payload)

    assert config.candidate_aliases == ("alpha", "beta")
    with pytest.raises(ConfigError, match="has no paths"):
        _ = config.paths


@pytest.mark.parametrize("key", ["requested", "eval_config_hash", "extra", "missing"])
def test_resolved_document_that_contradicts_itself_is_refused(workspace, key):
    payload = _resolved(workspace.load())
    if key == "requested":
        payload["semantic_payload"]["publication"]["requested"] = True
    elif key == "missing":
        del payload["semantic_payload"]["limits"]["max_turns"]
    else:
        payload[key] = "sha256:" + "0" * 64

    with pytest.raises(EvidenceError) as caught:
        EvalConfig.from_resolved(payload)

    assert caught.value.code == "eval_artifact_invalid"


@pytest.mark.parametrize("path", sorted(MEANING))
def test_edited_meaning_of_a_resolved_document_is_refused(workspace, path):
    payload = _resolved(workspace.load())
    put(payload["semantic_payload"], path, MEANING[path])

    with pytest.raises(EvidenceError):
        EvalConfig.from_resolved(payload)


def test_manifest_facts_enter_the_meaning(workspace):
    source = workspace.load().source_run_manifest

    assert (source.run_id, source.gold_eligible) == (MANIFEST["run_id"], True)


def test_paths_are_absolute_and_of_the_config_folder(workspace):
    paths = workspace.load().paths

    assert paths.output_dir == workspace.root / "run"
    assert paths.publication_root == workspace.root / "benchmark"
    assert paths.pack_root == workspace.root / "pack"
