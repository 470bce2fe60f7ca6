"""A report payload as a run writes it, for the tests of its renderers."""

HASH = "sha256:" + "0" * 64


def ratio(numerator, denominator, reason=None):
    return {
        "numerator": numerator,
        "denominator": denominator,
        "value": numerator / denominator if denominator else None,
        "not_applicable_reason": reason,
    }


def blame(owner, cause, count, *, is_stop=True):
    return {"owner": owner, "cause": cause, "is_stop": is_stop, "count": count}


ORACLE_TIMEOUT = blame("oracle", "episode.oracle_timeout", 1)


def candidate(alias="gold", *, task_count=5, successful=5, stops=0, **fields):
    payload = {
        "alias": alias,
        "scope": "trace_and_executable",
        "canonical_id": f"control/{alias}",
        "aggregate_hash": HASH,
        "task_count": task_count,
        "trials": 1,
        "successful_tasks": successful,
        "non_candidate_stops": stops,
        "ledger": [],
        "metrics": {
            "argument_accuracy": ratio(7, 9),
            "state_match_rate": ratio(0, 0, "metric.no_state_assertion"),
            "task_success_rate": ratio(successful, task_count),
            "task_success_rate_without_stops": ratio(successful, task_count - stops),
        },
        "companions": {
            "planned": task_count,
            "stops": stops,
            "timeouts": 0,
            "turn_limit_stops": 0,
            "suspected_call_markup": 0,
            "suspected_truncation": 0,
            "serving_parse_loss": 0,
            "arguments_empty": 0,
            "stops_after_mismatch": 0,
        },
    }
    return payload | fields


def report(*candidates, **fields):
    payload = {
        "schema_version": "1.0",
        "eval_run_id": "run-1",
        "eval_scope": "trace_and_executable",
        "source_run_id": "library-1.0.0-abc",
        "eval_config_hash": HASH,
        "error_taxonomy_hash": HASH,
        "plan_identity": HASH,
        "source_verification_identity": HASH,
        "comparison_set": {"policy": "common", "task_count": 5, "task_ids_hash": HASH},
        "candidates": list(candidates) or [candidate()],
        "contamination_violations": [],
        "publication_allowed": True,
        "non_publication_reasons": [],
    }
    return payload | fields
