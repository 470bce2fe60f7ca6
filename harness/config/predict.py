"""From a YAML file to a PredictConfig, or to all of its violations at once.

Reading has two steps, for two more rooms have a say before anything runs: what an
engine cannot apply, and what a contract cannot use. `read_predict_config` collects what
is wrong with the file itself; the caller adds to the same violations and then takes the
config.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from harness.canonical import Json, content_hash, hash_file
from harness.config.load import check_version, read_document
from harness.config.predict_document import (
    COMPARATOR_SECTIONS,
    ENGINE_SECTIONS,
    ComparatorSection,
    DecodingSection,
    EngineComparator,
    EngineSection,
    PredictDocument,
    TorchLocalSection,
    VllmOfflineSection,
)
from harness.config.predict_rules import (
    check_candidate_engine,
    check_engine,
    check_relations,
    comparators,
)
from harness.config.scan import scan
from harness.config.violations import Violations, seen
from harness.regular_file import read_regular_file
from harness.strict_yaml import YamlPath

_FILES: Final[tuple[YamlPath, ...]] = (
    ("manifest", "path"),
    ("manifest", "declaration"),
    ("prompt", "system"),
    ("prompt", "user"),
)


NOWHERE: Final = "checkpoint"
"""Stands for the place of a checkpoint, which a meaning leaves out."""


@dataclass(frozen=True, slots=True)
class PredictConfig:
    """A sound config: its sections, its files and what it means."""

    document: PredictDocument
    engine: str
    """Which of the engines answers."""
    engines: Mapping[str, EngineSection]
    """Engines that the run uses, by name."""
    comparators: tuple[ComparatorSection, ...]
    folder: Path
    """The config's own folder, from which relative paths start."""
    files: Mapping[YamlPath, Path]
    """Named files by the key that names them."""

    @property
    def manifest(self) -> Path:
        """The rows to answer."""
        return self.files["manifest", "path"]

    def text(self, *path: str | int) -> str | None:
        """Return the text of a named file; None where the key is null."""
        file = self.files.get(path)
        # Not as lines of a text file: their ends are part of the prompt.
        return None if file is None else read_regular_file(file).decode("utf-8")

    def meaning(self) -> dict[str, Json]:
        """Return what the config means: files by content, and no paths."""
        hashes = {path: hash_file(file) for path, file in self.files.items()}
        document = self.document
        return {
            "schema_version": document.schema_version,
            "kind": document.kind,
            "manifest": {
                "content_hash": hashes["manifest", "path"],
                "contract": document.manifest.contract,
                "declaration": hashes.get(("manifest", "declaration")),
            },
            "prompt": {
                "system": hashes.get(("prompt", "system")),
                "user": hashes.get(("prompt", "user")),
            },
            "engine": {self.engine: engine_meaning(self.engines[self.engine])},
            "decoding": document.decoding.model_dump(mode="json"),
            "evaluation": document.evaluation.model_dump(mode="json"),
            "comparators": [
                self._comparator_meaning(index, comparator, hashes)
                for index, comparator in enumerate(self.comparators)
            ],
            "measure": None
            if document.measure is None
            else document.measure.model_dump(mode="json"),
        }

    def _comparator_meaning(
        self, index: int, comparator: ComparatorSection, hashes: Mapping[YamlPath, str]
    ) -> dict[str, Json]:
        key = "system" if isinstance(comparator, EngineComparator) else "train"
        return {
            "name": comparator.name,
            "kind": comparator.kind,
            "engine": {
                comparator.engine: engine_meaning(self.engines[comparator.engine])
            },
            key: hashes.get(("comparators", index, key)),
        }


def engine_meaning(section: EngineSection) -> dict[str, Json]:
    """Return what an engine's section means, without the place of a checkpoint."""
    local = isinstance(section, TorchLocalSection | VllmOfflineSection)
    return section.model_dump(mode="json", exclude={"model"} if local else set())


def engine_of_meaning(meaning: Mapping[str, Json]) -> EngineSection:
    """Return the section that a meaning was taken of; a checkpoint has no place in it.

    Raises LookupError or ValidationError for what is no such meaning.
    """
    model = ENGINE_SECTIONS[meaning["kind"]]
    local = issubclass(model, TorchLocalSection | VllmOfflineSection)
    return model.model_validate({**meaning, **({"model": NOWHERE} if local else {})})


def predict_config_hash(meaning: Mapping[str, Json]) -> str:
    """Return the identity of a meaning."""
    return content_hash(meaning)


