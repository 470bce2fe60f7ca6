import pytest
import yaml

from harness.config import load_config
from harness.config.starter import starter_document
from harness.errors import ConfigError
from tests.config.config_files import (
    MANIFEST,
    PIN,
    Workspace,
    drop,
    key_paths,
    pinned,
    put,
)

INVALID = "eval_config_invalid"
POLICY = "eval_publication_policy_violation"
OPTIONAL = {
    "scoring.intermediate_text_matching",
    "candidates.0.model_identity.revision",
    "candidates.0.model_identity.weights_digest",
    "candidates.0.inference.seed",
    "candidates.0.inference.provider_extensions",
}
_DOCUMENT = starter_document(
    run_manifest="m",
    oracle={"kind": "python", "pack_manifest": "p", "resource": "r"},
    candidates=[pinned("alpha")],
    output_dir="o",
)
KEYS = tuple(
    path
    for path in key_paths(_DOCUMENT)
    if not path.rpartition(".")[2].isdecimal() and path not in OPTIONAL
)


def _shown(path):
    return path.replace(".0", "[0]")


def test_complete_config_loads(workspace):
    config = workspace.load()

    assert config.candidate_aliases == ("alpha", "beta")


@pytest.mark.parametrize("path", KEYS)
def test_every_key_is_mandatory(workspace, path):
    assert (INVALID, _shown(path)) in workspace.refusals(drop(path))


@pytest.mark.parametrize(
    "path", [p for p in sorted(OPTIONAL) if not p.endswith("revision")]
)
def test_optional_key_may_be_absent(workspace, path):
    assert workspace.refusals(drop(path)) == []


@pytest.mark.parametrize(
    "section",
    [
        "",
        "eval.",
        "scoring.",
        "limits.",
        "limits.worker.",
        "isolation.",
        "candidates.0.",
        "candidates.0.api.",
        "candidates.0.model_identity.",
        "candidates.0.inference.",
        "contamination.",
        "publication.",
        "outputs.",
        "source_oracle.",
    ],
)
def test_unknown_key_is_refused(workspace, section):
    path = f"{section}surprise"

    assert workspace.refusals((path, 1)) == [(INVALID, _shown(path))]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("scoring.respect_call_order", "true"),
        ("scoring.insert_declared_defaults", 1),
        ("limits.max_turns", "5"),
        ("limits.max_turns", 5.0),
        ("limits.max_turns", 0),
        ("limits.max_turns", True),
        ("limits.tool_timeout_s", "10"),
        ("limits.tool_timeout_s", 0),
        ("limits.max_parallel_tasks", 0),
        ("limits.max_retries", -1),
        ("limits.max_stops", -1),
        ("limits.worker.cpu_s", 0),
        ("limits.worker.memory_bytes", "1g"),
        ("limits", None),
        ("eval.trials", 0),
        ("eval.mode", []),
        ("eval.mode", "trace"),
        ("eval.mode", ["executable", "executable"]),
        ("scoring.argument_matching", "fuzzy"),
        ("scoring.task_success", "most_gates"),
        ("scoring.intermediate_text_matching", None),
        ("scoring.attribution", "wire-2"),
        ("isolation.level", "none"),
        ("isolation.host", "forked"),
        ("contamination.on_violation", "ignore"),
        ("contamination.comparison_set", "all"),
        ("publication.max_stop_share", 1.5),
        ("outputs.write_task_results", "yes"),
        ("config_status", "template"),
        ("config_status", "draft"),
        ("kind", "other"),
        ("source_oracle.kind", "container"),
        ("source_oracle.resource", "pack/manifest.yaml"),
        ("candidates.0.alias", "Alpha"),
        ("candidates.0.alias", "a" * 65),
        ("candidates.0.model", " padded"),
        ("candidates.0.provider", "Some Provider"),
        ("candidates.0.api.api_key_env", "lower_case"),
        ("candidates.0.api.base_url", "ftp://host/v1"),
        ("candidates.0.api.base_url", "http:///v1"),
        ("candidates.0.api.base_url", "host/v1"),
        ("candidates.0.api.base_url", "http://host/v1?key=1"),
        ("candidates.0.api.base_url", "http://host/v1#part"),
        ("candidates.0.api.base_url", "http://host:port/v1"),
        ("candidates.0.api.base_url", "http://ho st/v1"),
        ("candidates.0.inference.temperature", -0.1),
        ("candidates.0.inference.temperature", "0"),
        ("candidates.0.inference.top_p", 0),
        ("candidates.0.inference.top_p", 1.1),
        ("candidates.0.inference.max_tokens", 0),
        ("candidates.0.inference.seed", 1.0),
        ("candidates.0.inference.tool_choice", "any"),
        ("candidates.0.echo_reasoning", "no"),
    ],
)
def test_value_outside_its_set_is_refused(workspace, path, value):
    assert workspace.refusals((path, value)) == [(INVALID, _shown(path))]


