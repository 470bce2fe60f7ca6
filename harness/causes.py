"""The cause table: one row for every way that an episode or a run can end.

A row says who owns the stop, whether the stopped thing is tried again, whether it
enters the score as the candidate's result, whether a run that holds it may be
published, and with which exit status a run ends on it. Nothing else in fairtrial
decides blame or an exit status (`spec/executable-evaluator.md` 3.10 and 3.14,
`design/interfaces.md` 1 and 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal


class Owner(StrEnum):
    """The party that a stop belongs to."""

    CANDIDATE = "candidate"
    PROVIDER = "provider"
    TRANSPORT = "transport"
    DRIVER = "driver"
    ORACLE = "oracle"
    ASSERTION = "assertion"
    PACK = "pack"
    OPERATOR = "operator"


class Attribution(StrEnum):
    """The contract's coarser word for blame (spec 3.14)."""

    SUCCESS = "success"
    CANDIDATE = "candidate"
    INFRASTRUCTURE = "infrastructure"
    EVIDENCE = "evidence"
    FATAL_SETUP = "fatal_setup"
    NOT_APPLICABLE = "not_applicable"


Level = Literal["episode", "run"]
Retried = Literal["never", "request", "resume"]
"""`request`: bounded, while no completion exists; `resume`: by a resumed run."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One row of the table."""

    code: str
    level: Level
    owner: Owner
    attribution: Attribution
    retried: Retried
    scored: bool
    """Whether the planned episode counts as judged; a stop is counted apart."""
    publishable: bool
    exit_status: int
    summary: str


EXIT_DONE: Final = 0
"""Done."""
EXIT_ANSWER_IS_NO: Final = 1
"""Worked, and the answer is no."""
EXIT_USAGE: Final = 2
"""A command line, or a declaration that the operator edits."""
EXIT_SETUP: Final = 3
"""Setup, source, scoring or aggregation refuses."""
EXIT_CONTAMINATION: Final = 4
"""The benchmark or its answer key may be known to a candidate."""
EXIT_CANDIDATE: Final = 5
"""The candidate's endpoint stops the run."""
EXIT_ORACLE: Final = 6
"""The live oracle or its assertions stop the run."""
EXIT_CONFLICT: Final = 7
"""An immutable artifact holds other evidence, or a run is unfinished."""
EXIT_INCOMPATIBLE: Final = 8
"""Two runs that cannot be compared."""
EXIT_OVER_CAP: Final = 9
"""Finished over its cap of stops: no score is published."""
EXIT_INTERRUPTED: Final = 130
"""Interrupted; a resumed run goes on."""


def _judged(status: str, summary: str, code: str = "") -> Cause:
    return Cause(
        code or f"episode.{status}",
        "episode",
        Owner.CANDIDATE,
        Attribution.SUCCESS if status == "completed" else Attribution.CANDIDATE,
        "never",
        scored=True,
        publishable=True,
        exit_status=EXIT_DONE,
        summary=summary,
    )


def _stop(code: str, owner: Owner, summary: str, retried: Retried = "never") -> Cause:
    return Cause(
        f"episode.{code}",
        "episode",
        owner,
        Attribution.INFRASTRUCTURE,
        retried,
        scored=False,
        publishable=True,
        exit_status=EXIT_DONE,
        summary=summary,
    )


def _run(code: str, owner: Owner, exit_status: int, summary: str) -> Cause:
    return Cause(
        code,
        "run",
        owner,
        Attribution.FATAL_SETUP,
        "resume" if exit_status in _RESUMABLE else "never",
        scored=False,
        publishable=False,
        exit_status=exit_status,
        summary=summary,
    )


_RESUMABLE = (EXIT_CANDIDATE, EXIT_ORACLE, EXIT_INTERRUPTED)

