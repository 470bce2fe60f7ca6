"""Which models read which published rows while the benchmark was made.

`run_manifest.json` names exactly three roles; rows say which of them touched them. A
role that touched no published row is no exposure (`spec/executable-evaluator.md`
3.4). An inventory that contradicts itself is refused, since nobody could then say
who is exposed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from harness.benchmark.model_identity import IdentityClaim
from harness.benchmark.rows import Row
from harness.benchmark.stored_source import SCOPES, Role
from harness.canonical import Json, canonical_json, content_hash
from harness.errors import SourceError


@dataclass(frozen=True, slots=True)
class Exposure:
    """One model and the published rows that it read."""

    role: Role
    scope: str
    claim: IdentityClaim
    task_ids: tuple[str, ...]
    """In publication order."""

    def identity(self) -> dict[str, Json]:
        """Return what enters identities: the claim, and the rows as a hash."""
        return {
            "role": self.role,
            "scope": self.scope,
            "claim": self.claim.semantic_payload(),
            "task_count": len(self.task_ids),
            "task_ids_hash": content_hash(list(self.task_ids)),
        }


@dataclass(slots=True)
class ExposureInventory:
    """Collects the exposures of one publication while its rows go by."""

    models: dict[Role, IdentityClaim | None]
    """None for a role that is disabled."""
    profile_influenced_surface: bool | None
    _touched: dict[Role, list[str]] = field(
        default_factory=lambda: {role: [] for role in SCOPES}
    )

    @classmethod
    def from_manifest(cls, manifest: dict[str, Json]) -> ExposureInventory:
        """Read `models`; raise SourceError for another set of roles."""
        models = manifest["models"]
        if not isinstance(models, dict) or models.keys() != SCOPES.keys():
            actual = sorted(models) if isinstance(models, dict) else models
            raise _refusal(
                "models", "another set of roles", f"{sorted(SCOPES)}", f"{actual}"
            )
        influenced = manifest.get("profile_influenced_surface")
        if influenced is not None and not isinstance(influenced, bool):
            raise _refusal(
                "profile_influenced_surface",
                "no bool",
                "true, false or null",
                canonical_json(influenced),
            )
        return cls({role: _claim(role, models[role]) for role in SCOPES}, influenced)

    def add(self, row: Row) -> None:
        """Count one published row; raise SourceError for a reader nobody claims."""
        task_id: str = row["task_id"]
        if row["metadata"]["profile_hash"] is not None:
            self._touch("profile", task_id, "a profile-shaped row")
        paraphraser = row["paraphrase_model_canonical"]
        if paraphraser is not None or row["paraphrase_model"] is not None:
            claim = self.models["paraphrase"]
            if claim is not None and claim.label != paraphraser:
                raise _refusal(
                    f"row {task_id}: paraphrase_model_canonical",
                    "a paraphrased row that no role claims",
                    f"{claim.label}",
                    f"{paraphraser}",
                )
            self._touch("paraphrase", task_id, "a paraphrased row")
        if self.models["surface_judge"] is not None:
            self._touched["surface_judge"].append(task_id)

    def exposures(self) -> tuple[Exposure, ...]:
        """Return the roles that touched a row, after the last row was added."""
        shaped = bool(self._touched["profile"])
        influenced = self.profile_influenced_surface
        if influenced is not None and influenced != shaped:
            raise _refusal(
                "profile_influenced_surface",
                "the manifest and the rows disagree about the profile",
                f"{shaped}".lower(),
                f"{influenced}".lower(),
            )
        return tuple(
            Exposure(role, SCOPES[role], claim, tuple(self._touched[role]))
            for role, claim in self.models.items()
            if claim is not None and self._touched[role]
        )

    def _touch(self, role: Role, task_id: str, what: str) -> None:
        if self.models[role] is None:
            raise _refusal(
                f"row {task_id}",
                f"{what}, and the role {role} is disabled",
                f"models.{role}.enabled: true",
                "false",
            )
        self._touched[role].append(task_id)


def _claim(role: Role, entry: Json) -> IdentityClaim | None:
    where = f"models.{role}"
    if not isinstance(entry, dict) or not isinstance(entry.get("enabled"), bool):
        raise _refusal(where, "no model entry", "an object with enabled", f"{entry!r}")
    text = _texts(where, entry)
    identity = entry.get("model_identity")
    nested = _texts(f"{where}.model_identity", identity) if identity else text
    claim = IdentityClaim(
        provider=text("provider"),
        served_model=text("model"),
        weight_source=text("weight_source") or nested("source"),
        weight_model=text("weight_model") or (nested("model") if identity else None),
        revision=text("revision") or nested("revision"),
        weights_digest=text("weights_digest") or nested("weights_digest"),
        label=text("canonical_id"),
    )
    named = claim.names_something or claim.provider is not None
    if entry["enabled"] and claim.served_model is None:
        raise _refusal(where, "an enabled role names no model", "a model", "null")
    if not entry["enabled"] and named:
        raise _refusal(where, "a disabled role names a model", "nulls", claim.shown)
    return claim if entry["enabled"] else None


def _texts(where: str, entry: Json) -> Callable[[str], str | None]:
    def text(key: str) -> str | None:
        value = entry.get(key) if isinstance(entry, dict) else entry
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip():
            raise _refusal(f"{where}.{key}", "no text", "a text or null", f"{value!r}")
        return value

    return text


def _refusal(where: str, problem: str, expected: str, actual: str) -> SourceError:
    return SourceError(
        "eval_source_model_exposure_invalid",
        f"the model inventory is unusable: {problem}",
        where=where,
        expected=expected,
        actual=actual,
        recovery="publish the benchmark again with a complete model inventory",
    )
