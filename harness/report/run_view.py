"""What a person reads in `eval_report.json`, worked out once for every renderer.

A view holds integers and reasons, never a bare rate: a ratio without a denominator
says why it has none. Text and HTML show the same view, so they cannot disagree, and
the view of a stored report equals that of a fresh one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from harness.canonical import Json
from harness.causes import CAUSES
from harness.scoring.aggregate import Companions

HEADLINE: Final = "task_success_rate"
HEADLINE_WITHOUT_STOPS: Final = "task_success_rate_without_stops"
OVER_CAP: Final = "stops.share_over_cap"


@dataclass(frozen=True, slots=True)
class Ratio:
    """Two counts, or the reason why there is nothing to count."""

    numerator: int
    denominator: int
    not_applicable_reason: str | None = None

    @property
    def counts(self) -> str:
        """Return `3/5`, or `n/a` where nothing was counted."""
        return f"{self.numerator}/{self.denominator}" if self.denominator else "n/a"

    @property
    def percent(self) -> str:
        """Return one decimal; never 0.0 or 100.0 for what is not none or all."""
        if not self.denominator:
            return "n/a"
        text = f"{100 * self.numerator / self.denominator:.1f}"
        if text == "100.0" and self.numerator < self.denominator:
            text = ">99.9"
        if text == "0.0" and self.numerator > 0:
            text = "<0.1"
        return f"{text} %"


@dataclass(frozen=True, slots=True)
class Blame:
    """How many episodes that are no success one party owns for one cause."""

    owner: str
    cause: str
    """A row of the cause table, or the first failed gate of a completed episode."""
    summary: str
    is_stop: bool
    count: int


@dataclass(frozen=True, slots=True)
class Span:
    """A 95 % interval and how it was made."""

    metric: str
    clusters: str
    """`task` or `template`: whose episodes are taken to be alike."""
    method: str
    effective_n: float
    low: float
    high: float

    @property
    def percents(self) -> str:
        """Return both ends in percent with one decimal."""
        return f"{100 * self.low:.1f} to {100 * self.high:.1f}"


@dataclass(frozen=True, slots=True)
class Chance:
    """pass@k and pass^k for one k."""

    k: int
    pass_at_k: float
    pass_hat_k: float

    @property
    def cells(self) -> tuple[str, str]:
        """Return both as percentages."""
        return f"{100 * self.pass_at_k:.1f} %", f"{100 * self.pass_hat_k:.1f} %"


@dataclass(frozen=True, slots=True)
class Early:
    """Withheld values that a candidate wrote before their release."""

    rule: str
    values: Ratio
    decoys: Ratio
    """The chance baseline: values of other tasks, looked for in the same turns."""
    confirmations: Ratio

    @property
    def cells(self) -> tuple[str, ...]:
        """Return counts and rates in the order of `EARLY_HEADERS`."""
        return (
            self.values.counts,
            self.values.percent,
            self.decoys.counts,
            self.decoys.percent,
            self.confirmations.counts,
        )


EARLY_HEADERS: Final = (
    "written early",
    "rate",
    "decoys written",
    "rate by chance",
    "confirmed early",
)
EARLY_CAPTION: Final = (
    "Values that the script tells late, written before they were told, beside decoys "
    "that it never tells: the chance baseline. Evidence of contamination where the two "
    "rates differ; no gate reads it."
)


@dataclass(frozen=True, slots=True)
class CandidateView:
    """One candidate's aggregate."""

    alias: str
    canonical_id: str
    trials: int
    success: Ratio
    success_without_stops: Ratio
    could_be: tuple[Ratio, Ratio]
    """The rate over all, had every stop failed and had every stop passed."""
    stops: int
    ledger: tuple[Blame, ...]
    """Stops first, then what the candidate owns; the most frequent first."""
    metrics: tuple[tuple[str, Ratio], ...]
    """All but the two headline rates, by name."""
    companions: tuple[tuple[str, int], ...]
    served_by: tuple[tuple[str, str, int], ...]
    """Server, served model and responses, as far as the server told."""
    spans: tuple[Span, ...]
    """Intervals of both headline rates, as far as they were worked out."""
    chances: tuple[Chance, ...]
    """Over repeats; () where each task was asked once."""
    early: Early | None

    def span(self, metric: str, clusters: str = "task") -> Span | None:
        """Return the interval of one headline rate."""
        for span in self.spans:
            if (span.metric, span.clusters) == (metric, clusters):
                return span
        return None

    def interval(self, metric: str) -> str:
        """Return the interval over tasks as text, `-` where there is none."""
        span = self.span(metric)
        return span.percents if span else "-"