_EPISODE_ROWS = (
    _judged("completed", "The script was walked to its end."),
    _judged("candidate_mismatch", "A turn did not equal the script."),
    _judged(
        "candidate_mismatch",
        "The provider reports a cut or filtered generation; nothing ran.",
        "episode.incomplete_finish",
    ),
    _judged("malformed_response", "The message itself is broken; nothing ran."),
    _judged("unusable_tool_call_ids", "Call ids are missing or repeat; nothing ran."),
    _judged("confirmation_not_earned", "A confirmed call came before its answer."),
    _stop(
        "candidate_call_failed.rate_limited",
        Owner.PROVIDER,
        "The endpoint kept refusing for load (429).",
        "request",
    ),
    _stop(
        "candidate_call_failed.provider_unavailable",
        Owner.PROVIDER,
        "The endpoint kept answering with a server error.",
        "request",
    ),
    _stop(
        "candidate_call_failed.envelope_malformed",
        Owner.PROVIDER,
        "A 200 whose envelope is not one strict JSON completion.",
        "request",
    ),
    _stop(
        "candidate_call_failed.generation_aborted",
        Owner.PROVIDER,
        "The server says that it gave the generation up.",
        "request",
    ),
    _stop(
        "candidate_call_failed.quota_exhausted",
        Owner.PROVIDER,
        "The account behind the endpoint has no credit left.",
    ),
    _stop(
        "candidate_call_failed.context_length",
        Owner.PROVIDER,
        "The endpoint refused the request for its length.",
    ),
    _stop(
        "candidate_call_failed.oversize_body",
        Owner.PROVIDER,
        "The body is larger than the cap of 16 MiB.",
    ),
    _stop(
        "candidate_call_failed.multiple_choices",
        Owner.PROVIDER,
        "More than one choice for one request.",
    ),
    _stop(
        "candidate_call_failed.unknown_finish_reason",
        Owner.PROVIDER,
        "A finish reason that no row of the wire contract knows.",
    ),
    _stop(
        "candidate_call_failed.provider_rejected",
        Owner.PROVIDER,
        "The endpoint refused this request.",
    ),
    _stop(
        "candidate_call_failed.content_filter_prompt",
        Owner.PROVIDER,
        "A filter refused the request before anything was generated.",
    ),
    _stop(
        "candidate_call_failed.credential_echoed",
        Owner.PROVIDER,
        "The body repeats the credential, so it was not kept.",
    ),
    _stop(
        "candidate_call_failed.timeout",
        Owner.TRANSPORT,
        "No complete response in the request's deadline.",
        "request",
    ),
    _stop(
        "candidate_call_failed.transport_error",
        Owner.TRANSPORT,
        "The connection was refused, reset or cut.",
        "request",
    ),
    _stop(
        "max_turns_exceeded",
        Owner.DRIVER,
        "The script is longer than limits.max_turns.",
    ),
    _stop("episode_timeout", Owner.DRIVER, "The episode's time budget is used up."),
    _stop("oracle_reset_failed", Owner.ORACLE, "The oracle session did not start."),
    _stop("oracle_call_failed", Owner.ORACLE, "A read-only call broke the worker."),
    _stop("oracle_timeout", Owner.ORACLE, "A read-only call passed its deadline."),
    _stop("oracle_result_malformed", Owner.ORACLE, "A result is no JSON object."),
    _stop("oracle_state_failed", Owner.ORACLE, "The final state could not be read."),
    _stop("oracle_session_failed", Owner.ORACLE, "The session did not close."),
    _stop(
        "unknown_commit_state",
        Owner.ORACLE,
        "The reply of a mutating call was lost; nobody knows whether it happened.",
    ),
    _stop(
        "dependency_resolution_failed",
        Owner.PACK,
        "A value that the script takes from a live result is not there.",
    ),
    _stop(
        "assertion_infrastructure_failed",
        Owner.ASSERTION,
        "An assertion could not be imported, run or finished.",
    ),
)