def test_mode_list_is_put_into_canonical_order(workspace):
    config = workspace.load(("eval.mode", ["executable", "trace"]))

    assert config.eval.mode == ("trace", "executable")


def test_empty_candidate_list_is_refused(workspace):
    assert workspace.refusals(("candidates", [])) == [(INVALID, "candidates")]


def test_trailing_slash_of_base_url_is_dropped(workspace):
    config = workspace.load(("candidates.0.api.base_url", "http://host:80/v1/"))

    assert config.endpoint("alpha")["base_url"] == "http://host:80/v1"


def test_user_info_in_base_url_is_a_secret_and_is_not_shown(workspace):
    with pytest.raises(ConfigError) as caught:
        workspace.load(("candidates.0.api.base_url", "http://u:hunter2@host/v1"))

    assert caught.value.code == "secret_in_eval_config"
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *[
            (key, "x")
            for key in [
                "api_key",
                "apikey",
                "Authorization",
                "bearer_token",
                "password",
                "secret",
                "token",
                "access_token",
                "auth_token",
                "credentials",
                "private_key",
                "my_api_key",
                "db_password",
                "client_secret",
                "x_access_token",
                "y_auth_token",
                "hub_token",
                "X-Api-Key",
            ]
        ],
        *[
            ("extra", prefix + "abc")
            for prefix in [
                "nvapi-",
                "sk-",
                "sk_live_",
                "hf_",
                "ghp_",
                "gho_",
                "github_pat_",
                "xoxb-",
                "xoxp-",
                "AIza",
            ]
        ],
        ("extra", "Bearer abc"),
    ],
)
def test_secret_is_refused_wherever_it_stands(workspace, key, value):
    place = "candidates.0.inference.provider_extensions"
    refusals = workspace.refusals((place, {"local.v1": {"nested": [{key: value}]}}))

    assert [code for code, _ in refusals] == ["secret_in_eval_config"]


def test_message_about_a_secret_does_not_repeat_it(workspace):
    with pytest.raises(ConfigError) as caught:
        workspace.load(("candidates.0.model", "sk-verysecret"), ("sk-othersecret", "x"))

    assert "verysecret" not in str(caught.value)
    assert "othersecret" not in str(caught.value)


@pytest.mark.parametrize(
    "path", ["candidates.0.model", "candidates.0.api.base_url", "outputs.output_dir"]
)
def test_placeholder_is_refused(workspace, path):
    assert (INVALID, _shown(path)) in workspace.refusals((path, "x_REPLACE_ME_NAME"))


@pytest.mark.parametrize("version", ["1.1", "1.2", 1.1, 1.2])
def test_older_schema_is_refused_naming_the_way_out(workspace, version):
    with pytest.raises(ConfigError) as caught:
        workspace.load(("schema_version", version), drop("kind"))

    assert caught.value.code == "eval_config_schema_invalid"
    assert "config init --from eval.yaml" in str(caught.value)
    assert len(caught.value.violations) == 1


@pytest.mark.parametrize("version", [1, "2", None])
def test_other_schema_is_refused(workspace, version):
    refusals = workspace.refusals(("schema_version", version))

    assert refusals == [("eval_config_schema_invalid", "schema_version")]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("kind", "predict"),
        ("kind", "mlperf-agentic"),
        ("eval.mode", ["held_out_eval"]),
        ("held_out_eval", {"seed": 1}),
        ("translation_manifest", "translation.json"),
    ],
)
def test_known_word_out_of_scope_is_refused_by_name(workspace, path, value):
    with pytest.raises(ConfigError) as caught:
        workspace.load((path, value))

    assert caught.value.code == "unsupported_eval_mode"


@pytest.mark.parametrize(
    "revision", ["main", "LATEST", "v2-prod".removeprefix("v2-"), "refs/heads/x", "tip"]
)
def test_mutable_revision_is_refused(workspace, revision):
    path = "candidates.0.model_identity.revision"

    assert workspace.refusals((path, revision)) == [
        ("candidate_revision_mutable", _shown(path))
    ]


