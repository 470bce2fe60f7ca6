"""A pack loads whole or says everything that is wrong with it."""

import json
import os
from pathlib import Path

import pytest

from harness.benchmark.bundled import bundled_names, bundled_pack, resolve_pack
from harness.benchmark.pack import load_pack
from harness.errors import PackError
from tests.benchmark.shop import (
    ASSERTIONS,
    CASES,
    FIXTURES,
    TOOLS,
    loaded,
    problems_of,
    purchase,
    template,
    write_pack,
)


def _only(problems):
    (problem,) = problems
    return problem


def test_library_loads():
    pack = load_pack(bundled_pack("library"))

    assert (pack.pack_id, pack.oracle_kind, len(pack.templates)) == (
        "library",
        "python",
        9,
    )


def test_model_never_sees_pack_only_keys(tmp_path):
    pack = loaded(tmp_path)

    assert "x-" not in json.dumps(pack.model_tools)
    assert pack.tools.by_name["buy_item"].requires_confirmation


def test_bundled_name_resolves_and_unknown_does_not():
    assert bundled_names() == ("bank", "library")
    assert resolve_pack("library") == bundled_pack("library")
    with pytest.raises(PackError, match="no such pack"):
        resolve_pack("no-such-pack")


def test_only_a_pack_in_this_folder_hides_a_bundled_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bank").mkdir()
    assert resolve_pack("bank") == bundled_pack("bank")

    (tmp_path / "bank" / "manifest.yaml").touch()
    assert resolve_pack("bank") == Path("bank")


def test_folder_without_manifest_is_refused(tmp_path):
    with pytest.raises(PackError, match="not a pack"):
        load_pack(tmp_path)


def test_all_problems_come_at_once_with_file_and_line(tmp_path):
    write_pack(tmp_path, template(turn_policy="nope"), manifest={"unknown": 1})
    (tmp_path / "tools.json").write_text("{}")

    with pytest.raises(PackError) as caught:
        load_pack(tmp_path)

    wheres = [violation.where for violation in caught.value.violations]
    assert any(where.startswith("manifest.yaml:") for where in wheres)
    assert "tools.json:1" in wheres


def test_problem_names_the_line_of_the_template(tmp_path):
    write_pack(tmp_path, template(), template(template_id="other", call_order="odd"))
    line = (
        (tmp_path / "task_templates.yaml")
        .read_text()
        .split("\n")
        .index("  call_order: odd")
    )

    with pytest.raises(PackError) as caught:
        load_pack(tmp_path)

    (violation,) = caught.value.violations
    assert violation.where == f"task_templates.yaml:{line + 1}: [1].call_order"


def places(folder):
    with pytest.raises(PackError) as caught:
        load_pack(folder)
    return [violation.where for violation in caught.value.violations]


@pytest.mark.parametrize(
    "rows",
    [
        b'{"items": [\n{"a": 1,}]}',
        b'{"items": [\n{"a": NaN}]}',
        b'{"items": ["NaN", {\n"a": 1, "a": 2}]}',
        b'{"items": ["\n\xff"]}',
    ],
    ids=["syntax", "NaN", "repeated key", "not UTF-8"],
)
def test_fault_of_a_json_file_is_told_once_with_its_line(tmp_path, rows):
    write_pack(tmp_path)
    (tmp_path / "fixtures.json").write_bytes(rows)

    assert places(tmp_path) == ["fixtures.json:2"]


def test_fault_of_a_tool_schema_is_told_with_its_line(tmp_path):
    write_pack(tmp_path)
    path = tmp_path / "tools.json"
    tools = json.loads(path.read_text("utf-8"))
    parameters = tools[0]["function"]["parameters"]
    parameters["properties"] = {"id": {"type": "strng"}}
    parameters["required"] = []
    path.write_text(json.dumps(tools, indent=1), "utf-8")
    line = path.read_text("utf-8").split("\n").index('      "type": "strng"') + 1

    assert places(tmp_path)[0] == (
        f"tools.json:{line}: [0].function.parameters.properties.id.type"
    )