@dataclass(frozen=True, slots=True)
class RunView:
    """One finished run."""

    run_id: str
    source_run_id: str
    scope: str
    candidates: tuple[CandidateView, ...]
    publication_allowed: bool
    non_publication_reasons: tuple[str, ...]
    identities: tuple[tuple[str, str], ...]

    @property
    def title(self) -> str:
        """Name the first table; a run over its cap of stops claims no score."""
        if OVER_CAP in self.non_publication_reasons:
            return "Counts only: too many episodes stopped for a score"
        return "Task success"

    @property
    def interval_note(self) -> str:
        """Say how the intervals beside the headline were made; "" without any."""
        methods = {
            span.method
            for candidate in self.candidates
            for span in candidate.spans
            if span.clusters == "task"
        }
        if not methods:
            return ""
        return (
            f"95 %: {', '.join(sorted(methods))} over tasks; eval_report.json has the "
            "intervals over templates too."
        )

    def repeats(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return headers and rows of pass@k and pass^k; no rows for single trials.

        k are the powers of two and the number of trials; k = 1 is the rate itself.
        """
        headers: dict[str, None] = {"candidate": None}
        rows = []
        for candidate in self.candidates:
            shown = [
                chance
                for chance in candidate.chances
                if chance.k > 1
                and (chance.k.bit_count() == 1 or chance.k == candidate.trials)
            ]
            for chance in shown:
                headers |= {f"pass@{chance.k}": None, f"pass^{chance.k}": None}
            if shown:
                cells = [cell for chance in shown for cell in chance.cells]
                rows.append((candidate.alias, *cells))
        return tuple(headers), rows

    def not_applicable(self) -> list[tuple[str, str, str]]:
        """Return (metric, reason, candidates), one entry for each different reason."""
        found: dict[tuple[str, str], list[str]] = {}
        for candidate in self.candidates:
            for name, ratio in candidate.metrics:
                if ratio.not_applicable_reason:
                    key = (name, ratio.not_applicable_reason)
                    found.setdefault(key, []).append(candidate.alias)
        return [
            (name, reason, self._names(aliases))
            for (name, reason), aliases in found.items()
        ]

    def _names(self, aliases: list[str]) -> str:
        return "all" if len(aliases) == len(self.candidates) else ", ".join(aliases)


def view_run(report: Mapping[str, Json]) -> RunView:
    """Read an `eval_report.json` payload; raises KeyError for a missing field."""
    return RunView(
        run_id=report["eval_run_id"],
        source_run_id=report["source_run_id"],
        scope=report["eval_scope"],
        candidates=tuple(map(_candidate, report["candidates"])),
        publication_allowed=report["publication_allowed"],
        non_publication_reasons=tuple(report["non_publication_reasons"]),
        identities=tuple(
            (name, report[name])
            for name in (
                "eval_config_hash",
                "plan_identity",
                "source_verification_identity",
                "error_taxonomy_hash",
            )
        ),
    )


def _candidate(payload: Mapping[str, Json]) -> CandidateView:
    metrics = {name: _ratio(value) for name, value in payload["metrics"].items()}
    planned = payload["task_count"]
    stops = payload["non_candidate_stops"]
    success = payload["successful_tasks"]
    # A bundle with withheld rows has neither.
    statistics = payload.get("statistics") or {}
    repeats = statistics.get("repeats") or {}
    return CandidateView(
        alias=payload["alias"],
        canonical_id=payload["canonical_id"],
        trials=payload["trials"],
        success=metrics.pop(HEADLINE, Ratio(success, planned)),
        success_without_stops=metrics.pop(
            HEADLINE_WITHOUT_STOPS, Ratio(success, planned - stops)
        ),
        could_be=(Ratio(success, planned), Ratio(success + stops, planned)),
        stops=stops,
        ledger=tuple(
            sorted(
                map(_blame, payload["ledger"]),
                key=lambda blame: (not blame.is_stop, -blame.count, blame.cause),
            )
        ),
        metrics=tuple(sorted(metrics.items())),
        companions=tuple(
            (field.name, payload["companions"][field.name])
            for field in fields(Companions)
        ),
        served_by=tuple(map(_served_by, payload.get("served_by", ()))),
        spans=tuple(Span(**each) for each in statistics.get("intervals", ())),
        chances=tuple(Chance(**each) for each in repeats.get("chances", ())),
        early=_early(payload.get("premature_knowledge")),
    )


def _early(payload: Mapping[str, Json] | None) -> Early | None:
    if payload is None:
        return None
    claimed = [each for each in payload["by_kind"] if each["kind"] == "confirmation"]
    return Early(
        payload["rule"],
        Ratio(payload["appeared"], payload["values"]),
        Ratio(payload["decoys_appeared"], payload["decoys"]),
        Ratio(
            sum(each["appeared"] for each in claimed),
            sum(each["values"] for each in claimed),
        ),
    )


def _blame(payload: Mapping[str, Json]) -> Blame:
    cause = payload["cause"]
    row = CAUSES.get(cause)
    summary = row.summary if row else "A gate failed in an episode that completed."
    return Blame(payload["owner"], cause, summary, payload["is_stop"], payload["count"])


def _served_by(payload: Mapping[str, Json]) -> tuple[str, str, int]:
    if payload["is_rest"]:
        return "further servers", "-", payload["responses"]
    return (
        payload["server"] or "does not say",
        payload["served_model"] or "does not say",
        payload["responses"],
    )


def _ratio(payload: Mapping[str, Json]) -> Ratio:
    return Ratio(
        payload["numerator"],
        payload["denominator"],
        payload["not_applicable_reason"],
    )
