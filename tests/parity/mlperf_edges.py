"""Builds the run that each line of `upstream_edge_behaviour.jsonl` describes.

Every run is one conversation with one expected turn (`ls`) and one answer to it
(`ls`), changed in the one way that the line names.
"""

import copy
import json
from dataclasses import dataclass, field

UUID = "u1"
LS = '{"command":"ls"}'


def call(arguments=LS, **more):
    function = {"name": "bash", "arguments": arguments}
    return {"id": "c0", "type": "function", "function": function, **more}


def row(turn, role, conversation_id="c", **fields):
    return {
        "conversation_id": conversation_id,
        "turn": turn,
        "role": role,
        **fields,
    }


def two_rows(conversation_id="c"):
    return [
        row(1, "user", conversation_id, content="go"),
        row(2, "assistant", conversation_id, tool_calls=[call()]),
    ]


def event(name, data=None, conversation_id="c", turn=1, uuid=UUID):
    return {
        "event_type": name,
        "timestamp_ns": 1,
        "sample_uuid": uuid,
        "conversation_id": conversation_id,
        "turn": turn,
        "data": data,
    }


def output(text="", reasoning=None, tool_calls=None):
    return ["TextModelOutput", text, reasoning, tool_calls]


def answered(tool_calls, conversation_id="c"):
    """The two events of one turn whose answer is these calls."""
    return [
        event("sample.issued", conversation_id=conversation_id),
        event("sample.complete", output(tool_calls=tool_calls), conversation_id),
    ]


def log_bytes(events, newline="\n"):
    return "".join(json.dumps(e) + newline for e in events).encode()


@dataclass
class Run:
    """The files of one run; None is a file that is not there."""

    rows: list = field(default_factory=two_rows)
    events: bytes | None = field(default_factory=lambda: log_bytes(answered([call()])))
    index_map: dict | None = field(default_factory=lambda: {"performance": {UUID: 0}})
    dataset_format: str = "jsonl"

    def write(self, folder):
        """Write the files and return the path of the data set."""
        if self.events is not None:
            (folder / "events.jsonl").write_bytes(self.events)
        if self.index_map is not None:
            (folder / "sample_idx_map.json").write_text(json.dumps(self.index_map))
        dataset = folder / f"dataset.{self.dataset_format}"
        if self.dataset_format == "parquet":
            import pyarrow
            import pyarrow.parquet

            names = {name: None for r in self.rows for name in r}
            table = pyarrow.Table.from_pylist([names | r for r in self.rows])
            pyarrow.parquet.write_table(table, dataset)
        else:
            dataset.write_text("".join(json.dumps(r) + "\n" for r in self.rows))
        return dataset


def with_arguments(arguments):
    return Run(events=log_bytes(answered([call(arguments)])))


def nested(levels):
    return with_arguments('{"command":"ls","n":' + "[" * levels + "]" * levels + "}")


def with_rows(*rows):
    return Run(rows=list(rows))


def changed(turn, /, **fields):
    rows = copy.deepcopy(two_rows())
    rows[turn - 1].update(fields)
    return with_rows(*rows)


def between(middle):
    """A run whose third row comes after a tool-calling assistant row."""
    return with_rows(*two_rows(), middle)


def cut_log():
    whole = log_bytes(answered([call()]))
    return Run(events=whole[:-40])


def numbered(ids, logged):
    rows = [r for name in ids for r in two_rows(name)]
    return Run(rows=rows, events=log_bytes(answered([call()], logged)))


def workflow_table():
    rows = [
        row(1, "user", "sim_1", content="go"),
        row(2, "assistant", "sim_1", content="x", intent_codes=["I001"]),
    ]
    return Run(
        rows=rows,
        events=log_bytes(answered([call()], "sim_1")),
        dataset_format="parquet",
    )


BUILDERS = {
    "huge_integer": lambda: with_arguments('{"command":"ls","n":' + "9" * 5000 + "}"),
    "deep_nesting": lambda: nested(100_000),
    "deep_nesting_900": lambda: nested(900),
    "invalid_utf8": lambda: Run(
        events=log_bytes(answered([call()])) + b'{"event_type":"\xff"}\n'
    ),
    "crlf_log": lambda: Run(events=log_bytes(answered([call()]), "\r\n")),
    "cr_only_log": lambda: Run(events=log_bytes(answered([call()]), "\r")),
    "line_separator_in_log": lambda: Run(
        events=log_bytes(answered([call()])).replace(b'"text"', b'"te\xe2\x80\xa8xt"')
        + '{"event_type":"session.ended","worker_id":"a\u2028b"}\n'.encode()
    ),
    "truncated_last_line": cut_log,
    "no_events_file": lambda: Run(events=None),
    "no_index_map": lambda: Run(index_map=None),
    "index_map_without_dataset": lambda: Run(index_map={"other": {}}),
    "empty_events": lambda: Run(events=b""),
    "numeric_ids": lambda: numbered(["001", "002"], "001"),
    "numeric_ids_rewritten": lambda: numbered(["001", "002"], "1"),
    "numeric_id_mixed": lambda: numbered(["001", "c"], "001"),
    "dataset_non_ascii_id": lambda: with_rows(*two_rows("caf\u00e9")),
    "dataset_interleaved": lambda: with_rows(
        two_rows("a")[0], *two_rows("b"), two_rows("a")[1]
    ),
    "dataset_gap": lambda: changed(2, turn=3),
    "dataset_assistant_first": lambda: with_rows(row(1, "assistant", content="hi")),
    "dataset_user_user": lambda: with_rows(
        row(1, "user", content="a"), row(2, "user", content="b")
    ),
    "dataset_user_after_call": lambda: between(row(3, "user", content="b")),
    "dataset_tool_after_prose": lambda: with_rows(
        row(1, "user", content="a"),
        row(2, "assistant", content="prose"),
        row(3, "tool", tool_results=[{"tool_call_id": "c0", "content": "x"}]),
    ),
    "dataset_empty_assistant": lambda: with_rows(
        row(1, "user", content="a"), row(2, "assistant", content="")
    ),
    "dataset_empty_tool_calls": lambda: changed(2, content="x", tool_calls=[]),
    "dataset_call_without_id": lambda: changed(
        2, tool_calls=[{k: v for k, v in call().items() if k != "id"}]
    ),
    "dataset_call_arguments_list": lambda: changed(2, tool_calls=[call(["ls"])]),
    "dataset_empty_user": lambda: changed(1, content=""),
    "dataset_tool_without_results": lambda: between(row(3, "tool", content="x")),
    "dataset_content_column_missing": lambda: with_rows(
        {k: v for k, v in two_rows()[0].items() if k != "content"}, two_rows()[1]
    ),
    "dataset_role_system": lambda: with_rows(row(1, "system", content="x")),
    "parquet_coding": lambda: Run(
        rows=[two_rows()[0], {**two_rows()[1], "content": "text"}],
        dataset_format="parquet",
    ),
    "parquet_coding_no_text": lambda: Run(dataset_format="parquet"),
    "parquet_workflow": workflow_table,
}
"""The lines that name a change in words."""


def run_of(edge):
    """Return the run of one line of the file."""
    if "line" in edge:
        extra = edge["line"].encode() + b"\n"
        return Run(events=log_bytes(answered([call()])) + extra)
    if "data" in edge:
        issued, complete = answered([call()])
        text = json.dumps({**complete, "data": 0})
        line = text.replace('"data": 0', '"data": ' + edge["data"])
        return Run(events=log_bytes([issued]) + line.encode() + b"\n")
    return BUILDERS[edge["name"]]()