@pytest.mark.parametrize(
    ("slot", "key"),
    [
        ({"source": "fixtur:items.item_id", "visible_in_first_turn": True}, "source"),
        ({"source": "range:{}", "visible_in_first_turn": True}, "source"),
    ],
)
def test_faulty_slot_makes_no_false_fault_of_what_names_it(tmp_path, slot, key):
    write_pack(tmp_path, template(slots={"item_id": slot}))

    (place,) = places(tmp_path)
    assert place.endswith(f"slots.item_id.{key}")


def test_symbolic_link_is_refused(tmp_path):
    write_pack(tmp_path)
    (tmp_path / "extra.json").symlink_to(tmp_path / "fixtures.json")

    with pytest.raises(PackError, match="symbolic link"):
        load_pack(tmp_path)


DEEP = "-" * 20_000
LONG = "x = " + "+".join(["1"] * 100_000)


@pytest.mark.parametrize(
    ("manifest", "word"),
    [
        ({"version": 1.0}, "version is no plain token"),
        ({"paths": {"tools": "../tools.json"}}, "leads out of the pack"),
        ({"paths": {"tools": "other.json"}}, "does not exist"),
        ({"absent_ids": {"items": "I-1"}}, "declared absent but exists"),
        ({"absent_ids": {"things": "X"}}, "no collection 'things'"),
        ({"primary_keys": {"items": "kind"}}, "does not name every row"),
        ({"confirmation": {"word": "x"}}, "unknown key 'word'"),
        ({"languages": ["en"], "default_language": "de"}, "not one of the languages"),
        ({"languages": ["en", "de"]}, "no wording for language 'de'"),
        ({"system_prompt_path": "p.txt"}, "exclude each other"),
        ({"docs": "nowhere"}, "names no folder"),
    ],
)
def test_manifest_problems(tmp_path, manifest, word):
    assert any(word in problem for problem in problems_of(tmp_path, manifest=manifest))


@pytest.mark.parametrize(
    ("files", "word"),
    [
        (
            {"json.py": "X = 1", "helper.py": "from json import loads"},
            "hides the standard module 'json'",
        ),
        (
            {"email/__init__.py": "", "helper.py": "import email.message"},
            "hides the standard module 'email'",
        ),
        ({"helper.py": "def"}, "not Python"),
        ({"helper.py": f"x = {DEEP}1"}, "not Python: nested too deeply"),
        ({"backend.py": f"x = {DEEP}1"}, "not Python: nested too deeply"),
        ({"helper.py": LONG}, "not Python: nested too deeply"),
        ({"backend.py": None}, "a pack has one oracle"),
        ({"endpoint_config.yaml": "a: 1"}, "a pack has one oracle"),
        ({"fixtures.json": '{"items": [], "items": []}'}, "duplicate_key"),
        ({"fixtures.json": '{"items": [1]}'}, "not a row object"),
        ({"task_templates.yaml": "- a: 1\n  a: 2\n"}, "repeats"),
    ],
)
def test_file_problems(tmp_path, files, word):
    assert any(word in problem for problem in problems_of(tmp_path, files=files))


@pytest.mark.parametrize(
    "files",
    [
        {"token.py": "X = 1"},
        {"parts/json.py": "X = 1", "helper.py": "import json"},
        {"parts/__init__.py": "from . import json", "parts/json.py": ""},
    ],
    ids=["never imported", "not on the import path", "relative"],
)
def test_helper_may_have_a_standard_name_that_the_pack_does_not_import(tmp_path, files):
    assert problems_of(tmp_path, files=files) == []


def test_helper_module_is_allowed(tmp_path):
    pack = loaded(tmp_path, files={"prices.py": "VAT = 2\n"})

    assert "tree/prices.py" in pack.files


