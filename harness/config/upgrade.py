"""An older config (1.1, 1.2) or one of ours as a document of the present schema.

Every key that exists on both sides is carried over as it is. What the present schema
asks for beyond that gets the value under which the older evaluator behaved, or, where
it had no such thing, a chosen one; both kinds are listed, so that no meaning is added
in silence (`spec/executable-evaluator.md` 3.1, 4.1).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness.canonical import Json
from harness.config.document import SCHEMA_VERSION
from harness.config.load import OLDER_VERSIONS
from harness.config.starter import CONTRACT_NAME, WORKER, relative_path
from harness.errors import ConfigError
from harness.strict_yaml import StrictYamlError, YamlPath, load_yaml

UNLIMITED_STOPS: Final = 1_000_000
_PATHS: Final[tuple[YamlPath, ...]] = (
    ("source_run_manifest",),
    ("source_oracle", "pack_manifest"),
    ("source_oracle", "resource"),
    ("outputs", "output_dir"),
)
_ORDER: Final = (
    "schema_version config_status kind source_run_manifest source_oracle "
    "translation_manifest eval held_out_eval scoring limits isolation candidates "
    "contamination publication outputs"
)


@dataclass(slots=True)
class Upgrade:
    """The new document, and every value that the old one did not state."""

    document: dict[str, Json]
    choices: dict[YamlPath, str] = field(default_factory=dict)
    """Why, by key path."""

    def put(self, path: YamlPath, value: Json, why: str) -> None:
        """State a value that is not there yet, and say why it is this one."""
        place: Any = self.document
        for part in path[:-1]:
            place = place.get(part) if isinstance(place, dict) else place[part]
            if not isinstance(place, dict | list):
                return
        if isinstance(place, dict) and path[-1] not in place:
            place[path[-1]] = value
            self.choices[path] = why


def upgrade(old: Path, output: Path) -> Upgrade:
    """Map a config onto the present schema, for a file at `output`.

    Raises ConfigError for a file of an unknown schema. Keys that nobody knows stay
    in the document, for its loading to refuse them by name.
    """
    value = _read(old)
    version = str(value.get("schema_version"))
    if version not in (SCHEMA_VERSION, *OLDER_VERSIONS):
        raise ConfigError(
            "eval_config_schema_invalid",
            "no config that can be converted",
            where=f"{old.name}: schema_version",
            expected=f"one of {[*OLDER_VERSIONS, SCHEMA_VERSION]}",
            actual=repr(value.get("schema_version")),
            recovery="write a new one with `fairtrial config init`",
        )
    result = Upgrade(copy.deepcopy(value))
    _rebase(result, old, output)
    _contract(result, version)
    if version != SCHEMA_VERSION:
        result.document["schema_version"] = SCHEMA_VERSION
        if result.document.get("config_status") != "template":
            result.document["config_status"] = "ready"
        for step in _STEPS:
            step(result)
    _sort(result)
    return result


def _read(old: Path) -> dict[str, Json]:
    try:
        value = load_yaml(old).value
    except StrictYamlError as error:
        raise ConfigError(
            "eval_config_invalid",
            f"not strict YAML: {error.problem}",
            where=error.where,
            expected="the config to convert",
            recovery="correct the line",
        ) from None
    except OSError as error:
        raise ConfigError(
            "eval_config_path_invalid",
            "the config to convert cannot be read",
            where=str(old),
            actual=error.strerror or type(error).__name__,
            recovery="correct the path",
        ) from None
    return value if isinstance(value, dict) else {}


def _rebase(result: Upgrade, old: Path, output: Path) -> None:
    for path in _PATHS:
        place: Any = result.document
        for part in path[:-1]:
            place = place.get(part) if isinstance(place, dict) else None
        if isinstance(place, dict) and isinstance(place.get(path[-1]), str):
            target = old.absolute().parent / place[path[-1]]
            place[path[-1]] = relative_path(target, output)


def _contract(result: Upgrade, version: str) -> None:
    scoring = result.document.get("scoring")
    if isinstance(scoring, dict) and scoring.get("contract") is not None:
        del scoring["contract"]
    why = "the bundled contract, copied beside this file"
    if version != SCHEMA_VERSION:
        why += "; it states the rules that this scorer applies, the older one does not"
    result.put(("scoring", "contract"), CONTRACT_NAME, why)


def _kind(result: Upgrade) -> None:
    result.put(("kind",), "executable", "the only kind that older configs had")


def _eval(result: Upgrade) -> None:
    result.put(("eval", "trials"), 1, "older evaluators asked each task once")
    result.put(
        ("scoring", "attribution"),
        "strict-002",
        "how older evaluators booked broken responses; wire-1 is our own profile",
    )
    result.put(
        ("scoring", "intermediate_text_matching"),
        "structural",
        "the older default, now stated",
    )


def _limits(result: Upgrade) -> None:
    limits = result.document.get("limits")
    tool = limits.get("tool_timeout_s") if isinstance(limits, dict) else None
    if isinstance(tool, int | float) and not isinstance(tool, bool):
        for operation in ("import", "reset", "state", "assertion"):
            result.put(
                ("limits", f"{operation}_timeout_s"),
                tool,
                "tool_timeout_s, which older evaluators used for this too",
            )
        result.put(
            ("limits", "close_timeout_s"),
            tool + 2,
            "tool_timeout_s and 2 seconds, as older evaluators waited",
        )
    result.put(
        ("limits", "max_stops"),
        UNLIMITED_STOPS,
        "older evaluators had no such limit",
    )
    result.put(
        ("limits", "worker"),
        dict(WORKER),
        "older evaluators set no limits; these are ours",
    )


def _isolation(result: Upgrade) -> None:
    result.put(
        ("isolation",),
        {"level": "process", "host": "per_task"},
        "one fresh process a task, as in older evaluators; higher levels exist",
    )


def _candidates(result: Upgrade) -> None:
    listed = result.document.get("candidates")
    for index in range(len(listed) if isinstance(listed, list) else 0):
        result.put(
            ("candidates", index, "echo_reasoning"),
            False,
            "older evaluators sent no reasoning back",
        )


def _publication(result: Upgrade) -> None:
    result.put(
        ("publication", "max_stop_share"), 1.0, "older evaluators had no such cap"
    )


_STEPS: Final[tuple[Callable[[Upgrade], None], ...]] = (
    _kind,
    _eval,
    _limits,
    _isolation,
    _candidates,
    _publication,
)


def _sort(result: Upgrade) -> None:
    known = _ORDER.split()
    document = result.document
    keys = [key for key in known if key in document]
    keys += [key for key in document if key not in known]
    result.document = {key: document[key] for key in keys}
