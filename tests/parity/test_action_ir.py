"""Every case of `action-ir/`: intermediate values, scores, and the bytes of the files.

A score case compares decoding, codes, paths, canonical forms and every flag; a TOOLS
case the tools themselves; a join case the reason or both files. Values compare as
canonical text, so 1 and 1.0 differ. The one sum of this project is the plain one, so
`expected_python_3_12_plus` is never what is met.
"""

import base64
import hashlib
import json

import pytest

from harness.canonical import canonical_json
from harness.predictions.action_ir import aggregate_bytes, score_files
from harness.predictions.generation import PredictionLine
from harness.predictions.json_lines import line_bytes
from harness.scoring.action_ir.aggregate import aggregate
from harness.scoring.action_ir.decode import decode_action_object
from harness.scoring.action_ir.evidence import ExecutionEvidence
from harness.scoring.action_ir.mobile import equals_gold, score_rows
from harness.scoring.action_ir.problem import InvalidActionError
from harness.scoring.action_ir.refusal import REASONS, ActionIrError
from harness.scoring.action_ir.sample import UNSPECIFIED, score_sample
from harness.scoring.action_ir.tools import (
    ToolDefinitionError,
    ToolSet,
    tool_from_json,
)
from harness.scoring.action_ir.tools_block import ToolsBlockReader, schema_signature
from tests.parity.folders import fixture_path

FOLDER = "action-ir"
OUR_OWN_WORDS = {
    "empty_tools_block",
    "duplicate_prediction_id",
    "generation_failure_type",
}
"""Reasons that the contract orders but for which no case we hold gives a word."""
HEADLINE = {
    "aggregate_barunaction-v2_756.json": (
        "5d7244d2fa449a7ce4b2aa3a20fc095fb118a38920b1dd9181f56669a7ddfea1"
    ),
    "aggregate_qwen_756.json": (
        "2184b93d383f1136c050d95e71fb129bbe083b3fea4de86da6bdf5ec7f3e1756"
    ),
}


def lines_of(config, name):
    path = fixture_path(config, FOLDER, name)
    if not path.is_file():
        return []
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def published_aggregates(config):
    return sorted(fixture_path(config, FOLDER, "published").glob("aggregate_*.json"))


def pytest_generate_tests(metafunc):
    config = metafunc.config
    named = set(metafunc.fixturenames)
    for kind in ("score", "tools_block", "schema_definition", "join"):
        if f"{kind}_case" in named:
            cases = [c for c in lines_of(config, "parity.jsonl") if c["kind"] == kind]
            metafunc.parametrize(f"{kind}_case", cases, ids=[c["id"] for c in cases])
    for kind in ("aggregate", "aggregate_evaluator"):
        if f"{kind}_case" in named:
            cases = [
                c for c in lines_of(config, "aggregates.jsonl") if c["kind"] == kind
            ]
            metafunc.parametrize(f"{kind}_case", cases, ids=[c["id"] for c in cases])
    if "real_row" in named:
        rows = lines_of(config, "published/real_rows.jsonl")
        metafunc.parametrize(
            "real_row", rows, ids=[f"{row['run'][-6:]}-{row['id']}" for row in rows]
        )
    if "manifest_row" in named:
        rows = lines_of(config, "published/manifest_sample.jsonl")
        metafunc.parametrize("manifest_row", rows, ids=[row["id"] for row in rows])
    if "published" in named:
        paths = published_aggregates(config)
        metafunc.parametrize("published", paths, ids=[path.stem for path in paths])


@pytest.fixture(scope="session")
def toolsets(request):
    path = fixture_path(request.config, FOLDER, "toolsets.json")
    return {
        name: ToolSet(tool_from_json(tool) for tool in tools)
        for name, tools in json.loads(path.read_text(encoding="utf-8")).items()
    }


