"""What the values of a `predict` config must be to each other.

A rule looks only at sound values, so each reports its own mistake and no other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from harness.canonical import Json
from harness.config.predict_document import (
    EMBEDDING_KINDS,
    ENGINE_SECTIONS,
    DecodingSection,
)
from harness.config.values import RESERVED_BODY_KEYS
from harness.config.violations import UNSOUND, Violations, seen
from harness.strict_yaml import YamlPath

SUBJECT: Final = "candidate"
"""The name of the subject that is not a comparator, in records and file names."""
_NO_EXTENSION: Final = frozenset(
    {
        *RESERVED_BODY_KEYS,
        *DecodingSection.model_fields,
        *("max_completion_tokens", "best_of", "n", "stream", "stream_options"),
        *("input", "encoding_format"),
    }
)
"""Body fields of the protocol and the decoding, which no extension may set."""


def check_relations(violations: Violations) -> None:
    """Record every broken relation between values of the document."""
    _declaration(violations)
    _engine_names(violations)
    _comparator_names(violations)
    for place, comparator in comparators(violations):
        _comparator(violations, place, comparator)
    for name in _mapping(violations, "engines"):
        _extensions(violations, ("engines", name, "candidate"))


def comparators(
    violations: Violations,
) -> Iterator[tuple[YamlPath, Mapping[str, Json]]]:
    """Yield every comparator that is a mapping, with its place."""
    listed = violations.raw.get("comparators")
    for index, comparator in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(comparator, dict):
            yield ("comparators", index), comparator


def _mapping(violations: Violations, key: str) -> Mapping[str, Json]:
    value = violations.raw.get(key)
    return value if isinstance(value, dict) else {}


def _declaration(violations: Violations) -> None:
    contract = violations.value("manifest", "contract")
    declaration = violations.value("manifest", "declaration")
    if UNSOUND in (contract, declaration):
        return
    if (contract == "action-ir") == (declaration is None):
        return
    expected = {
        "action-ir": "null: every row carries its tools",
        "json-records": "the file of the JSON Schema",
        "classification": "the file of the labels, a JSON array of strings",
    }
    violations.add(
        "eval_config_invalid",
        ("manifest", "declaration"),
        f"the contract {contract} is declared another way",
        expected=expected[str(contract)],
        actual=seen(declaration),
        recovery="name the declaration that the contract has",
    )


def _engine_names(violations: Violations) -> None:
    places: list[YamlPath] = [("engine",)]
    places += [(*place, "engine") for place, _ in comparators(violations)]
    for place in places:
        check_engine(violations, place, violations.value(*place))


def check_engine(violations: Violations, place: YamlPath, name: Json) -> None:
    """Record a name that no engine of the document has."""
    engines = _mapping(violations, "engines")
    if not isinstance(name, str) or not engines or name in engines:
        return
    violations.add(
        "eval_config_invalid",
        place,
        "no engine has this name",
        expected=f"one of {', '.join(map(str, engines))}",
        actual=name,
        recovery="name one of `engines`, or add it there",
    )


def _comparator_names(violations: Violations) -> None:
    names = [
        comparator.get("name")
        for _, comparator in comparators(violations)
        if isinstance(comparator.get("name"), str)
    ]
    counts = Counter([SUBJECT, *names])
    for place, comparator in comparators(violations):
        name = comparator.get("name")
        if isinstance(name, str) and counts[name] > 1:
            violations.add(
                "eval_config_invalid",
                (*place, "name"),
                "two subjects of one run have one name",
                expected=f"names of their own; {SUBJECT!r} is the candidate's",
                actual=name,
                recovery="give the comparator another name",
            )


def _comparator(
    violations: Violations, place: YamlPath, comparator: Mapping[str, Json]
) -> None:
    name, kind = comparator.get("engine"), comparator.get("kind")
    section = _mapping(violations, "engines").get(str(name))
    engine_kind = section.get("kind") if isinstance(section, dict) else None
    if not isinstance(engine_kind, str) or engine_kind not in ENGINE_SECTIONS:
        return
    gives_vectors = engine_kind in EMBEDDING_KINDS
    if kind == "embedding" and not gives_vectors:
        _wrong_kind(violations, place, f"one of {', '.join(EMBEDDING_KINDS)}", name)
    if kind == "engine" and engine_kind == "embeddings_http":
        _wrong_kind(violations, place, "an engine that generates text", name)
    if kind == "embedding":
        _train(violations, place, comparator.get("train"))


def _wrong_kind(
    violations: Violations, place: YamlPath, expected: str, name: Json
) -> None:
    violations.add(
        "eval_config_invalid",
        (*place, "engine"),
        "an engine of another kind is needed here",
        expected=expected,
        actual=seen(name),
        recovery="name an engine of that kind",
    )


def _train(violations: Violations, place: YamlPath, train: Json) -> None:
    contract = violations.value("manifest", "contract")
    if contract is UNSOUND or (contract == "classification") == (train is None):
        return
    violations.add(
        "eval_config_invalid",
        (*place, "train"),
        f"an embedding baseline of {contract} works another way",
        expected="null: the labels themselves are embedded"
        if contract == "classification"
        else "a file of training rows, whose gold is the answer",
        actual=seen(train),
        recovery="correct the value",
    )


def check_candidate_engine(violations: Violations, name: Json, place: YamlPath) -> None:
    """Record a candidate whose engine generates no text."""
    section = _mapping(violations, "engines").get(str(name))
    kind = section.get("kind") if isinstance(section, dict) else None
    if kind == "embeddings_http":
        violations.add(
            "eval_config_invalid",
            place,
            "an engine of another kind is needed here",
            expected="an engine that generates text",
            actual=seen(name),
            recovery="name an engine of that kind",
        )


def _extensions(violations: Violations, candidate: YamlPath) -> None:
    extensions = violations.value(*candidate, "provider_extensions", default=None)
    provider = violations.value(*candidate, "provider")
    version = violations.value(*candidate, "provider_api_version")
    if not isinstance(extensions, dict) or UNSOUND in (provider, version):
        return
    for namespace, fields in extensions.items():
        place = (*candidate, "provider_extensions", namespace)
        for name in sorted(_NO_EXTENSION & set(fields)):
            violations.add(
                "eval_config_invalid",
                (*place, name),
                "an extension sets a field of the protocol or of the decoding",
                expected="settings of decoding in the section `decoding` only",
                actual=name,
                recovery="remove the field",
            )
        if namespace != f"{provider}.{version}":
            violations.add(
                "eval_config_invalid",
                place,
                "an extension for another provider would never be sent",
                expected=f"{provider}.{version}",
                actual=namespace,
                recovery="make it `<provider>.<provider_api_version>`",
            )
