"""Strict YAML gives plain JSON values or a refusal with a position."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.strict_yaml import StrictYamlError, load_yaml


def test_values_are_plain_json_types() -> None:
    value, _ = load_yaml("a: [1, -2, 0x1F, 1_000, 2.5, true, no, null, ~, text]\nb: {}")

    assert value == {
        "a": [1, -2, 31, 1000, 2.5, True, False, None, None, "text"],
        "b": {},
    }


def test_quoted_scalars_stay_text() -> None:
    value, _ = load_yaml("a: '1'\nb: \"true\"\nc: '2024-01-01'")

    assert value == {"a": "1", "b": "true", "c": "2024-01-01"}


def test_lines_point_at_keys_and_items() -> None:
    _, lines = load_yaml("a:\n  - x\n  - y: 1\n    z: 2\n")

    assert [lines.line(p) for p in (("a",), ("a", 0), ("a", 1), ("a", 1, "z"))] == [
        1,
        2,
        3,
        4,
    ]


def test_line_of_an_absent_path_is_its_nearest_parent() -> None:
    _, lines = load_yaml("x: 1\na:\n  b: 2\n")

    assert lines.line(("a", "missing", 3)) == 2


def test_aliases_are_followed() -> None:
    value, _ = load_yaml("a: &one [1]\nb: *one\n")

    assert value == {"a": [1], "b": [1]}


def test_empty_document_is_null() -> None:
    assert load_yaml("").value is None


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "repeats"),
        ("a: 1\n2: x\n", 2, "quotes"),
        ("no: x\n", 1, "quotes"),
        ("? [a]\n: 1\n", 1, "quotes"),
        ("a: 2024-01-01\n", 1, "quotes"),
        ("a: 12:30\n", 1, "decimal integer"),
        ("a: 010\n", 1, "decimal integer"),
        ("a: .nan\n", 1, "finite"),
        ("a: .inf\n", 1, "finite"),
        ("a: 12:30.5\n", 1, "finite"),
        ("a: !!python/object:os.system x\n", 1, "python"),
        ("a: !!set {x}\n", 1, "set"),
        ("b: &m {x: 1}\na:\n  <<: *m\n", 3, "merge"),
        ("a: &a [*a]\n", 1, "itself"),
        ("a: [1\nb: 2\n", 2, ""),
        ("a: 1\n---\nb: 2\n", 2, ""),
    ],
)
def test_surprises_are_refused_with_their_line(text: str, line: int, word: str) -> None:
    with pytest.raises(StrictYamlError) as caught:
        load_yaml(text)

    assert caught.value.line == line
    assert word in caught.value.problem


def test_alias_bomb_is_refused() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 7)]

    with pytest.raises(StrictYamlError, match="more than"):
        load_yaml("\n".join(rows))


def test_file_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_bytes(b"a: 1\nb: \xff\n")

    with pytest.raises(StrictYamlError) as caught:
        load_yaml(path)

    assert caught.value.where == "broken.yaml:2:4"


@pytest.mark.parametrize("digits", ["9" * 5000, "0x" + "f" * 4300])
def test_endless_integer_is_refused_with_its_place(digits):
    with pytest.raises(StrictYamlError) as caught:
        load_yaml(f"a: 1\nb: {digits}\n")

    assert caught.value.line == 2


def test_character_that_yaml_does_not_have_is_told_with_its_place():
    with pytest.raises(StrictYamlError) as refused:
        load_yaml("a: 1\nb: é\nc: \0")

    assert (refused.value.line, refused.value.column) == (3, 4)