_OPERATOR_EDITS = {
    "eval_config_invalid": "The config is not one closed YAML document.",
    "eval_config_schema_invalid": "The config has another schema version.",
    "eval_config_path_invalid": "A path of the config leads nowhere or outside.",
    "candidate_identity_invalid": "A candidate does not say which model it is.",
    "candidate_revision_mutable": "A revision that can move under the same name.",
    "secret_in_eval_config": "A credential stands in a file that gets published.",
    "eval_publication_policy_violation": "A locked setting differs.",
    "unsupported_eval_mode": "The mode or kind is out of scope.",
    "eval_cli_invalid": "The command line asks for something impossible.",
    "eval_output_exists": "The output folder exists already.",
    "eval_oracle_credentials_refused": "No grant for a credential, or none is set.",
    "eval_engine_setting_unsupported": "An engine cannot apply a decoding setting.",
    "pack_invalid": "The pack breaks the pack contract.",
    "pack_not_gold": "Publishing finished, and the pack is not gold.",
}
_SETUP = {
    "eval_source_invalid": "The publication cannot be used.",
    "eval_source_manifest_invalid": "run_manifest.json is not a commit marker.",
    "eval_source_manifest_drift": "run_manifest.json changed since the config.",
    "eval_source_benchmark_hash_mismatch": "A table is not the declared one.",
    "eval_source_benchmark_schema_mismatch": "A table has other columns.",
    "eval_source_publication_invalid": "The tables do not follow from each other.",
    "eval_source_task_index_invalid": "Rows cannot be addressed one by one.",
    "eval_source_model_exposure_invalid": "The model inventory contradicts itself.",
    "eval_source_oracle_pack_drift": "The pack is not the certified one.",
    "eval_source_oracle_resource_mismatch": "The backend is not the pack's own.",
    "eval_source_translation_lineage_invalid": "A translation has no lineage.",
    "eval_source_changed_during_eval": "The source changed while it was used.",
    "eval_isolation_unavailable": "The containment level cannot be had here.",
    "eval_conversation_invalid": "The conversation contract was broken.",
    "eval_conversation_script_invalid": "A row does not read as a script.",
    "eval_conversation_unauthorized": "A task outside the authorized plan.",
    "eval_conversation_transition_invalid": "A step that the script forbids.",
    "eval_executable_invalid": "The executable contract was broken.",
    "eval_executable_projection_invalid": "A row does not fit its pack.",
    "eval_executable_unauthorized": "A task outside the authorized plan.",
    "eval_candidate_cache_invalid": "The candidate log is damaged.",
    "eval_tool_trace_cache_invalid": "The episode log is damaged.",
    "eval_evidence_invalid": "A record does not have its declared shape.",
    "eval_request_unaccounted": "A recorded request that nothing accounts for.",
    "eval_executable_scoring_invalid": "Scoring met an impossible record.",
    "eval_executable_evidence_mismatch": "Evidence of another task or plan.",
    "eval_executable_scoring_policy_unsupported": "A policy nobody can apply.",
    "eval_executable_aggregation_invalid": "Scores that do not make one run.",
    "eval_trace_scoring_invalid": "Scoring met an impossible record.",
    "eval_trace_evidence_mismatch": "Evidence of another task or plan.",
    "eval_trace_scoring_policy_unsupported": "A policy nobody can apply.",
    "eval_trace_aggregation_invalid": "Scores that do not make one run.",
    "eval_artifact_invalid": "An artifact cannot be read or does not follow.",
    "eval_predictions_invalid": "Recorded predictions cannot be read or scored.",
    "eval_predictions_drift": "A file is not the one whose hash was declared.",
    "eval_runner_invalid": "The runner was asked for the impossible.",
    "eval_runner_mode_unsupported": "The runner does not serve this mode.",
    "eval_engine_start_failed": "An engine did not load, or its server not start.",
    "eval_cli_runtime_failed": "The machine refused: disk, memory or rights.",
}
_EXPOSURE = {
    "eval_contamination_invalid": "The exposure inventory is unusable.",
    "eval_contamination_candidate_exposed": "A candidate read benchmark rows.",
    "eval_contamination_unresolved": "Nobody can tell whether it read them.",
    "eval_contamination_empty_task_set": "No task is left to ask.",
    "eval_contamination_task_set_inconsistent": "Task sets contradict the plan.",
    "eval_contamination_plan_drift": "The plan changed before its first use.",
    "eval_conversation_answer_key_leak": "Gold would enter the prompt.",
}
_ENDPOINT = {
    "eval_candidate_client_invalid": "The candidate client cannot be built.",
    "eval_candidate_server_failed": "A candidate server did not start.",
    "eval_candidate_credentials_missing": "The named variable holds no key.",
    "eval_candidate_authentication_failed": "The endpoint refuses the key.",
    "eval_candidate_request_invalid": "A request breaks its own rules.",
    "eval_candidate_provider_extension_invalid": "An extension is not allowed.",
    "eval_candidate_response_invalid": "A response cannot be recorded.",
    "eval_candidate_stop_limit": "Too many stops at the endpoint; run given up.",
    "eval_engine_failed": "An engine broke down while it made predictions.",
}
_LIVE_ORACLE = {
    "eval_oracle_session_failed": "The oracle host did not start or died.",
    "eval_oracle_identity_drift": "The endpoint is not the oracle certified.",
    "eval_oracle_reset_failed": "The oracle refuses to reset.",
    "eval_oracle_call_failed": "The oracle refuses calls.",
    "eval_oracle_state_failed": "The oracle refuses to show its state.",
    "eval_assertion_infrastructure_failed": "Assertions cannot run.",
    "eval_oracle_stop_limit": "Too many stops at the oracle; run given up.",
}
_CONFLICT = {
    "eval_candidate_cache_conflict": "Two different records under one key.",
    "eval_tool_trace_cache_conflict": "Two different episodes under one key.",
    "eval_cli_artifact_conflict": "An immutable artifact holds other evidence.",
    "eval_run_unfinished": "The folder holds an unfinished run.",
    "eval_run_in_use": "Another process is writing this folder.",
}