class PredictReading:
    """One file being read; violations of other rooms are added before `config`."""

    def __init__(self, file: Path, violations: Violations, engine: str | None) -> None:
        self.folder = file.parent
        self.violations = violations
        self._engine = engine
        self._document = self._check_shape()
        self.engines = self._engine_sections()
        """Every sound engine by its name."""
        self.comparators = self._comparator_sections()
        """Every sound comparator by its position."""
        self.decoding = self._decoding()
        """The decoding, None where it is not sound."""
        self.files: dict[YamlPath, Path] = {}

    @property
    def engine(self) -> str | None:
        """The name of the engine that answers, None where none is named."""
        named = self._engine or self.violations.raw.get("engine")
        return named if isinstance(named, str) else None

    def used_engines(self) -> Iterator[tuple[str, EngineSection]]:
        """Yield the engines that a run would generate or embed with."""
        names = [self.engine, *(each.engine for each in self.comparators.values())]
        for name in dict.fromkeys(names):
            if name in self.engines:
                yield name, self.engines[name]

    def find_files(self) -> None:
        """Find every named file; record what cannot be read."""
        for path in (*_FILES, *_comparator_files(self.violations)):
            self._find(path)

    def config(self) -> PredictConfig:
        """Return the config; raise ConfigError with all violations."""
        self.violations.raise_if_any()
        if self._document is None or self.engine is None:
            raise AssertionError("a refused document left no violation")
        return PredictConfig(
            self._document,
            self.engine,
            dict(self.used_engines()),
            tuple(self.comparators.values()),
            self.folder,
            self.files,
        )

    def _check_shape(self) -> PredictDocument | None:
        try:
            return PredictDocument.model_validate(self.violations.raw)
        except ValidationError as error:
            self.violations.add_shape_errors(
                error.errors(include_url=False), PredictDocument
            )
        return None

    def _engine_sections(self) -> dict[str, EngineSection]:
        listed = self.violations.raw.get("engines")
        found = {}
        for name, raw in (listed if isinstance(listed, dict) else {}).items():
            section = self._section(("engines", name), raw, ENGINE_SECTIONS)
            if section is not None:
                found[name] = section
        return found

    def _comparator_sections(self) -> dict[int, ComparatorSection]:
        listed = self.violations.raw.get("comparators")
        found = {}
        for index, raw in enumerate(listed if isinstance(listed, list) else ()):
            section = self._section(("comparators", index), raw, COMPARATOR_SECTIONS)
            if section is not None:
                found[index] = section
        return found

    def _section(self, place: YamlPath, raw: Json, kinds: Mapping[str, Any]) -> Any:
        """Return a section by the model of its kind, None where it is not sound."""
        kind = raw.get("kind") if isinstance(raw, dict) else None
        if not isinstance(kind, str) or kind not in kinds:
            self.violations.add(
                "eval_config_invalid",
                (*place, "kind") if isinstance(raw, dict) else place,
                "a section without one of the known kinds",
                expected=f"kind: one of {', '.join(kinds)}",
                actual=seen(raw if kind is None else kind),
                recovery="name the kind; the reference lists the keys of each",
            )
            return None
        try:
            return kinds[kind].model_validate(raw)
        except ValidationError as error:
            self.violations.add_shape_errors(
                error.errors(include_url=False), kinds[kind], place
            )
        return None

    def _decoding(self) -> DecodingSection | None:
        try:
            return DecodingSection.model_validate(self.violations.raw.get("decoding"))
        except ValidationError:
            return None

    def _find(self, path: YamlPath) -> None:
        text = self.violations.value(*path, default=None)
        if not isinstance(text, str):
            return
        place = self.folder / text
        try:
            data = read_regular_file(place)
            if path[-1] in ("system", "user"):
                data.decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            self.violations.add(
                "eval_config_path_invalid",
                path,
                "a file that the config names cannot be read",
                expected=f"a readable file at {text!r}, from the config's own folder; "
                "texts in UTF-8",
                actual=getattr(error, "strerror", None) or type(error).__name__,
                recovery="correct the path or put the file there",
            )
            return
        self.files[path] = place


def _comparator_files(violations: Violations) -> Iterator[YamlPath]:
    for place, comparator in comparators(violations):
        kind = comparator.get("kind")
        if isinstance(kind, str) and kind in COMPARATOR_SECTIONS:
            yield (*place, "system" if kind == "engine" else "train")


def read_predict_config(
    path: Path, *, engine: str | None = None, files: bool = True
) -> PredictReading:
    """Read a file of kind `predict`; `engine` overrides its key of that name.

    `files` False: the files that it names are left alone. Raises ConfigError at once
    only for what is no such document at all.
    """
    file = path.absolute()
    violations = read_document(file)
    check_version(violations)
    _check_kind(violations)
    scan(violations)
    reading = PredictReading(file, violations, engine)
    check_relations(violations)
    if engine is not None:
        check_engine(violations, ("engine",), engine)
    check_candidate_engine(violations, reading.engine, ("engine",))
    if files:
        reading.find_files()
    return reading


def _check_kind(violations: Violations) -> None:
    kind = violations.raw.get("kind")
    if kind == "predict" or "kind" not in violations.raw:
        return
    violations.add(
        "unsupported_eval_mode",
        ("kind",),
        "this command serves configs of kind predict only",
        expected="predict",
        actual=seen(kind),
        recovery="`fairtrial run` serves the other kinds",
    )
    violations.raise_if_any()
