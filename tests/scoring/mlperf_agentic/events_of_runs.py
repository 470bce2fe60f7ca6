"""Builds data sets and logs for the tests of the MLPerf-agentic contract."""

import json

from harness.scoring.mlperf_agentic.aggregate import score_run
from harness.scoring.mlperf_agentic.events import read_event
from harness.scoring.mlperf_agentic.recorded import Recorded
from harness.scoring.mlperf_agentic.turn_log import TurnLog


def bash(command):
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    return {"id": "c", "type": "function", "function": function}


def recorded(**conversations):
    """Conversations by id; each is the answers, as a command or a list of intents."""
    found = Recorded()
    for source_id, answers in conversations.items():
        rows = []
        for answer in answers:
            rows.append({"role": "user", "turn": len(rows) + 1})
            row = {"role": "assistant", "turn": len(rows) + 1}
            if isinstance(answer, str):
                row["tool_calls"] = [bash(answer)]
            else:
                row["intent_codes"] = answer
            rows.append(row)
        found.add_conversation(source_id, rows)
    found.sort()
    return found


def event(name, uuid, conversation_id, turn, data=None):
    line = {
        "event_type": name,
        "timestamp_ns": 1,
        "sample_uuid": uuid,
        "conversation_id": conversation_id,
        "turn": turn,
        "data": data,
    }
    return read_event(json.dumps(line))


def issued(uuid, conversation_id, turn):
    return event("sample.issued", uuid, conversation_id, turn)


def ran(uuid, conversation_id, turn, command, text=""):
    data = ["TextModelOutput", text, None, [bash(command)]]
    return event("sample.complete", uuid, conversation_id, turn, data)


def said(uuid, conversation_id, turn, text):
    data = ["TextModelOutput", text]
    return event("sample.complete", uuid, conversation_id, turn, data)


def empty(uuid, conversation_id, turn):
    return event("sample.complete", uuid, conversation_id, turn)


def failed(uuid, error_type):
    data = ["ErrorData", error_type, "words"]
    return event("error.generic", uuid, "", None, data)


def scored(truth, *events):
    """Join the events with the data set, reading them twice where that is needed."""
    log = TurnLog(truth)
    for each in events:
        log.add(each)
    if log.unresolved:
        for each in events:
            log.resolve(each)
    log.close()
    return score_run(log)
