"""A new config of kind `mlperf-agentic`: complete, commented, and loadable at once."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from harness.canonical import Json
from harness.config.document import SCHEMA_VERSION
from harness.config.render import render
from harness.config.starter import relative_path, starter_candidate
from harness.config.teacher_forced import (
    TeacherForcedConfig,
    load_teacher_forced_config,
)
from harness.config.teacher_forced_document import KIND, ROUTING_HEADER
from harness.errors import FairtrialError, UsageError
from harness.strict_yaml import YamlPath

_NOTES: Final[dict[YamlPath, str]] = {
    ("dataset",): "Recorded conversations, JSON lines or Parquet.",
    ("dataset", "sha256"): "64 hex digits: refuse any other file. null: any.",
    ("asking",): "How the recorded turns are put to the candidate.",
    ("asking", "repeats"): "How often every conversation is asked.",
    ("asking", "salt"): "A text: markers around the system prompt that defeat caches.",
    ("asking", "inject_tool_delay"): "Wait the delay_seconds of a row before it.",
    ("asking", "inter_turn_delay_s"): "Seconds between an answer and the next turn.",
    ("asking", "routing_header"): "Carries the conversation's id; null sends none.",
    ("asking", "on_failed_turn"): "continue, or abort_conversation as the original.",
    ("asking", "row_overrides"): "Let a row's sampling fields replace the candidate's.",
    ("limits", "max_parallel_conversations"): "Each has one turn in flight.",
    ("candidates",): "Exactly one here.",
    ("candidates", 0, "echo_reasoning"): "Here: of the recorded answers.",
}


def starter_teacher_forced_document(
    *, dataset: str, candidate: dict[str, Json], output_dir: str
) -> dict[str, Json]:
    """Return a complete document; paths are texts as the file will hold them."""
    return {
        "schema_version": SCHEMA_VERSION,
        "config_status": "ready",
        "kind": KIND,
        "dataset": {"path": dataset, "sha256": None},
        "asking": {
            "repeats": 1,
            "salt": None,
            "inject_tool_delay": False,
            "inter_turn_delay_s": 0.0,
            "routing_header": ROUTING_HEADER,
            "on_failed_turn": "continue",
            "row_overrides": False,
        },
        "limits": {
            "candidate_timeout_s": 600.0,
            "max_parallel_conversations": 8,
            "max_retries": 2,
            "max_stops": 25,
        },
        "candidates": [candidate],
        "publication": {"max_stop_share": 0.05},
        "outputs": {"output_dir": output_dir},
    }


def write_teacher_forced_config(
    output: Path,
    *,
    dataset: Path,
    base_url: str,
    model: str,
    alias: str | None = None,
    api_key_env: str | None = None,
) -> TeacherForcedConfig:
    """Write a new config and return it as loaded.

    Raises UsageError (`eval_output_exists`) for an existing file and ConfigError for
    values that no config may hold; nothing stays on disk then.
    """
    candidate = starter_candidate(base_url, model, alias=alias, api_key_env=api_key_env)
    candidate["echo_reasoning"] = True
    document = starter_teacher_forced_document(
        dataset=relative_path(dataset, output),
        candidate=candidate,
        output_dir="run" if output.stem == "eval" else f"{output.stem}-run",
    )
    output.parent.mkdir(parents=True, exist_ok=True)
    try:
        with output.open("x", encoding="utf-8") as stream:
            stream.write(render(document, _NOTES))
    except FileExistsError:
        raise UsageError(
            "eval_output_exists",
            "a file stands where the config is to be written",
            where=str(output),
            expected="a path that does not exist yet",
            recovery="name another file, or remove this one yourself",
        ) from None
    try:
        return load_teacher_forced_config(output)
    except FairtrialError:
        output.unlink(missing_ok=True)
        raise
