"""What scoring needs of a run's config, read with the standard library alone.

`resolved_eval_config.json` states the config's meaning and two hashes. Both are
worked out again here, so the settings cannot differ from the config that the hashes
name. Whether each value is one that a config may have was judged when the run began.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.canonical import Json, content_hash
from harness.conversation.task import ScoringPolicy
from harness.errors import EvidenceError

RESOLVED_FILE = "resolved_eval_config.json"


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The settings of one run, by the names that its config uses."""

    eval_config_hash: str
    scoring_policy: ScoringPolicy
    scoring_policy_hash: str
    is_executable: bool
    trials: int
    max_turns: int
    max_stop_share: float
    write_task_results: bool
    endpoints: Mapping[str, dict[str, Any]]
    """What `Endpoint` takes, by alias."""

    @classmethod
    def from_resolved(cls, document: Json) -> RunSettings:
        """Read the payload of `resolved_eval_config.json`.

        Raises EvidenceError (`eval_artifact_invalid`) where a setting is missing or
        a stated hash does not follow from the meaning, and
        `eval_runner_mode_unsupported` for a run of another kind.
        """
        require_executable(document)
        try:
            settings = cls._read(document["semantic_payload"])
            stated = {
                "eval_config_hash": document["eval_config_hash"],
                "scoring_policy_hash": document["scoring_policy_hash"],
                "candidate_aliases": document["candidate_aliases"],
            }
            follows = {
                "eval_config_hash": settings.eval_config_hash,
                "scoring_policy_hash": settings.scoring_policy_hash,
                # Raises for an alias that is no text.
                "candidate_aliases": sorted(settings.endpoints),
            }
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise _refusal(
                "a complete meaning with its hashes", f"{type(error).__name__}: {error}"
            ) from None
        for name, value in follows.items():
            if stated[name] != value:
                raise _refusal(f"{name} {value}", str(stated[name]))
        return settings

    @classmethod
    def _read(cls, meaning: Json) -> RunSettings:
        rules = dict(meaning["scoring"])
        contract = rules.pop("contract")
        policy = ScoringPolicy.from_payload(
            {"contract_hash": contract["content_hash"], **rules},
            f"{RESOLVED_FILE}, scoring",
        )
        return cls(
            eval_config_hash=content_hash(meaning),
            scoring_policy=policy,
            scoring_policy_hash=policy.identity_hash(),
            is_executable="executable" in meaning["eval"]["mode"],
            trials=int(meaning["eval"]["trials"]),
            max_turns=int(meaning["limits"]["max_turns"]),
            max_stop_share=float(meaning["publication"]["max_stop_share"]),
            write_task_results=meaning["outputs"]["write_task_results"] is True,
            endpoints={
                candidate["alias"]: _endpoint(candidate)
                for candidate in meaning["candidates"]
            },
        )

    def endpoint(self, alias: str) -> dict[str, Any]:
        """Return what `Endpoint` takes for one candidate; raise EvidenceError."""
        if alias not in self.endpoints:
            raise _refusal(f"a candidate {alias}", ", ".join(sorted(self.endpoints)))
        return self.endpoints[alias]


def require_executable(document: Json) -> None:
    """Refuse the resolved config of another kind; raises EvidenceError."""
    meaning = document.get("semantic_payload") if isinstance(document, dict) else None
    kind = meaning.get("kind") if isinstance(meaning, dict) else None
    if isinstance(kind, str) and kind != "executable":
        raise EvidenceError(
            "eval_runner_mode_unsupported",
            f"this command does not serve runs of kind {kind}",
            where=RESOLVED_FILE,
            expected="a run of kind executable",
            actual=kind,
            recovery="`fairtrial replay RUN` works a run of kind mlperf-agentic out "
            "again, and its scores.json can be made again with `fairtrial score`",
        )


def _endpoint(candidate: Mapping[str, Any]) -> dict[str, Any]:
    identity = candidate["model_identity"]
    pin = identity["weights_digest"] or identity["revision"] or "provider_managed"
    return {
        "alias": candidate["alias"],
        "canonical_id": f"{identity['source']}:{identity['model']}@{pin}",
        "provider": candidate["provider"],
        "provider_api_version": candidate["provider_api_version"],
        "base_url": candidate["api"]["base_url"],
        "model": candidate["model"],
        "api_key_env": candidate["api"]["api_key_env"],
        "inference": dict(candidate["inference"]),
        "echo_reasoning": candidate["echo_reasoning"],
    }


def _refusal(expected: str, actual: str) -> EvidenceError:
    return EvidenceError(
        "eval_artifact_invalid",
        f"{RESOLVED_FILE} does not state one config",
        where=RESOLVED_FILE,
        expected=expected,
        actual=actual,
        recovery="use the file that the run wrote; it is never edited",
    )
