"""Evidence that does not support the score asked for is refused, never scored low."""

from __future__ import annotations

from harness.errors import ScoringError
from harness.evidence.episode import Scope


def evidence_mismatch(
    scope: Scope, problem: str, *, where: str, expected: str, actual: str
) -> ScoringError:
    """Return the error for evidence that disagrees with its task, plan or policy."""
    return ScoringError(
        f"eval_{_mode(scope)}_evidence_mismatch",
        problem,
        where=where,
        expected=expected,
        actual=actual[:400],
        recovery="score the episode with the task, plan and policy it was run under; "
        "evidence is never edited",
    )


def policy_unsupported(scope: Scope, problem: str, *, expected: str) -> ScoringError:
    """Return the error for a policy that nobody can apply to this evidence."""
    return ScoringError(
        f"eval_{_mode(scope)}_scoring_policy_unsupported",
        problem,
        where="scoring",
        expected=expected,
        recovery="change the scoring section of the config or policy file",
    )


def aggregation_invalid(
    scope: Scope, problem: str, *, where: str, expected: str, actual: str
) -> ScoringError:
    """Return the error for scores that do not make one run."""
    return ScoringError(
        f"eval_{_mode(scope)}_aggregation_invalid",
        problem,
        where=where,
        expected=expected,
        actual=actual[:400],
        recovery="feed exactly one candidate's scores, in plan order, each once",
    )


def _mode(scope: Scope) -> str:
    return "trace" if scope == "trace" else "executable"
