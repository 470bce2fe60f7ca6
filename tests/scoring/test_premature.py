from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.scoring.premature import MOST_SIGHTINGS, PrematureTally
from harness.scoring.withheld import MOST_DECOYS, DecoyPool, countable
from tests.scoring.episodes import (
    Answer,
    End,
    Evidence,
    calls,
    dependency,
    episode,
    gold,
    made,
    part,
    resolved,
    says,
    script,
    task,
    tool,
)

SLOT = "M-0417"


def asking(value=SLOT, *, task_id="task-1", decoys=None, said=None):
    """A task that asks for a member first, is told, and calls with it."""
    of = script("Which member?", [gold("status", book_id=value)], "Done.")
    told = replace(of.turns[0], releases_user_message=said or f"It is {value}, please.")
    bound = {
        "slots": {"member": value},
        "slot_updates": [],
        "withheld": ["member"],
        "decoys": decoys or {},
    }
    return replace(
        task(replace(of, turns=(told, *of.turns[1:])), task_id=task_id),
        slot_bindings=bound,
    )


def found(spec, *answers, siblings=(), **more):
    """Return what the tally says of one episode."""
    tally = PrematureTally(DecoyPool([spec, *siblings]))
    tally.add(spec, episode(spec, *answers, **more))
    return tally.result()


def counts(result):
    return result.values, result.appeared, result.decoys, result.decoys_appeared


def test_slot_value_in_a_call_before_its_release_is_seen():
    result = found(asking(), calls(made("status", book_id=SLOT)))

    assert counts(result) == (1, 1, 0, 0)
    (sighting,) = result.sightings
    assert (sighting.turn_index, sighting.source, sighting.place) == (
        0,
        "slot member",
        "call",
    )


def test_slot_value_in_words_before_its_release_is_seen():
    result = found(asking(), says(f"Is it for {SLOT}?"))

    assert result.sightings[0].place == "text"


def test_slot_value_after_its_release_is_not_seen():
    result = found(
        asking(), says("Which member?"), calls(made("status", book_id=SLOT)), says("ok")
    )

    assert counts(result) == (1, 0, 0, 0)


def test_part_of_a_longer_token_is_not_seen():
    result = found(asking(), says(f"Is it {SLOT}9 or X-{SLOT}?"))

    assert result.appeared == 0


def test_value_in_a_broken_call_is_seen():
    broken = made("status", raw=f'{{"book_id": "{SLOT}"', status="invalid_json")

    assert found(asking(), calls(broken)).sightings[0].place == "call"


def test_value_that_the_first_message_shows_is_not_watched():
    spec = asking()
    seed = ({"role": "user", "content": f"hello from {SLOT.lower()}"},)
    spec = replace(spec, script=replace(spec.script, seed_messages=seed))

    assert counts(found(spec, says(SLOT))) == (0, 0, 0, 0)


def test_value_that_a_tool_declares_is_not_watched():
    spec = asking("two words")
    tools = (tool("status", {"book_id": {"type": "string", "enum": ["Two Words"]}}),)
    spec = replace(spec, script=replace(spec.script, tools=tools))

    assert found(spec, says("two words"), end=End("candidate_mismatch")).values == 0


def test_decoys_are_values_of_siblings_that_the_conversation_never_shows():
    siblings = [
        asking("M-0001", task_id="b"),
        asking("M-0002", task_id="c"),
        replace(asking("M-0003", task_id="d"), template_id="other"),
    ]
    result = found(asking(), says("For M-0002?"), siblings=siblings)

    assert counts(result) == (1, 0, 2, 1)


def test_decoys_of_the_row_come_first_and_are_capped():
    own = {"member": [f"M-9{n:03}" for n in range(MOST_DECOYS + 4)]}
    result = found(asking(decoys=own), says("Which?"))

    assert result.decoys == MOST_DECOYS


def test_superseded_value_is_no_decoy_because_it_was_said():
    spec = asking(decoys={"member": ["hello", "M-0500"]}, said=f"Not M-0500: {SLOT}.")

    assert found(spec, says("For M-0500?")).decoys == 0


def correcting():
    of = script("Sure?", "Really?", [gold("status", book_id="B-77")], "Done.")
    told = replace(of.turns[0], releases_user_message="Sorry, I mean B-77.")
    bound = {
        "slots": {"book": "B-11"},
        "slot_updates": [{"entry_index": 0, "values": {"book": "B-77"}, "aliases": {}}],
        "withheld": [],
        "decoys": {"book": ["B-11"]},
    }
    spec = task(replace(of, turns=(told, *of.turns[1:])))
    seed = ({"role": "user", "content": "I want B-11"},)
    return replace(
        spec, slot_bindings=bound, script=replace(spec.script, seed_messages=seed)
    )


def test_corrected_value_before_its_correction_is_seen():
    result = found(correcting(), says("B-77, then?"))

    assert [(t.kind, t.appeared) for t in result.by_template] == [("correction", 1)]