def test_schema_problems_of_tools_are_listed(tmp_path):
    tools = json.loads(json.dumps(TOOLS))
    tools[0]["function"]["parameters"]["properties"]["unit"] = {"enum": []}

    assert "schema_enum_empty" in _only(problems_of(tmp_path, tools=tools))


def test_confirmed_tool_needs_its_parameter(tmp_path):
    tools = json.loads(json.dumps(TOOLS))
    del tools[1]["function"]["parameters"]["properties"]["confirm"]

    assert "without its parameter" in _only(problems_of(tmp_path, tools=tools))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda cases: cases.pop(0), "no schema-valid case that expects success"),
        (lambda cases: cases.pop(1), "no negative case"),
        (lambda cases: cases[0].update(reset_before=False), "nothing to chain onto"),
        (lambda cases: cases[0].update(tool="fly"), "no tool 'fly'"),
        (lambda cases: cases[1].update(id="get"), "repeats"),
        (lambda cases: cases[1].update(coverage="good"), "coverage word"),
        (lambda cases: cases[0]["expect"].update(result_class="ok"), "result class"),
    ],
)
def test_validation_case_problems(tmp_path, change, word):
    cases = json.loads(json.dumps(CASES))
    change(cases)

    assert any(word in problem for problem in problems_of(tmp_path, cases=cases))


def test_file_with_a_name_that_is_no_text_is_named(tmp_path):
    root = write_pack(tmp_path / "pack")
    (root / os.fsdecode(b"\xff.txt")).touch()

    with pytest.raises(PackError, match="a name that is no UTF-8") as refused:
        load_pack(root)

    assert "\\udcff.txt" in str(refused.value)


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("def assert_sold(state, trace, task): pass", "invalid_signature"),
        ("def assert_sold(*, state, trace, task, ctx, x): pass", "invalid_signature"),
        ("async def assert_sold(**kwargs): pass", "is async"),
        ("X = 1", "exports no assertion"),
        ("def assert_other(**kwargs): pass", "has no 'assert_sold'"),
        ("def", "not Python"),
        (f"x = {DEEP}1", "not Python: nested too deeply"),
        (LONG, "not Python: nested too deeply"),
    ],
)
def test_assertion_module_problems(tmp_path, source, word):
    problems = problems_of(tmp_path, assertions=source)

    assert any(word in problem for problem in problems)


@pytest.mark.parametrize(
    "capabilities",
    [
        "dict(assert_sold={})",
        "{'assert_unknown': {}}",
        "{'assert_sold': {'category': 'odd'}}",
        "{'assert_sold': {'trace': 1}}",
        "{'assert_sold': {'more': True}}",
        "[]",
    ],
)
def test_capabilities_are_a_literal_of_the_contract(tmp_path, capabilities):
    source = (
        f"ASSERTION_CAPABILITIES = {capabilities}\ndef assert_sold(**kwargs): pass\n"
    )

    problem = _only(problems_of(tmp_path, assertions=source))

    assert "invalid_assertion_capability" in problem


def test_capability_defaults_and_categories(tmp_path):
    specs = loaded(tmp_path).assertion_specs

    assert specs.capability("assert_sold").category == "state"
    assert specs.capability("assert_slot").category == "unclassified"
    assert specs.capability("assert_slot").executable


def test_trace_only_assertion_cannot_judge_a_task(tmp_path):
    source = (
        "ASSERTION_CAPABILITIES = {'assert_sold': {'executable': False}}\n" + ASSERTIONS
    ).replace('ASSERTION_CAPABILITIES = {"assert', 'OTHER = {"assert')

    assert "executable: false" in _only(problems_of(tmp_path, assertions=source))


def test_assertions_can_be_exported_by_a_dict(tmp_path):
    source = "def sold(**kwargs): pass\nASSERTIONS = {'assert_sold': sold}\n"

    assert problems_of(tmp_path, assertions=source) == []


