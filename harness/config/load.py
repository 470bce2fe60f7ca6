"""From a YAML file to an EvalConfig, or to all of its violations at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from harness.canonical import Json
from harness.config.document import SCHEMA_VERSION, EvalDocument
from harness.config.evaluation import EvalConfig
from harness.config.publication import unmet_locks
from harness.config.resolve import Resolver
from harness.config.rules import (
    check_locations,
    check_oracle_facts,
    check_outputs,
    check_relations,
)
from harness.config.scan import scan
from harness.config.violations import UNSOUND, Violations, seen
from harness.errors import ConfigError
from harness.strict_yaml import StrictYamlError, YamlPath, load_yaml

OLDER_VERSIONS: Final = ("1.1", "1.2")
KINDS: Final = ("executable", "predict", "mlperf-agentic")
_DEFAULTS: Final[dict[YamlPath, str]] = {
    ("scoring", "intermediate_text_matching"): "structural"
}


def load_config(path: Path | str) -> EvalConfig:
    """Load an evaluation config.

    Raises ConfigError with every independent violation, in file order; the first
    decides code and exit status.
    """
    file = Path(path).absolute()
    violations = read_document(file)
    check_version(violations)
    _check_kind(violations)
    scan(violations)
    document = _check_shape(violations)
    check_relations(violations)
    files = Resolver(file, violations)
    check_locations(violations, files)
    check_oracle_facts(violations, files)
    _check_locks(violations, files)
    check_outputs(violations)
    violations.raise_if_any()
    if document is None:
        raise AssertionError("a refused document left no violation")
    return EvalConfig.from_meaning(_meaning(document, files), files.paths())


def kind_of(path: Path | str) -> str | None:
    """Return the kind that a config states, None where it states none of ours.

    Raises ConfigError for what is no such document at all.
    """
    kind = read_document(Path(path).absolute()).raw.get("kind")
    return kind if kind in KINDS else None


def read_document(file: Path) -> Violations:
    """Read strict YAML into violations that are still empty; raise ConfigError."""
    try:
        document = load_yaml(file)
    except StrictYamlError as error:
        raise ConfigError(
            "eval_config_invalid",
            f"not strict YAML: {error.problem}",
            where=error.where,
            expected="one YAML document of plain values",
            recovery="correct the line",
        ) from None
    except OSError as error:
        raise ConfigError(
            "eval_config_path_invalid",
            "the config cannot be read",
            where=str(file),
            expected="a readable YAML file",
            actual=error.strerror or type(error).__name__,
            recovery="correct the path; `fairtrial config init` writes a new file",
        ) from None
    if not isinstance(document.value, dict):
        raise ConfigError(
            "eval_config_invalid",
            "the config is no mapping of sections",
            where=file.name,
            expected="keys such as schema_version, kind and candidates",
            actual=seen(document.value),
            recovery="`fairtrial config init` writes a complete file",
        )
    return Violations(document.value, document.lines, file.name)


def check_version(violations: Violations) -> None:
    """Refuse another schema version; an older one at once, with the way to convert."""
    version = violations.raw.get("schema_version", SCHEMA_VERSION)
    if version == SCHEMA_VERSION:
        return
    older = str(version) in OLDER_VERSIONS
    recovery = 'write schema_version: "1", with its quotes'
    if older:
        recovery = (
            f"convert it: fairtrial config init --from {violations.name} --output NEW"
        )
    violations.add(
        "eval_config_schema_invalid",
        ("schema_version",),
        "a config of an older schema" if older else "a config of another schema",
        expected=f'the text "{SCHEMA_VERSION}"',
        actual=seen(version),
        recovery=recovery,
    )
    if older or isinstance(version, str):
        violations.raise_if_any()


def _check_kind(violations: Violations) -> None:
    kind = violations.raw.get("kind")
    if kind == "executable" or kind not in KINDS:
        return
    violations.add(
        "unsupported_eval_mode",
        ("kind",),
        f"this command does not serve configs of kind {kind}",
        expected="executable",
        actual=seen(kind),
        recovery="`fairtrial predict` serves kind: predict"
        if kind == "predict"
        else f"`fairtrial run` serves kind: {kind}",
    )
    violations.raise_if_any()


def _check_shape(violations: Violations) -> EvalDocument | None:
    try:
        return EvalDocument.model_validate(violations.raw)
    except ValidationError as error:
        violations.add_shape_errors(error.errors(include_url=False), EvalDocument)
    return None


def _check_locks(violations: Violations, files: Resolver) -> None:
    if violations.value("publication", "requested") is not True:
        return

    def value(*path: str | int) -> Any:
        return violations.value(*path, default=_DEFAULTS.get(path, UNSOUND))

    for lock in unmet_locks(
        value,
        candidates=violations.candidates(),
        contract_hash=files.content_hash("scoring", "contract"),
        gold_eligible=files.run_manifest()["gold_eligible"],
    ):
        violations.add(
            "eval_publication_policy_violation",
            lock.path,
            "a published score needs another value here",
            expected=seen(lock.expected),
            actual=seen(lock.actual),
            recovery=lock.recovery,
        )


def _meaning(document: EvalDocument, files: Resolver) -> dict[str, Json]:
    meaning = document.model_dump(
        mode="json", exclude={"config_status", "held_out_eval"}
    )
    meaning["source_run_manifest"] = files.run_manifest()
    meaning["source_oracle"] = files.oracle()
    meaning["scoring"]["contract"] = {
        "content_hash": files.content_hash("scoring", "contract")
    }
    del meaning["outputs"]["output_dir"]
    return meaning
