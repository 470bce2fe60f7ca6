"""Decoding gives one normal form, or the parse problem with its place."""

import pytest

from harness.canonical import canonical_json
from harness.scoring.action_ir.decode import decode_action_object
from harness.scoring.action_ir.problem import PARSE_CODES, InvalidActionError


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ('{"b":1,"a":"x"}', '{"a":"x","b":1}'),
        (' {"e\u0301":["e\\u0301"]}\n', '{"é":["é"]}'),
        ('{"a":{"\u212b":"\u212b"}}', '{"a":{"Å":"Å"}}'),
        ('{"a":"\ufb01","b":-0,"c":-0.0}', '{"a":"\ufb01","b":0,"c":-0.0}'),
    ],
)
def test_every_string_and_key_is_in_nfc(text, canonical):
    assert canonical_json(decode_action_object(text)) == canonical


@pytest.mark.parametrize(
    ("text", "code", "path"),
    [
        (5, "type_mismatch", "$"),
        (b"{}", "type_mismatch", "$"),
        ("\ud800", "invalid_utf8", "$"),
        ('{"a":{"b":1,"b":2},', "duplicate_key", "$"),
        ('{"a":1e309}', "non_finite_number", "$"),
        ("```json\n{}\n```", "invalid_json", "$"),
        ("[{}]", "top_level_not_object", "$"),
        ('{"a":' + "[" * 64 + "1" + "]" * 64 + "}", "max_nesting_exceeded", "$"),
        ('{"a":[{"b":"\\ud800"}]}', "invalid_utf8", "$.a[0].b"),
        ('{"a":{"é":1,"e\u0301":2}}', "duplicate_key", "$.a"),
    ],
)
def test_problem_has_stage_code_and_place(text, code, path):
    with pytest.raises(InvalidActionError) as found:
        decode_action_object(text)

    problem = found.value
    assert (problem.stage, problem.code, problem.path) == ("parse", code, path)
    assert code in PARSE_CODES