def prediction_of(case):
    if "prediction_b64" in case:
        data = base64.b64decode(case["prediction_b64"])
        if case["prediction_codec"] == "bytes":
            return data.decode("utf-8", "surrogateescape")
        return data.decode("utf-8", "surrogatepass")
    if "prediction_json" in case:
        return case["prediction_json"]
    return case["prediction_raw"]


def hook_of(case):
    hook = case.get("hook", "mobile_ast")
    if hook == "mobile_ast" or hook is None:
        return equals_gold
    if hook == "none":
        return None
    words = tuple(hook.get("failure_categories", ()))
    evidence = ExecutionEvidence(**(hook | {"failure_categories": words}))
    return lambda prediction, gold: evidence


def scored(case, tools, sample_id):
    return score_sample(
        sample_id,
        gold=case["gold"],
        tools=tools,
        prediction_raw=prediction_of(case),
        scenario=case.get("scenario", UNSPECIFIED),
        forbids_immediate_execution=case.get("forbids_immediate_execution"),
        truncated=case.get("truncated", False),
        generation_failure=case.get("generation_failure"),
        confidence=case.get("confidence"),
        hook=hook_of(case),
    )


def decoded_text(prediction):
    try:
        return canonical_json(decode_action_object(prediction))
    except InvalidActionError:
        return None


def flags_of(score):
    problem, prediction = score.problem, score.prediction
    return {
        "parse_ok": score.parse_valid,
        "schema_ok": score.schema_valid,
        "exact": score.ast_exact,
        "error_stage": problem and problem.stage,
        "error_code": problem and problem.code,
        "error_path": problem and problem.path,
        "failure_categories": list(score.failure_categories),
        "policy_success": score.policy_safe_executable_success,
        "false_action_eligible": score.false_action_eligible,
        "false_action": score.false_action,
        "false_action_class": score.false_action_class,
        "catastrophic": score.is_catastrophic,
        "executed": score.execution is not None,
        "decision": prediction and prediction.decision,
        "canonical": prediction and prediction.text,
        "gold_canonical": score.gold.text,
        "decoded_canonical": decoded_text(score.prediction_raw),
    }


def assert_same(found, expected):
    """Compare what `expected` names, typed; more may be found."""
    assert expected.keys() <= found.keys()
    for name, value in expected.items():
        assert canonical_json(found[name]) == canonical_json(value), name


def assert_reason(error, word):
    """Compare the reason; a word that we do not hold must meet one of our own."""
    if word in REASONS:
        assert error.reason == word
    else:
        assert error.reason in OUR_OWN_WORDS


def test_prediction_is_judged_as_the_contract_says(score_case, toolsets):
    expected = dict(score_case["expected"])
    tools = toolsets[score_case["toolset"]]
    word = expected.pop("raises", None)
    if word is None:
        assert_same(flags_of(scored(score_case, tools, "case")), expected)
        return

    with pytest.raises(ActionIrError) as refused:
        scored(score_case, tools, "case")

    assert_reason(refused.value, word)
    if "error_code" in expected:
        assert refused.value.__cause__.code == expected["error_code"]


def test_tools_block_is_read_as_the_contract_says(tools_block_case):
    expected = tools_block_case["expected"]
    if not expected["ok"]:
        with pytest.raises(ActionIrError) as refused:
            ToolsBlockReader().read(tools_block_case["prompt"])

        assert_reason(refused.value, expected["error"])
        return

    found = [
        {
            "name": tool.name,
            "arguments": {name: schema.type for name, schema in tool.arguments.items()},
            "required": sorted(tool.required),
            "additional_arguments": tool.additional_arguments,
            "side_effecting": tool.side_effecting,
        }
        for tool in ToolsBlockReader().read(tools_block_case["prompt"]).values()
    ]
    listed = [
        tool | {"required": sorted(tool["required"])} for tool in expected["tools"]
    ]
    assert canonical_json(found) == canonical_json(listed)