@pytest.mark.parametrize("digest", [None, "sha256:" + "b" * 64])
def test_mutable_revision_is_refused_beside_a_digest_too(workspace, digest):
    refusals = workspace.refusals(
        ("candidates.0.model_identity.revision", "main"),
        ("candidates.0.model_identity.weights_digest", digest),
    )

    assert refusals[0][0] == "candidate_revision_mutable"


def test_short_revision_needs_a_digest(workspace):
    path = "candidates.0.model_identity.revision"
    digest = ("candidates.0.model_identity.weights_digest", "sha256:" + "b" * 64)

    assert workspace.refusals((path, "v1.5")) == [
        ("candidate_identity_invalid", _shown(path))
    ]
    assert workspace.refusals((path, "v1.5"), digest) == []


@pytest.mark.parametrize(
    "digest", ["b" * 64, "md5:" + "b" * 32, "sha256:" + "B" * 64, "sha256:b"]
)
def test_digest_has_one_of_two_forms(workspace, digest):
    path = "candidates.0.model_identity.weights_digest"

    assert workspace.refusals((path, digest)) == [
        ("candidate_identity_invalid", _shown(path))
    ]


def test_unpinned_candidate_repeats_its_provider_and_model(workspace):
    unpin = ("candidates.0.model_identity.revision", None)
    source = ("candidates.0.model_identity.source", "huggingface")
    model = ("candidates.0.model_identity.model", "other")

    assert workspace.refusals(unpin) == []
    assert workspace.refusals(unpin, source, model) == [
        ("candidate_identity_invalid", "candidates[0].model_identity.source"),
        ("candidate_identity_invalid", "candidates[0].model_identity.model"),
    ]


def test_two_candidates_may_not_share_an_alias(workspace):
    assert workspace.refusals(("candidates.1.alias", "alpha")) == [
        ("candidate_identity_invalid", "candidates[1].alias")
    ]


def test_two_candidates_may_not_share_an_identity(workspace):
    same = {"source": "local", "model": "alpha", "revision": PIN}

    assert workspace.refusals(("candidates.1.model_identity", same)) == [
        ("candidate_identity_invalid", "candidates[1].model_identity")
    ]


def test_top_p_may_be_null_at_temperature_zero_only(workspace):
    path = "candidates.0.inference.top_p"
    warm = ("candidates.0.inference.temperature", 0.7)

    assert workspace.refusals((path, None)) == []
    assert workspace.refusals((path, None), warm) == [(INVALID, _shown(path))]


@pytest.mark.parametrize("part", ["tool_timeout_s", "candidate_timeout_s"])
def test_episode_is_given_at_least_its_parts(workspace, part):
    refusals = workspace.refusals((f"limits.{part}", 301))

    assert refusals == [(INVALID, "limits.episode_timeout_s")]


@pytest.mark.parametrize(
    "extensions",
    [{"local": {}}, {"Local.v1": {}}, {"other.v1": {}}, {"local.v2": {}}],
)
def test_extension_belongs_to_the_provider(workspace, extensions):
    path = "candidates.0.inference.provider_extensions"
    (namespace,) = extensions

    assert workspace.refusals((path, extensions)) == [
        (INVALID, f"{_shown(path)}.{namespace}")
    ]


@pytest.mark.parametrize("key", ["model", "messages", "tools", "seed", "top_p"])
def test_extension_may_not_set_what_the_config_states(workspace, key):
    path = "candidates.0.inference.provider_extensions"

    assert workspace.refusals((path, {"local.v1": {key: 1}})) == [
        (INVALID, f"{_shown(path)}.local.v1.{key}")
    ]


def test_extension_of_the_provider_is_accepted(workspace):
    path = "candidates.0.inference.provider_extensions"
    config = workspace.load((path, {"local.v1": {"top_k": 40}}))

    inference = config.endpoint("alpha")["inference"]
    assert inference["provider_extensions"] == {"local.v1": {"top_k": 40}}


def test_executable_mode_needs_an_oracle(workspace):
    assert workspace.refusals(("source_oracle", None)) == [(INVALID, "source_oracle")]


def test_trace_mode_has_no_oracle(workspace):
    assert workspace.refusals(("eval.mode", ["trace"])) == [(INVALID, "source_oracle")]


