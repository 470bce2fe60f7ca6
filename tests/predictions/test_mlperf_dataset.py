"""What a data set must be, and which turns it expects."""

import json

import pytest

from harness.errors import ScoringError
from harness.predictions.mlperf_dataset import read_dataset


def row(name, turn, role, **fields):
    return {"conversation_id": name, "turn": turn, "role": role, **fields}


def bash(command):
    return {
        "id": "c",
        "type": "function",
        "function": {"name": "bash", "arguments": {"command": command}},
    }


def conversation(name="a"):
    return [
        row(name, 1, "user", content="go"),
        row(name, 2, "assistant", tool_calls=[bash("ls")]),
        row(name, 3, "tool", tool_results=[{"tool_call_id": "c", "content": "x"}]),
        row(name, 4, "assistant", content="done"),
    ]


def write(folder, rows):
    path = folder / "d.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return path


def expected_turns(recorded):
    return [(t.source_id, t.client_turn, t.assistant_turn) for t in recorded.turns]


def test_client_row_before_an_assistant_row_is_an_expected_turn(tmp_path):
    rows = conversation()
    rows += [
        row("a", 5, "user", content="more"),
        row("a", 6, "assistant", tool_calls=[bash("cat")]),
        row("a", 7, "tool", tool_results=[{"tool_call_id": "c"}]),
        row("a", 8, "user", content="stop"),
    ]

    recorded = read_dataset(write(tmp_path, rows))

    assert expected_turns(recorded) == [("a", 1, 2), ("a", 3, 4), ("a", 5, 6)]


def test_rows_of_a_conversation_may_stand_in_any_order(tmp_path):
    recorded = read_dataset(
        write(tmp_path, conversation("b")[::-1] + conversation("a"))
    )

    assert [t.source_id for t in recorded.turns] == ["a", "a", "b", "b"]
    assert recorded.turns[0].truth.names == ("ls",)


def test_blank_lines_and_metadata_are_left_out(tmp_path):
    path = write(tmp_path, [{"_type": "dataset_metadata"}, *conversation()])
    path.write_text("\n" + path.read_text() + " \n")

    assert len(read_dataset(path).turns) == 2


def test_ids_that_are_numbers_stay_text(tmp_path):
    recorded = read_dataset(write(tmp_path, conversation("007")))

    assert recorded.turns[0].source_id == "007"


def test_id_that_is_a_number_is_its_text(tmp_path):
    rows = [{**each, "conversation_id": 7} for each in conversation()]

    assert expected_turns(read_dataset(write(tmp_path, rows)))[0] == ("7", 1, 2)


def test_turn_as_a_whole_float_is_its_number(tmp_path):
    rows = [{**each, "turn": float(each["turn"])} for each in conversation()]

    assert expected_turns(read_dataset(write(tmp_path, rows)))[0] == ("a", 1, 2)


def changed(index, **fields):
    rows = conversation()
    rows[index] = {**rows[index], **fields}
    return rows


@pytest.mark.parametrize(
    ("rows", "problem", "line"),
    [
        (changed(0, conversation_id=""), "conversation_id", 1),
        (changed(0, conversation_id="a\n"), "conversation_id", 1),
        (changed(1, turn="2"), "turn is no whole number", 2),
        (changed(1, turn=True), "turn is no whole number", 2),
        (changed(2, role="function"), "role is 'function'", 3),
        (changed(3, turn=3), "turn 3 where turn 4 belongs", 4),
        (changed(1, tool_calls={}), "at least one call", 2),
        (changed(1, tool_calls=[5]), "tool_calls[0]: no object", 2),
        (changed(1, tool_calls=[{"id": "c"}]), "function is no object", 2),
        (
            changed(1, tool_calls=[{"id": "c", "function": {"arguments": ""}}]),
            "function without a name",
            2,
        ),
        (
            changed(1, tool_calls=[{**bash("ls"), "type": "custom"}]),
            "type is not function",
            2,
        ),
        (changed(2, tool_results=[{"content": "x"}]), "tool_results[0]", 3),
        (changed(2, role="assistant", content="x"), "a row of assistant after", 3),
        (
            [
                *conversation(),
                row("a", 5, "tool", tool_results=[{"tool_call_id": "c"}]),
            ],
            "a tool row after an assistant row without calls",
            5,
        ),
        ([*conversation("a"), *conversation("b"), *conversation("a")], "contiguous", 9),
    ],
)
def test_row_is_refused_with_its_line(tmp_path, rows, problem, line):
    with pytest.raises(ScoringError) as refusal:
        read_dataset(write(tmp_path, rows))

    first = refusal.value.violations[0]
    assert problem in first.problem
    assert first.where == f"d.jsonl:{line}"


def test_all_problems_are_told_at_once(tmp_path):
    rows = [
        *changed(0, content=""),
        *[{**r, "conversation_id": "b"} for r in changed(3, content=None)],
    ]

    with pytest.raises(ScoringError) as refusal:
        read_dataset(write(tmp_path, rows))

    assert [v.where for v in refusal.value.violations] == ["d.jsonl:1", "d.jsonl:8"]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "no row has a content field"),
        (b"[]\n", "no JSON object"),
        (b"{\n", "Expecting"),
        (b"\xff\n", "utf-8"),
        (b"[" * 5000 + b"]" * 5000, "nested too deep"),
        (b'{"a":' * 960, "nested too deep|Expecting"),
        (b"PAR1 and no table", "no readable Parquet file"),
    ],
)
def test_file_that_is_no_data_set_is_refused(tmp_path, data, problem):
    path = tmp_path / "d.jsonl"
    path.write_bytes(data)

    with pytest.raises(ScoringError, match=problem):
        read_dataset(path)


@pytest.mark.parametrize("role", ["assistant", "nobody"])
def test_long_list_of_problems_is_cut(tmp_path, role):
    rows = [row(f"c{n}", 1, role, content="x") for n in range(50)]

    with pytest.raises(ScoringError) as refusal:
        read_dataset(write(tmp_path, rows))

    assert len(refusal.value.violations) == 10