def test_tool_definition_is_accepted_or_refused(schema_definition_case):
    definitions = schema_definition_case["tools"]
    if schema_definition_case["expected"]["ok"]:
        found = ToolSet(tool_from_json(tool) for tool in definitions)

        assert list(found) == [tool["name"] for tool in definitions]
        return

    with pytest.raises(ToolDefinitionError):
        ToolSet(tool_from_json(tool) for tool in definitions)


def with_prompts(case):
    """Put the shared prompts of a case back into its manifest."""
    prompts = case.get("prompts", [])
    return [
        row | {"prompt": prompts[row["prompt"]["$prompt"]]}
        if isinstance(row.get("prompt"), dict)
        else row
        for row in case["manifest"]
    ]


def score_through_files(case, folder):
    paths = []
    for name, rows in (
        ("manifest.jsonl", with_prompts(case)),
        ("predictions.jsonl", case["predictions"]),
    ):
        path = folder / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        paths.append(path)
    return score_files(*paths, folder / "out")


def check_rows(case, folder):
    """Compare the outcome of a whole set of rows, in memory and as files."""
    expected = case["expected"]
    if not expected["ok"]:
        with pytest.raises(ActionIrError) as refused:
            score_rows(with_prompts(case), case["predictions"])

        assert_reason(refused.value, expected["error"])
        return
    scores, total = score_rows(with_prompts(case), case["predictions"])
    records = [score.as_record() for score in scores]
    files = score_through_files(case, folder)

    assert_same({"aggregate": total}, {"aggregate": expected["aggregate"]})
    if "sample_scores" in expected:
        assert canonical_json(records) == canonical_json(expected["sample_scores"])
    for record, named in zip(records, expected.get("samples", records), strict=True):
        assert_same(record, named)
    assert files.aggregate_sha256 == expected["aggregate_file_sha256"]
    assert files.sample_scores_sha256 == expected["sample_scores_file_sha256"]
    for name, digest in (
        ("aggregate.json", files.aggregate_sha256),
        ("sample_scores.jsonl", files.sample_scores_sha256),
    ):
        data = (folder / "out" / name).read_bytes()
        assert hashlib.sha256(data).hexdigest() == digest


def test_rows_join_or_are_refused(join_case, tmp_path):
    check_rows(join_case, tmp_path)


def test_population_has_the_published_bytes(aggregate_case, tmp_path):
    check_rows(aggregate_case, tmp_path)


def test_population_of_the_evaluator_has_its_aggregate(
    aggregate_evaluator_case, toolsets
):
    case = aggregate_evaluator_case
    tools = toolsets[case["toolset"]]
    scores = [scored(row, tools, row["sample_id"]) for row in case["rows"]]

    found = aggregate(scores)

    assert canonical_json(found) == canonical_json(case["expected"]["aggregate"])


def test_published_aggregate_is_written_byte_for_byte(published):
    data = published.read_bytes()

    written = aggregate_bytes(json.loads(data))

    assert written == data
    known = HEADLINE.get(published.name)
    assert known is None or hashlib.sha256(written).hexdigest() == known


def test_real_row_has_its_published_categories(real_row, toolsets):
    score = score_sample(
        real_row["id"],
        gold=real_row["target"],
        tools=toolsets["mobile7"],
        prediction_raw=real_row["prediction_raw"],
        scenario=real_row["scenario"],
        truncated=real_row["truncated"],
        hook=equals_gold,
    )

    assert list(score.failure_categories) == real_row["published_failure_categories"]


def test_real_prompt_has_its_published_schema_signature(manifest_row):
    tools = ToolsBlockReader().read(manifest_row["prompt"])

    assert schema_signature(tools) == manifest_row["metadata"]["schema_signature"]


def test_real_prediction_lines_are_written_byte_for_byte(request):
    name = "published/predictions_sample_candidate-v2.jsonl"
    path = fixture_path(request.config, FOLDER, name)
    data = path.read_bytes() if path.is_file() else b""

    written = [
        line_bytes(PredictionLine(**row).as_record())
        for row in lines_of(request.config, name)
    ]

    assert b"".join(written) == data