_RUN_ROWS = (
    *(_run(c, Owner.OPERATOR, EXIT_USAGE, s) for c, s in _OPERATOR_EDITS.items()),
    *(_run(c, Owner.OPERATOR, EXIT_SETUP, s) for c, s in _SETUP.items()),
    *(_run(c, Owner.OPERATOR, EXIT_CONTAMINATION, s) for c, s in _EXPOSURE.items()),
    *(_run(c, Owner.PROVIDER, EXIT_CANDIDATE, s) for c, s in _ENDPOINT.items()),
    *(_run(c, Owner.ORACLE, EXIT_ORACLE, s) for c, s in _LIVE_ORACLE.items()),
    *(_run(c, Owner.OPERATOR, EXIT_CONFLICT, s) for c, s in _CONFLICT.items()),
    _run(
        "stops.share_over_cap",
        Owner.OPERATOR,
        EXIT_OVER_CAP,
        "Finished, but too many episodes stopped for a score to be published.",
    ),
    _run(
        "run.interrupted",
        Owner.OPERATOR,
        EXIT_INTERRUPTED,
        "Stopped by a signal; `run --resume` goes on.",
    ),
)

CAUSES: Final[dict[str, Cause]] = {
    cause.code: cause for cause in (*_EPISODE_ROWS, *_RUN_ROWS)
}
"""Every row by its code."""

if len(CAUSES) != len(_EPISODE_ROWS) + len(_RUN_ROWS):
    raise AssertionError("the cause table names one code twice")


def exit_status(code: str) -> int:
    """Return the exit status of a run that ends with `code`.

    Raises KeyError for a code that is not in the table.
    """
    return CAUSES[code].exit_status


def episode_cause(status: str, reason_code: str, cause_detail: str | None) -> Cause:
    """Return the row of an episode's end.

    `cause_detail` is the wire detail of `candidate_call_failed` and None otherwise.
    Raises KeyError for an end that is not in the table.
    """
    if status == "candidate_call_failed":
        return CAUSES[f"episode.{status}.{cause_detail}"]
    if reason_code == "episode.incomplete_finish":
        return CAUSES[reason_code]
    return CAUSES[f"episode.{status}"]


def is_non_candidate_stop(status: str) -> bool:
    """Tell whether an episode status belongs to another party than the candidate."""
    return status in NON_CANDIDATE_STOPS


NON_CANDIDATE_STOPS: Final = frozenset(
    cause.code.split(".")[1]
    for cause in _EPISODE_ROWS
    if cause.attribution is Attribution.INFRASTRUCTURE
)
