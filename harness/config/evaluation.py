"""The loaded evaluation config: its meaning, its identities and its paths.

Two configs that mean the same have one `eval_config_hash`, wherever their files lie
and however their keys are ordered: candidates are sorted by alias, files are content
hashes, and neither paths nor the output folder enter
(`spec/executable-evaluator.md` 3.1). The meaning alone rebuilds the config, so a run
folder can be replayed without the file that started it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Final, Literal

from pydantic import Field, PrivateAttr

from harness.canonical import Json, content_hash
from harness.config.document import (
    SCHEMA_VERSION,
    Candidates,
    CandidateSection,
    Closed,
    ContaminationSection,
    EvalSection,
    IsolationSection,
    LimitsSection,
    OutputFlags,
    PublicationSection,
    ScoringRules,
)
from harness.config.publication import unmet_locks, values_of
from harness.config.resolve import ConfigPaths
from harness.config.resolved import rebuilt
from harness.conversation.task import ScoringPolicy
from harness.errors import ConfigError

ContentHash = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
_RESOLVED_KEYS: Final = frozenset(
    [
        "schema_version",
        "config_status",
        "eval_config_hash",
        "scoring_policy_hash",
        "publication_allowed",
        "publication_scope",
        "non_publication_reasons",
        "candidate_aliases",
        "semantic_payload",
    ]
)


class FileMeaning(Closed):
    """A file, by content."""

    content_hash: ContentHash


class ManifestMeaning(Closed):
    """The publication, by the bytes and the word of its commit marker."""

    content_hash: ContentHash
    run_id: str | None
    gold_eligible: bool | None
    published_content_hash: str | None


class OracleMeaning(Closed):
    """The pack that answers, by its manifest and its backend."""

    kind: Literal["python", "endpoint"]
    pack_id: str | None
    version: str | None
    pack_manifest: FileMeaning
    resource: FileMeaning


class ScoringMeaning(ScoringRules):
    """The scoring section with its contract by content."""

    contract: FileMeaning


@dataclass(frozen=True, slots=True)
class PublicationVerdict:
    """What the config alone says about publishing a score."""

    allowed: bool
    reasons: tuple[str, ...]


class EvalConfig(Closed):
    """One evaluation, ready to be verified against its source."""

    schema_version: Literal["1"]
    kind: Literal["executable"]
    source_run_manifest: ManifestMeaning
    source_oracle: OracleMeaning | None
    translation_manifest: None
    eval: EvalSection
    scoring: ScoringMeaning
    limits: LimitsSection
    isolation: IsolationSection
    candidates: Candidates
    """Sorted by alias."""
    contamination: ContaminationSection
    publication: PublicationSection
    outputs: OutputFlags
    _paths: ConfigPaths | None = PrivateAttr(default=None)

    @classmethod
    def from_meaning(
        cls, payload: dict[str, Json], paths: ConfigPaths | None = None
    ) -> EvalConfig:
        """Build a config from its semantic payload; raise ValidationError."""
        config = cls.model_validate(payload)
        ordered = tuple(sorted(config.candidates, key=lambda c: c.alias))
        config = config.model_copy(update={"candidates": ordered})
        config._paths = paths
        return config

    @classmethod
    def from_resolved(cls, payload: Json) -> EvalConfig:
        """Rebuild the config from `resolved_eval_config.json`, without any file.

        Raises EvidenceError (`eval_artifact_invalid`) unless every field follows
        from the meaning that the document states.
        """
        return rebuilt(payload, _RESOLVED_KEYS, cls.from_meaning)

    @property
    def paths(self) -> ConfigPaths:
        """Where the files are; raises ConfigError for a config rebuilt offline."""
        if self._paths is None:
            raise ConfigError(
                "eval_config_path_invalid",
                "a config that was rebuilt from a run folder has no paths",
                expected="a config loaded from its own file",
                recovery="use the config file for what reads the benchmark or the pack",
            )
        return self._paths

    @cached_property
    def semantic_payload(self) -> dict[str, Json]:
        """Everything that the config means, as plain JSON."""
        return self.model_dump(mode="json")

    @cached_property
    def eval_config_hash(self) -> str:
        """The content hash of the meaning."""
        return content_hash(self.semantic_payload)

    @cached_property
    def scoring_policy(self) -> ScoringPolicy:
        """The scoring section as the scorer takes it."""
        rules = self.scoring.model_dump(exclude={"contract"})
        return ScoringPolicy(contract_hash=self.scoring.contract.content_hash, **rules)

    @cached_property
    def scoring_policy_hash(self) -> str:
        """The content hash of the scoring section alone."""
        return self.scoring_policy.identity_hash()

    @property
    def is_executable(self) -> bool:
        """Tell whether a live oracle is part of the run; trace gates always are."""
        return "executable" in self.eval.mode

    @property
    def candidate_aliases(self) -> tuple[str, ...]:
        """All aliases, sorted."""
        return tuple(candidate.alias for candidate in self.candidates)

    def candidate(self, alias: str) -> CandidateSection:
        """Return one candidate; raise KeyError for an alias that is not listed."""
        for candidate in self.candidates:
            if candidate.alias == alias:
                return candidate
        raise KeyError(alias)

    def endpoint(self, alias: str) -> dict[str, Any]:
        """Return what the client of one candidate needs, by its Endpoint's names."""
        return self.candidate(alias).endpoint()

    @cached_property
    def publication_verdict(self) -> PublicationVerdict:
        """Whether this config alone stands in the way of publishing its score."""
        unmet = unmet_locks(
            values_of(self.semantic_payload),
            candidates=len(self.candidates),
            contract_hash=self.scoring.contract.content_hash,
            gold_eligible=self.source_run_manifest.gold_eligible,
        )
        reasons = [lock.reason for lock in unmet]
        if not self.publication.requested:
            reasons.append("publication.requested")
        return PublicationVerdict(not reasons, tuple(reasons))

    @property
    def publication_allowed(self) -> bool:
        """Tell whether the config leaves its score publishable."""
        return self.publication_verdict.allowed

    @property
    def non_publication_reasons(self) -> tuple[str, ...]:
        """Why the score cannot be published, as far as the config decides it."""
        return self.publication_verdict.reasons

    def resolved_document(self) -> dict[str, Json]:
        """Return the payload of `resolved_eval_config.json`; it holds no path."""
        return {
            "schema_version": SCHEMA_VERSION,
            "config_status": "ready",
            "eval_config_hash": self.eval_config_hash,
            "scoring_policy_hash": self.scoring_policy_hash,
            "publication_allowed": self.publication_allowed,
            "publication_scope": (
                "trace_and_executable" if self.is_executable else "trace_only"
            ),
            "non_publication_reasons": list(self.non_publication_reasons),
            "candidate_aliases": list(self.candidate_aliases),
            "semantic_payload": self.semantic_payload,
        }
