"""A predict config means its values and files by content, and no paths."""

import copy
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.config.predict import (
    NOWHERE,
    engine_meaning,
    engine_of_meaning,
    read_predict_config,
)
from harness.config.predict_document import ENGINE_SECTIONS
from harness.errors import ConfigError, FairtrialError
from harness.predict.plan import plan_of_file
from tests.config.config_files import key_paths, put
from tests.predict.asking import LABELS, Workspace, chat, embeddings

URL = "http://127.0.0.1:8000/v1"
TORCH = {
    "kind": "torch_local",
    "model": "checkpoint",
    "checkpoint_sha256": None,
    "device": "cuda:0",
    "dtype": "bfloat16",
    "batch_size": 4,
    "model_identity": "local:tiny@main",
    "chat_template": True,
}

SERVER = {
    "kind": "vllm_server",
    "model": "tiny",
    "model_identity": "local:tiny@main",
    "checkpoint_sha256": {"model.safetensors": "0" * 64},
    "dtype": "auto",
    "arguments": ["--max-model-len", "64"],
    "command": None,
    "port": 8000,
    "start_timeout_s": 1.0,
    "stop_timeout_s": 1.0,
    "max_in_flight": 1,
    "timeout_s": 1.0,
    "max_retries": 0,
}
OFFLINE = {
    "kind": "vllm_offline",
    "model": "tiny",
    "model_identity": "local:tiny@main",
    "checkpoint_sha256": None,
    "dtype": "float16",
    "batch_size": 8,
    "options": {"max_model_len": 64},
}
SECTIONS = [chat(URL), embeddings(URL), TORCH, SERVER, OFFLINE]


@pytest.fixture
def space(tmp_path):
    root = tmp_path / "one"
    root.mkdir()
    return Workspace(root, url=URL)


def refusals(space):
    """Return (code, key path) of every violation."""
    with pytest.raises(ConfigError) as refused:
        plan_of_file(space.write())
    return [(v.code, v.where.split(" (")[0]) for v in refused.value.violations]


def test_moved_config_means_the_same(space, tmp_path):
    before = space.plan().config_hash
    shutil.copytree(space.root, tmp_path / "two")

    assert plan_of_file(tmp_path / "two" / "predict.yaml").config_hash == before


def test_whole_number_and_float_mean_the_same(space):
    before = space.plan().config_hash
    space.document["decoding"]["temperature"] = 0

    assert space.plan().config_hash == before


def test_unused_engine_means_nothing(space):
    before = space.plan().config_hash
    space.document["engines"]["other"] = chat(URL, max_in_flight=1)

    assert space.plan().config_hash == before


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section["kind"])
def test_engine_comes_back_from_its_meaning(section):
    model = ENGINE_SECTIONS[section["kind"]]
    placed = {**section, "model": NOWHERE} if "model" in section else section

    found = engine_of_meaning(engine_meaning(model.model_validate(section)))

    if section["kind"] != "vllm_server":
        assert found == model.model_validate(placed)
    else:
        assert found == model.model_validate(section)


def test_place_of_a_checkpoint_means_nothing(space):
    space.document["engines"]["main"] = TORCH
    before = space.plan().config_hash
    space.document["engines"]["main"] = {**TORCH, "model": "elsewhere"}

    assert space.plan().config_hash == before


@pytest.mark.parametrize("name", ["system.txt", "user.txt", "rows.jsonl"])
def test_changed_file_means_something_else(space, name):
    before = space.plan().config_hash
    path = space.root / name
    path.write_text(path.read_text() + " ")

    assert space.plan().config_hash != before


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("decoding", "max_tokens", 65),
        ("decoding", "stop", ["x"]),
        ("evaluation", "metric", "macro_f1"),
        ("evaluation", "max_stop_share", 0.5),
    ],
)
def test_changed_value_means_something_else(space, section, key, value):
    before = space.plan().config_hash
    space.document[section][key] = value

    assert space.plan().config_hash != before


def test_line_ends_of_a_text_are_kept(space):
    (space.root / "system.txt").write_bytes(b"one\r\ntwo {contract}")

    assert space.plan().prompt.system == "one\r\ntwo {contract}"


def test_contract_is_put_in(space):
    system = space.plan().prompt.system_message

    assert system == "Only one of:\n" + "\n".join(LABELS) + "\n"


def test_every_key_is_mandatory(space):
    space.document["decoding"] = {}
    del space.document["measure"]

    found = refusals(space)

    assert ("eval_config_invalid", "measure") in found
    assert sum(place.startswith("decoding.") for _, place in found) == 12


def test_secret_is_refused(space):
    space.document["engines"]["main"]["candidate"]["model"] = "sk-abcdef"

    assert refusals(space) == [
        ("secret_in_eval_config", "engines.main.candidate.model")
    ]


def test_engine_that_gives_vectors_is_no_candidate(space):
    space.document["engines"]["main"] = embeddings(URL)

    assert refusals(space) == [("eval_config_invalid", "engine")]


def test_engine_of_vectors_is_no_generating_comparator(space):
    space.document["engines"]["vectors"] = embeddings(URL)
    space.document["comparators"] = [
        {"name": "x", "kind": "engine", "engine": "vectors", "system": None}
    ]

    assert refusals(space) == [("eval_config_invalid", "comparators[0].engine")]