def test_held_out_file_is_loaded_and_checked(tmp_path):
    held = {
        "held_out.yaml": "version: '1'\nfixtures: {items: [I-1]}\ntemplates: [look]\n"
    }

    pack = loaded(tmp_path, manifest={"held_out": "held_out.yaml"}, files=held)

    assert pack.held_out.fixtures == {"items": ("I-1",)}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("fixtures: {}", "'version' is missing"),
        ("version: 1\nfixtures: {items: [I-7]}", "no row has the id I-7"),
        ("version: 1\nfixtures: {items: [I-9]}", "declared absent"),
        ("version: 1\nfixtures: {items: [I-1, I-1]}", "repeats"),
        ("version: 1\ntemplates: [other]", "no template"),
    ],
)
def test_held_out_problems(tmp_path, text, word):
    problems = problems_of(
        tmp_path, manifest={"held_out": "held_out.yaml"}, files={"held_out.yaml": text}
    )

    assert any(word in problem for problem in problems)


def test_primary_key_is_found_by_convention_or_named(tmp_path):
    fixtures = {"entries": [{"entry_id": 1}], "codes": [{"code": "a"}], **FIXTURES}

    pack = loaded(
        tmp_path,
        purchase(),
        fixtures=fixtures,
        manifest={"primary_keys": {"codes": "code"}},
    )

    assert pack.fixtures.primary_keys == {
        "entries": "entry_id",
        "codes": "code",
        "items": "item_id",
    }


def test_two_id_fields_need_a_primary_key(tmp_path):
    fixtures = {"entries": [{"entry_id": 1, "id": 2}], **FIXTURES}

    assert "two id fields" in _only(problems_of(tmp_path, fixtures=fixtures))


def test_id_field_that_repeats_is_no_key(tmp_path):
    fixtures = {"entries": [{"id": 1}, {"id": 1}], **FIXTURES}

    assert loaded(tmp_path, fixtures=fixtures).fixtures.primary_keys == {
        "items": "item_id"
    }


def test_other_language_needs_its_own_prompt_and_words(tmp_path):
    made = template(user_turn_templates={"de": "Zeig {item_id}."})
    manifest = {"default_language": "de", "system_prompt": None}

    write_pack(tmp_path, made, manifest=manifest)
    path = tmp_path / "manifest.yaml"
    path.write_text(path.read_text().replace("system_prompt: null\n", ""))
    with pytest.raises(PackError) as caught:
        load_pack(tmp_path)

    problems = [violation.problem for violation in caught.value.violations]
    assert "system prompt" in problems[0]
    assert "no wording for final_answer in 'de'" in problems[1]


_ENDPOINT = {
    "protocol_version": "bfcl-oracle-http-v1",
    "base_url": "https://oracle.example",
    "expected": {
        "oracle_id": "o",
        "oracle_version": "1",
        "content_digest": "sha256:" + "0" * 64,
    },
}


def _endpoint(folder, **changes):
    files = {
        "backend.py": None,
        "endpoint_config.yaml": json.dumps({**_ENDPOINT, **changes}),
    }
    return problems_of(folder, files=files)


def test_endpoint_pack_loads(tmp_path):
    assert _endpoint(tmp_path) == []
    assert load_pack(tmp_path).oracle_kind == "endpoint"


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"base_url": "http://oracle.example"}, "https"),
        ({"base_url": "https://a:b@oracle.example"}, "https"),
        ({"protocol_version": "2"}, "unknown protocol"),
        ({"auth": {"headers": {"Host": "X"}}}, "reserved"),
        ({"auth": {"bearer_token_env": "A", "bearer_token_ref": "b"}}, "exclude"),
        ({"auth": {"bearer_token_env": "lower"}}, "name of a variable"),
        ({"attestation": {"kind": "x", "expected_digest": "y"}}, "unknown attestation"),
        ({"tls": {"ca_bundle_path": "none.pem"}}, "no plain file"),
        ({"max_request_bytes": 0}, "positive integer"),
        ({"surprise": 1}, "unknown key"),
    ],
)
def test_endpoint_problems(tmp_path, changes, word):
    assert any(word in problem for problem in _endpoint(tmp_path, **changes))
