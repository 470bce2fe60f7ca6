"""Every error that a user can meet, drawn as a tree.

    FairtrialError
      UsageError            the command line or a file that the operator edits
        ConfigError         an evaluation config, with all its violations at once
        PackError           an oracle pack, with all its problems at once
      SourceError           a publication that cannot be trusted or has changed
      ContaminationError    a candidate that may have seen the benchmark
      CandidateError        the candidate endpoint stops the run
      EngineError           an engine that makes predictions stops the run
      ConversationError     a prompt or script that breaks its own rules
      OracleError           the live oracle or an assertion stops the run
      ScoringError          evidence that does not support the score asked for
      EvidenceError         a record or log that is damaged or contradicts itself
      ArtifactError         an immutable artifact holds other evidence
      StopLimitError        the run gave up after too many non-candidate stops

An error names what was expected, what was seen, where, and what to do. Its code
is a row of `harness.causes`, which alone decides the exit status.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.visible_text import visible


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong, small enough to fix on its own."""

    code: str
    where: str
    """A key path, a file with its line, or a record's position."""
    problem: str
    expected: str = ""
    actual: str = ""
    recovery: str = ""

    def as_report(self) -> dict[str, str]:
        """Return the non-empty fields in reading order."""
        fields = {
            "code": self.code,
            "where": self.where,
            "problem": self.problem,
            "expected": self.expected,
            "actual": self.actual,
            "recovery": self.recovery,
        }
        return {name: text for name, text in fields.items() if text}

    def as_text(self) -> str:
        """Return the violation as the lines that a terminal shows."""
        lines = [f"{self.code}: {self.problem}"]
        for label, text in (
            ("where", self.where),
            ("expected", self.expected),
            ("seen", self.actual),
            ("do", self.recovery),
        ):
            if text:
                lines.append(f"  {label}: {text}")
        # Packs, endpoints and files speak here, and a line of theirs is none of ours.
        return "\n".join(visible(line).replace("\n", "\n    ") for line in lines)


class FairtrialError(Exception):
    """Base of the tree: one violation or several of the same kind."""

    def __init__(
        self,
        code: str,
        problem: str,
        *,
        where: str = "",
        expected: str = "",
        actual: str = "",
        recovery: str = "",
        violations: tuple[Violation, ...] = (),
    ) -> None:
        own = Violation(code, where, problem, expected, actual, recovery)
        self.violations: tuple[Violation, ...] = violations or (own,)
        self.code = code
        super().__init__("\n".join(v.as_text() for v in self.violations))

    @classmethod
    def from_violations(cls, violations: tuple[Violation, ...]) -> FairtrialError:
        """Build one error from all violations; the first decides code and status."""
        first = violations[0]
        return cls(first.code, first.problem, violations=violations)

    def as_report(self) -> dict[str, object]:
        """Return a JSON object: the deciding code and every violation."""
        return {
            "code": self.code,
            "violations": [violation.as_report() for violation in self.violations],
        }


class UsageError(FairtrialError):
    """The command line or an edited file asks for something impossible."""


class ConfigError(UsageError):
    """An evaluation config breaks its closed key set or its rules."""


class PackError(UsageError):
    """An oracle pack breaks the pack contract."""


class SourceError(FairtrialError):
    """A publication is missing, torn, changed or not what it declares."""


class ContaminationError(FairtrialError):
    """A candidate is exposed to the benchmark, or nobody can tell."""


class CandidateError(FairtrialError):
    """The candidate endpoint or its client stops the run."""


class EngineError(FairtrialError):
    """An engine of predictions refuses a setting, does not start or breaks down."""


class ConversationError(FairtrialError):
    """A prompt, script or release breaks the conversation rules."""


class OracleError(FairtrialError):
    """The live oracle or its assertions stop the run."""


class ScoringError(FairtrialError):
    """Evidence disagrees with its task, plan or policy."""


class EvidenceError(FairtrialError):
    """A record or log is damaged or contradicts itself."""


class ArtifactError(FairtrialError):
    """An immutable artifact exists and holds other evidence."""


class StopLimitError(FairtrialError):
    """More episodes stopped for other reasons than the config allows."""


def first_own(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first error that a user can act on, or the whole group.

    That is one of ours, else a refusal of the machine.
    """
    own = failures.subgroup(FairtrialError) or failures.subgroup(OSError)
    if own is None:
        return failures
    first: BaseException = own
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first
