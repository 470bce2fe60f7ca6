"""A report payload as a run writes it, for the tests of its renderers."""

from harness.stats.tally import StatisticsTally

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


def statistics(task_count, successful, stops, *, trials=1):
    """What a run states whose tasks are all of one template."""
    tally = StatisticsTally(trials)
    for episode in range(task_count):
        failed = task_count - successful - stops
        tally.add(
            "only",
            success=episode < successful,
            stop=episode >= successful + failed,
        )
    return tally.result().semantic_payload()


def premature(appeared=0, values=0, decoys_appeared=0, decoys=0, confirmed=(0, 0)):
    counts = dict.fromkeys(("decoys", "decoys_appeared"), 0)
    return {
        "rule": "premature-1",
        "appeared": appeared,
        "values": values,
        "decoys_appeared": decoys_appeared,
        "decoys": decoys,
        "by_kind": [
            {
                "kind": "confirmation",
                "appeared": confirmed[0],
                "values": confirmed[1],
                **counts,
            }
        ],
    }


def candidate(alias="gold", *, task_count=5, successful=None, stops=0, **fields):
    if successful is None:
        successful = task_count - stops
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
        "statistics": statistics(task_count, successful, stops),
        "premature_knowledge": premature(1, 4, 0, 12, (1, 2)),
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
