"""A config document as commented YAML, in the order of its own keys.

Every text is written in double quotes, so that no value can change its type on the
way back.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from typing import Final

from harness.canonical import Json
from harness.strict_yaml import YamlPath

WIDTH: Final = 80

COMMENTS: Final[dict[YamlPath, str]] = {
    ("schema_version",): "Relative paths start at this file's folder. No key has a "
    "default: each changes what a score means.",
    ("source_run_manifest",): "The commit marker of the published benchmark.",
    ("source_oracle",): "The pack that answers live; null in trace mode.",
    ("source_oracle", "resource"): "The pack's own backend or endpoint file.",
    ("translation_manifest",): "Translated benchmarks are not supported yet.",
    ("eval", "mode"): "trace compares calls with gold; executable also runs them.",
    ("eval", "trials"): "How often each task is asked.",
    ("scoring",): "Changing a rule gives a score another identity; most are locked "
    "when publication is requested.",
    ("scoring", "contract"): "The rules in words; keep the copy unchanged.",
    ("scoring", "attribution"): "wire-1 or strict-002: who owns a broken response.",
    ("limits",): "Times are in seconds.",
    ("limits", "tool_timeout_s"): "One tool call.",
    ("limits", "candidate_timeout_s"): "One model turn with all its attempts.",
    ("limits", "max_parallel_tasks"): "Episodes in flight at once.",
    ("limits", "max_retries"): "More attempts while no completion exists.",
    ("limits", "max_stops"): "Give up after more stops that are not the candidate's.",
    ("limits", "worker"): "Limits of one oracle worker.",
    ("isolation", "level"): "process, confined or namespaces; a level that this "
    "machine cannot give is refused, never lowered.",
    ("isolation", "host"): "shared forks one worker per task; per_task imports anew.",
    ("candidates",): "The models under test, asked in the order of their aliases.",
    ("candidates", "model"): "The name in the request.",
    ("candidates", "api", "api_key_env"): "Name of the environment variable that "
    "holds the key; null sends no Authorization header.",
    ("candidates", "model_identity"): "Which weights answer. Publishing needs a "
    "revision (full hash) or weights_digest; without one, repeat provider and model.",
    ("candidates", "inference", "top_p"): "null leaves it out, at temperature 0 only.",
    ("candidates", "inference", "provider_extensions"): "More request keys, under "
    "<provider>.<provider_api_version>.",
    ("candidates", "echo_reasoning"): "Send a model's reasoning back on later turns.",
    ("contamination",): "What happens to a model that helped to write the benchmark.",
    ("publication", "max_stop_share"): "Above this share of stops there is no score.",
    ("outputs", "output_dir"): "One folder for one run.",
}
"""What a key means, by its path without list positions."""


def render(
    document: Mapping[str, Json], notes: Mapping[YamlPath, str] | None = None
) -> str:
    """Return the document as YAML; `notes` add to the comments of single keys."""
    writer = _Writer(notes or {})
    writer.mapping(document, ())
    return "\n".join(writer.lines) + "\n"


class _Writer:
    def __init__(self, notes: Mapping[YamlPath, str]) -> None:
        self.notes = notes
        self.lines: list[str] = []

    def mapping(
        self, value: Mapping[str, Json], path: YamlPath, first: str = ""
    ) -> None:
        """Write the keys; `first` replaces the indent of the first line."""
        depth = "  " * len(path)
        for key, item in value.items():
            place = (*path, key)
            if not path and self.lines:
                self.lines.append("")
            indent = first or depth
            if not first:
                self.comment(place, depth)
            first = ""
            if isinstance(item, dict) and item:
                self.lines.append(f"{indent}{_key(key)}:")
                self.mapping(item, place)
            elif isinstance(item, list) and item and isinstance(item[0], dict):
                self.lines.append(f"{indent}{_key(key)}:")
                for index, entry in enumerate(item):
                    self.mapping(entry, (*place, index), f"{depth}  - ")
            else:
                self.lines.append(f"{indent}{_key(key)}: {_flow(item)}")

    def comment(self, path: YamlPath, indent: str) -> None:
        names = tuple(part for part in path if isinstance(part, str))
        for text in (COMMENTS.get(names), self.notes.get(path)):
            if text:
                width = WIDTH - len(indent) - 2
                lines = textwrap.wrap(text, width, break_long_words=False)
                self.lines.extend(f"{indent}# {line}" for line in lines)


def _key(key: str) -> str:
    plain = key.isascii() and key.replace("_", "a").isalnum() and key[0].isalpha()
    return key if plain and key not in _YAML_WORDS else json.dumps(key)


_YAML_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false"})


def _flow(value: Json) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, dict):
        pairs = (f"{json.dumps(k)}: {_flow(v)}" for k, v in value.items())
        return "{" + ", ".join(pairs) + "}"
    # YAML folds more characters than JSON does; what is not printable is escaped.
    printable = not isinstance(value, str) or value.isprintable()
    return json.dumps(value, ensure_ascii=not printable)