def tracing():
    of = script([gold("find", title="Dune")], [gold("status", book_id="B-4711")], "ok")
    call = replace(of.turns[0].calls[0], recorded_result='{"id":"B-4711","ok":true}')
    return task(replace(of, turns=(replace(of.turns[0], calls=(call,)), *of.turns[1:])))


def test_id_of_a_later_result_is_seen_in_trace_mode():
    result = found(tracing(), calls(made("status", book_id="B-4711")))

    assert result.sightings[0].source == "result 0 id"


def test_id_of_a_later_result_is_seen_in_executable_mode():
    needed = dependency(1, 1, "book_id", 0)
    of = script([gold("find", title="Dune")], [gold("status", book_id="B-4711")], "ok")
    spec = task(of, executable=part(dependencies=[needed]))
    result = found(spec, calls(made("status", book_id="B-4711")), evidence=Evidence())

    assert result.sightings[0].source == "result 0 id"


def test_value_that_a_live_result_showed_is_not_seen():
    needed = dependency(1, 1, "book_id", 0)
    of = script([gold("find", title="Dune")], [gold("status", book_id="B-4711")], "ok")
    spec = task(of, executable=part(dependencies=[needed]))
    shown = {"released_to_model": True, "result": {"hits": ["B-4711", 3]}}
    result = found(
        spec,
        calls(made("find", title="Dune"), executions=(("completed", shown),)),
        calls(made("status", book_id="B-4712")),
        evidence=Evidence(dependencies=(resolved(needed, "B-4711"),)),
    )

    assert counts(result) == (1, 0, 0, 0)


@pytest.mark.parametrize(
    ("path", "values"), [("items.1.id", 1), ("items.7.id", 0), ("items.x", 0)]
)
def test_dependency_is_found_by_its_path(path, values):
    needed = replace(
        dependency(1, 1, "", 0), argument_path=("books", *path.split(".")[1:])
    )
    books = [{"id": "B-1"}, {"id": "B-4711"}]
    of = script([gold("find", title="Dune")], [gold("status", books=books)], "ok")
    spec = task(of, executable=part(dependencies=[needed]))

    assert found(spec, says("Hm."), evidence=Evidence()).values == values


def test_recorded_text_that_is_no_json_stands_for_itself():
    of = tracing().script
    call = replace(of.turns[0].calls[0], recorded_result="locker 4711")
    of = replace(of, turns=(replace(of.turns[0], calls=(call,)), *of.turns[1:]))

    assert found(task(of), says("Try locker 4711.")).appeared == 1


def confirming():
    of = script(
        "Shall I?", [gold("checkout", book_id="b", days=3, confirm=True)], "Done."
    )
    return task(of, executable=part(confirmed=(1,)))


def test_claimed_confirmation_before_it_was_given_is_seen():
    early = calls(made("checkout", book_id="b", days=3, confirm=True))
    result = found(confirming(), early, evidence=Evidence())

    assert [(t.kind, t.values, t.appeared) for t in result.by_template] == [
        ("confirmation", 1, 1)
    ]
    assert result.by_kind[-1].appeared == 1


def test_claimed_confirmation_is_kept_out_of_the_totals():
    early = calls(made("checkout", book_id="b", days=3, confirm=True))
    result = found(confirming(), early, evidence=Evidence())

    assert (result.episodes, counts(result), result.sightings) == (0, (0, 0, 0, 0), ())


def test_call_without_the_claim_is_not_seen():
    early = calls(made("checkout", book_id="b", days=3, confirm=False))

    assert found(confirming(), early, evidence=Evidence()).by_kind[-1].appeared == 0


def test_task_without_bindings_and_results_withholds_nothing():
    result = found(task(script("Hello.")), says(SLOT))

    assert (result.episodes, counts(result)) == (0, (0, 0, 0, 0))


def test_unanswered_episode_is_not_watched():
    silent = Answer(text=None, call_status="timeout", wire_class="transport_retryable")

    assert found(asking(), silent).episodes == 0


def test_every_sighting_is_counted_and_the_first_are_named():
    tally = PrematureTally(DecoyPool())
    for trial in range(MOST_SIGHTINGS + 5):
        tally.add(asking(), episode(asking(), says(SLOT), trial=trial))
    result = tally.result()

    assert (result.appeared, result.episodes_with_sightings) == (25, 25)
    assert len(result.sightings) == MOST_SIGHTINGS


@pytest.mark.parametrize(
    "value", ["M-1", "2026-08-03", "Dune Messiah", 100, 12.5, "a1b", -250]
)
def test_value_that_counts(value):
    assert countable(value)


@pytest.mark.parametrize(
    "value", [True, None, 7, 42, 1.5, "b1", "available", "of it", "", [], {}]
)
def test_value_that_does_not_count(value):
    assert not countable(value)


@given(st.from_regex(r"[A-Z]{1,3}-[0-9]{3,6}", fullmatch=True))
def test_follower_of_the_script_is_never_seen(value):
    spec = asking(value)
    result = found(
        spec,
        says("Which member?"),
        calls(made("status", book_id=value)),
        says(f"{value} is done."),
    )

    assert (result.values, result.appeared) == (1, 0)