def test_assertions_only_needs_executable_mode(tmp_path):
    workspace = Workspace(tmp_path, executable=False)

    assert workspace.refusals(("scoring.task_success", "assertions_only")) == [
        (INVALID, "scoring.task_success")
    ]


def test_candidates_share_their_task_ids(workspace):
    assert workspace.refusals(("publication.require_same_task_ids", False)) == [
        (POLICY, "publication.require_same_task_ids")
    ]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("source_run_manifest", "nowhere/run_manifest.json"),
        ("scoring.contract", "nowhere.md"),
        ("source_oracle.pack_manifest", "nowhere/manifest.yaml"),
        ("source_oracle.resource", "nowhere.py"),
        ("scoring.contract", "/dev/zero"),
        ("source_run_manifest", "benchmark"),
        ("outputs.output_dir", "benchmark"),
        ("outputs.output_dir", "benchmark/run"),
        ("outputs.output_dir", "."),
        ("outputs.output_dir", "pack/run"),
    ],
)
def test_path_that_leads_nowhere_or_inside_is_refused(workspace, path, value):
    assert workspace.refusals((path, value)) == [("eval_config_path_invalid", path)]


@pytest.mark.parametrize("name", ["benchmark.parquet", "benchmark_raw.parquet"])
def test_output_folder_that_holds_a_table_is_refused(workspace, name):
    (workspace.root / "run").mkdir()
    (workspace.root / "run" / name).write_bytes(b"")

    assert workspace.refusals() == [("eval_config_path_invalid", "outputs.output_dir")]


def test_output_folder_reached_through_a_link_is_seen(workspace):
    (workspace.root / "link").symlink_to(workspace.manifest.parent)

    assert workspace.refusals(("outputs.output_dir", "link/run")) == [
        ("eval_config_path_invalid", "outputs.output_dir")
    ]


@pytest.mark.parametrize(
    ("section", "key", "path"),
    [
        ("oracle", "kind", "kind"),
        ("pack", "pack_id", "pack_manifest"),
        ("pack", "version", "pack_manifest"),
    ],
)
def test_oracle_is_the_publications_own(workspace, section, key, path):
    manifest = {**MANIFEST, section: {**MANIFEST[section], key: "another"}}
    workspace.write_manifest(manifest)

    assert workspace.refusals() == [(INVALID, f"source_oracle.{path}")]


def test_unreadable_manifest_is_left_to_source_verification(workspace):
    workspace.manifest.write_bytes(b"{")

    config = workspace.load()

    assert config.source_run_manifest.run_id is None


def test_all_violations_are_reported_in_file_order(workspace):
    refusals = workspace.refusals(
        ("outputs.output_dir", "benchmark"),
        ("candidates.1.inference.temperature", "hot"),
        ("candidates.0.model_identity.revision", "main"),
        ("limits.episode_timeout_s", 1),
        ("scoring.contract", "nowhere.md"),
        ("source_oracle", None),
        drop("limits.max_turns"),
    )

    assert refusals == [
        (INVALID, "source_oracle"),
        ("eval_config_path_invalid", "scoring.contract"),
        (INVALID, "limits.episode_timeout_s"),
        (INVALID, "limits.max_turns"),
        ("candidate_revision_mutable", "candidates[0].model_identity.revision"),
        (INVALID, "candidates[1].inference.temperature"),
        ("eval_config_path_invalid", "outputs.output_dir"),
    ]


def test_first_violation_in_file_order_decides_the_code(workspace):
    with pytest.raises(ConfigError) as caught:
        workspace.load(
            ("outputs.output_dir", "benchmark"),
            ("candidates.0.model_identity.revision", "main"),
        )

    assert caught.value.code == "candidate_revision_mutable"


def test_violation_names_line_expectation_and_what_to_do(workspace):
    lines = workspace.config.read_text(encoding="utf-8").splitlines()
    number = next(i for i, line in enumerate(lines, 1) if "max_turns" in line)
    lines[number - 1] = '  max_turns: "16"'

    with pytest.raises(ConfigError) as caught:
        workspace.load_text("\n".join(lines))

    assert caught.value.violations[0].as_report() == {
        "code": INVALID,
        "where": f"limits.max_turns (eval.yaml:{number})",
        "problem": "a value of another type or range",
        "expected": "a valid integer",
        "actual": '"16"',
        "recovery": "write a whole number, without quotes",
    }