def test_records_need_training_rows_for_a_baseline(tmp_path):
    space = Workspace(tmp_path, "json-records", url=URL)
    space.document["engines"]["vectors"] = embeddings(URL)
    space.document["comparators"] = [
        {"name": "x", "kind": "embedding", "engine": "vectors", "train": None}
    ]

    assert refusals(space) == [("eval_config_invalid", "comparators[0].train")]


@pytest.mark.parametrize("text", ["[]", "{}", '["a", 1]', "no json"])
def test_labels_that_cannot_be_used_are_refused(space, text):
    (space.root / "declared.json").write_text(text)

    assert refusals(space) == [("eval_cli_invalid", "manifest.declaration")]


def test_schema_that_cannot_be_used_is_refused(tmp_path):
    space = Workspace(tmp_path, "json-records", url=URL)
    (tmp_path / "declared.json").write_text('{"type": "object", "properties": 1}')

    assert {place for _, place in refusals(space)} == {"manifest.declaration"}


@pytest.mark.parametrize(
    ("contract", "declared"), [("action-ir", "declared.json"), ("json-records", None)]
)
def test_declaration_is_what_the_contract_has(tmp_path, contract, declared):
    space = Workspace(tmp_path, contract, url=URL)
    (tmp_path / "declared.json").write_text("{}")
    space.document["manifest"]["declaration"] = declared

    assert refusals(space) == [("eval_config_invalid", "manifest.declaration")]


def test_extension_of_another_provider_is_refused(space):
    candidate = space.document["engines"]["main"]["candidate"]
    candidate["provider_extensions"] = {"other.v1": {"thinking": False}}

    assert refusals(space) == [
        (
            "eval_config_invalid",
            "engines.main.candidate.provider_extensions.other.v1",
        )
    ]


def test_unknown_engine_of_the_command_line_is_refused(space):
    with pytest.raises(ConfigError, match="no engine has this name"):
        plan_of_file(space.write(), engine="missing")


@pytest.mark.parametrize("broken", ["", "[]", "kind: [", "a: 1\na: 2"])
def test_file_that_is_no_mapping_is_refused(tmp_path, broken):
    path = tmp_path / "predict.yaml"
    path.write_text(broken)

    with pytest.raises(ConfigError):
        plan_of_file(path)


def test_files_are_left_alone_where_that_is_asked(space):
    for path in space.root.glob("*.txt"):
        path.unlink()

    reading = read_predict_config(space.write(), files=False)

    assert reading.config().files == {}


@pytest.mark.parametrize("section", ["manifest", "prompt", "engines", "comparators"])
@pytest.mark.parametrize("value", [None, 1, "text", [1], {"x": 1}])
def test_section_of_another_form_is_refused_and_nothing_else_breaks(
    space, section, value
):
    space.document[section] = value

    assert refusals(space) != []


def test_list_for_a_candidate_is_refused_where_its_engine_has_no_kind(space):
    space.document["engines"]["main"] |= {"kind": None, "candidate": []}

    assert {place for _, place in refusals(space)} >= {"engines.main.kind"}


def whole_document(space):
    """A document with every kind of section that needs no other library."""
    document = space.document
    document["engines"] |= {"vectors": embeddings(URL), "local": TORCH}
    document["comparators"] = [
        {"name": "x", "kind": "embedding", "engine": "vectors", "train": None},
        {"name": "y", "kind": "engine", "engine": "main", "system": "system.txt"},
    ]
    return document


values = st.sampled_from(
    [None, -1, 0.5, True, "", "text", ".", "\x00", 10**30, [], [1], [{}], {}, {"x": 1}]
)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_whatever_stands_at_a_key_is_told_and_breaks_nothing(data):
    with tempfile.TemporaryDirectory() as scratch:
        space = Workspace(Path(scratch), url=URL)
        document = copy.deepcopy(whole_document(space))
        for _ in range(data.draw(st.integers(1, 2))):
            path = data.draw(st.sampled_from(sorted(key_paths(document))))
            put(document, path, copy.deepcopy(data.draw(values)))
        space.document = document
        try:
            plan_of_file(space.write())
        except FairtrialError as error:
            # A refusal is one of two good ends.
            assert error.violations  # noqa: PT017
            assert all(each.recovery for each in error.violations)  # noqa: PT017


@pytest.mark.parametrize("place", [("manifest", "path"), ("prompt", "system")])
@pytest.mark.parametrize("special", ["pipe", "/dev/zero", "."])
def test_what_is_no_regular_file_is_refused_unread(space, place, special):
    os.mkfifo(space.root / "pipe")
    section, key = place
    space.document[section][key] = special

    assert refusals(space) == [("eval_config_path_invalid", f"{section}.{key}")]


@pytest.mark.parametrize(
    ("section", "key", "value", "words"),
    [
        ("decoding", "max_tokens", 0, "greater than"),
        ("decoding", "top_p", 2, "less than"),
        ("decoding", "temperature", -1, "greater than"),
    ],
)
def test_value_out_of_range_is_told_with_what_to_do(space, section, key, value, words):
    space.document[section][key] = value

    with pytest.raises(ConfigError) as refused:
        plan_of_file(space.write())

    (violation,) = refused.value.violations
    assert words in violation.expected
    assert violation.recovery.startswith("write a value that is expected")


def test_list_is_called_a_list(space):
    space.document["decoding"]["stop"] = "end"

    with pytest.raises(ConfigError) as refused:
        plan_of_file(space.write())

    assert refused.value.violations[0].expected == "a list"
