"""Bodies, salts, ids and delays of the requests of a run."""

import json
import re

from harness.candidates.request import PreparedRequest
from harness.canonical import canonical_bytes, content_hash
from harness.run.teacher_forced.frozen import request_plan
from tests.run.teacher_forced.conversations import (
    ASKED,
    BASH_TOOL,
    coding,
    row,
    write_dataset,
)

MARKER = r"\[[0-9a-f]{4}\]"


def plan_of(turns, **sections):
    return request_plan(turns.config(**sections), turns.dataset)


def requests_of(plan) -> list[PreparedRequest]:
    return [request for part in plan.passes() for _, request in plan.requests(part)]


def bodies_of(plan):
    return [json.loads(request.body) for request in requests_of(plan)]


def test_body_is_canonical_and_has_the_settings_of_the_candidate(turns):
    (first, *_) = requests_of(plan_of(turns))

    body = json.loads(first.body)
    assert canonical_bytes(body) == first.body
    assert {k: v for k, v in body.items() if k != "messages"} == {
        "model": "gold",
        "temperature": 0.0,
        "top_p": 1.0,
        "max_tokens": 1024,
        "seed": 42,
        "tools": [BASH_TOOL],
        "tool_choice": "auto",
    }
    assert body["messages"] == [
        {"role": "system", "content": "repo-a system"},
        {"role": "user", "content": "repo-a task"},
    ]


def test_choice_of_tools_is_left_out_where_there_are_none(turns):
    last = bodies_of(plan_of(turns))[-1]

    assert "tools" not in last
    assert "tool_choice" not in last


def test_every_turn_of_every_pass_has_an_identity_of_its_own(turns):
    requests = requests_of(plan_of(turns, asking={"repeats": 2}))

    assert len({r.request_hash for r in requests}) == len(requests) == 2 * ASKED
    assert all(content_hash(r.head) == r.request_hash for r in requests)


def test_routing_header_carries_the_id_and_enters_the_identity(turns):
    plain = requests_of(plan_of(turns, asking={"repeats": 2}))
    bare = requests_of(plan_of(turns, asking={"repeats": 2, "routing_header": None}))

    assert plain[0].headers == ((b"X-Session-ID", b"repo-a"),)
    assert plain[-1].headers == ((b"X-Session-ID", b"sim_1__repeat_2"),)
    assert bare[0].headers == ()
    assert plain[0].body == bare[0].body
    assert plain[0].request_hash != bare[0].request_hash


def systems(plan):
    found = {}
    for part in plan.passes():
        for _, request in plan.requests(part):
            message = json.loads(request.body)["messages"][0]
            found.setdefault(part.conversation_id, set()).add(message["content"])
    return {name: next(iter(texts)) for name, texts in found.items() if len(texts) == 1}


def test_salt_marks_repeat_before_and_conversation_after_the_system_prompt(turns):
    found = systems(plan_of(turns, asking={"salt": "s", "repeats": 2}))

    parts = {}
    for name, text in found.items():
        before, middle, after = text.split("\n\n")
        assert re.fullmatch(MARKER, before)
        assert re.fullmatch(MARKER, after)
        assert middle in ("repo-a system", "repo-b system", "Classify.")
        parts[name] = before, after
    assert len(found) == 6
    first = {parts[name][0] for name in ("repo-a", "repo-b", "sim_1")}
    second = {before for name, (before, _) in parts.items() if "__" in name}
    assert len(first) == len(second) == 1
    assert first != second
    assert len({after for _, after in parts.values()}) == 6


def test_salt_is_the_same_for_the_same_text_and_another_for_another(turns):
    one = systems(plan_of(turns, asking={"salt": "one"}))
    again = systems(plan_of(turns, asking={"salt": "one"}))
    other = systems(plan_of(turns, asking={"salt": "two"}))

    assert one == again
    assert one != other


def test_salt_of_a_conversation_without_a_system_prompt_stands_alone(turns):
    rows = coding("repo", 1)
    del rows[0]["system"]
    write_dataset(turns.dataset, rows)

    (plain,) = bodies_of(plan_of(turns))
    (salted,) = bodies_of(plan_of(turns, asking={"salt": "s"}))

    assert [m["role"] for m in plain["messages"]] == ["user"]
    assert re.fullmatch(rf"{MARKER}\n\n{MARKER}", salted["messages"][0]["content"])


def delays(plan):
    (part, *_) = plan.passes()
    return [
        plan.delay_s(turn, is_first=index == 0)
        for index, turn in enumerate(part.conversation.turns)
    ]


def test_delays_are_those_of_the_rows_and_the_configs_own(turns):
    assert delays(plan_of(turns)) == [0.0, 0.0, 0.0]
    assert delays(plan_of(turns, asking={"inject_tool_delay": True})) == [0, 0.5, 0.5]
    assert delays(
        plan_of(turns, asking={"inject_tool_delay": True, "inter_turn_delay_s": 2.0})
    ) == [0.0, 2.5, 2.5]


def test_fields_of_a_row_replace_the_candidates_where_the_config_says_so(turns):
    rows = [
        row("r", 1, "user", content="q", temperature=1.0, max_completion_tokens=7),
        row("r", 2, "assistant", content="a"),
    ]
    write_dataset(turns.dataset, rows)

    (kept,) = bodies_of(plan_of(turns))
    (replaced,) = bodies_of(plan_of(turns, asking={"row_overrides": True}))

    assert (kept["temperature"], kept["max_tokens"]) == (0.0, 1024)
    assert (replaced["temperature"], replaced["max_tokens"]) == (1.0, 7)
