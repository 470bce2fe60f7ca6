"""Waiting before turns: how long, in which order, and when not at all."""

import anyio

from harness.candidates.chat_http import ChatHttpCandidate
from harness.evidence.candidate_log import CandidateLog
from harness.run.resuming import ResumingCandidate
from harness.run.teacher_forced.collect import TurnCollector
from harness.run.teacher_forced.frozen import request_plan
from tests.run.teacher_forced.conversations import Teacher, coding, write_dataset


def collected(turns, **asking):
    """Collect one conversation with a sleep that only notes; return what happened."""
    write_dataset(turns.dataset, coding("repo"))
    happened = []

    def bend(_, turn, __):
        happened.append(turn)

    async def sleep(seconds):
        happened.append(f"{seconds} s")

    async def collect(config, plan):
        log = CandidateLog.open(turns.folder / "log.jsonl", writable=True)
        with log:
            live = ChatHttpCandidate(
                plan.endpoint,
                None,
                candidate_timeout_s=10,
                max_retries=0,
                recorder=log,
            )
            async with live:
                candidate = ResumingCandidate(live, log, echo_reasoning=True)
                collector = TurnCollector(
                    config, plan, candidate, lambda _: None, sleep
                )
                await collector.collect()

    teacher = Teacher(coding("repo"), bend)
    with teacher.served() as server:
        turns.base_url = server.url
        config = turns.config(asking=asking)
        plan = request_plan(config, turns.dataset)
        anyio.run(collect, config, plan)
        first = list(happened)
        happened.clear()
        anyio.run(collect, config, plan)
    return first, happened


def test_delays_of_rows_are_waited_before_they_are_sent(turns):
    first, _ = collected(turns, inject_tool_delay=True)

    assert first == [1, "0.5 s", 3, "0.5 s", 5]


def test_own_delay_is_added_between_turns_and_not_before_the_first(turns):
    first, _ = collected(turns, inject_tool_delay=True, inter_turn_delay_s=2.0)

    assert first == [1, "2.5 s", 3, "2.5 s", 5]


def test_nothing_is_waited_for_where_no_delay_is_asked_for(turns):
    first, _ = collected(turns)

    assert first == [1, 3, 5]


def test_answered_turns_are_neither_waited_for_nor_sent_again(turns):
    _, second = collected(turns, inject_tool_delay=True)

    assert second == []