def test_misspelt_key_gets_a_suggestion(workspace):
    with pytest.raises(ConfigError, match=r"did you mean max_turns\?"):
        workspace.load(("limits.max_turn", 3))


@pytest.mark.parametrize("text", ["", "[1]", "just text"])
def test_document_that_is_no_mapping_is_refused(workspace, text):
    with pytest.raises(ConfigError) as caught:
        workspace.load_text(text)

    assert caught.value.code == INVALID


def test_duplicate_key_is_refused_with_its_line(workspace):
    with pytest.raises(ConfigError, match=r"key 'kind' repeats"):
        workspace.load_text("kind: executable\nkind: executable\n")


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / "eval.yaml")

    assert caught.value.code == "eval_config_path_invalid"


LOCKED = [
    ("scoring.argument_matching", "canonical_only"),
    ("scoring.respect_call_order", False),
    ("scoring.respect_call_group", False),
    ("scoring.allow_llm_repair", True),
    ("scoring.task_success", "assertions_only"),
    ("scoring.intermediate_text_matching", "verbatim"),
    ("contamination.enforce", False),
    ("contamination.on_violation", "exclude_row"),
    ("contamination.comparison_set", "per_candidate"),
    ("outputs.write_task_results", False),
]
EVIDENCE = [
    "outputs.write_eval_manifest",
    "outputs.cache_candidate_responses",
    "outputs.cache_tool_results",
]
REQUESTED = ("publication.requested", True)


def test_locked_config_may_be_published(workspace):
    config = workspace.load(REQUESTED)

    assert config.publication_allowed
    assert config.non_publication_reasons == ()


@pytest.mark.parametrize(
    ("path", "value"), [*LOCKED, *((path, False) for path in EVIDENCE)]
)
def test_locked_setting_is_refused_when_publication_is_requested(
    workspace, path, value
):
    assert workspace.refusals(REQUESTED, (path, value)) == [(POLICY, path)]


def test_run_without_its_evidence_is_refused_in_any_case(workspace):
    refusals = workspace.refusals(*((path, False) for path in EVIDENCE))

    assert refusals == [("eval_config_invalid", path) for path in EVIDENCE]


def test_trace_run_has_no_tool_results_to_keep(tmp_path):
    trace = Workspace(tmp_path / "trace", executable=False)

    config = trace.load(("outputs.cache_tool_results", False))

    assert config.non_publication_reasons[0] == "outputs.cache_tool_results"


@pytest.mark.parametrize(("path", "value"), LOCKED)
def test_locked_setting_is_a_reason_otherwise(workspace, path, value):
    config = workspace.load((path, value))

    assert config.non_publication_reasons == (path, "publication.requested")


def test_declared_defaults_are_not_locked(workspace):
    assert (
        workspace.refusals(REQUESTED, ("scoring.insert_declared_defaults", False)) == []
    )


def test_all_locks_are_reported_at_once(workspace):
    refusals = workspace.refusals(REQUESTED, *LOCKED)

    assert sorted(path for _, path in refusals) == sorted(path for path, _ in LOCKED)


def test_unpinned_candidate_cannot_be_published(workspace):
    unpin = ("candidates.0.model_identity.revision", None)

    assert workspace.refusals(REQUESTED, unpin) == [
        (POLICY, "candidates[0].model_identity")
    ]
    assert workspace.load(unpin).non_publication_reasons == (
        "candidates[alpha].model_identity",
        "publication.requested",
    )


def test_edited_contract_cannot_be_published(workspace):
    with (workspace.root / "scoring-contract.md").open("a") as stream:
        stream.write("One more rule.\n")

    assert workspace.refusals(REQUESTED) == [(POLICY, "scoring.contract")]
    assert "scoring.contract" in workspace.load().non_publication_reasons


def test_executable_source_has_to_be_gold(workspace):
    workspace.write_manifest({**MANIFEST, "gold_eligible": False})

    assert workspace.refusals(REQUESTED) == [(POLICY, "source_run_manifest")]
    assert (
        "source_run_manifest.gold_eligible" in workspace.load().non_publication_reasons
    )


def test_yaml_written_by_another_tool_loads(workspace):
    document = {}
    put(document, "x", 1)
    text = yaml.safe_dump(workspace.document, default_flow_style=True)

    assert workspace.load_text(text).candidate_aliases == ("alpha", "beta")
