"""Each engine refuses what it cannot apply, all of it at once and in words."""

import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

from harness.engines.decoding_rules import ENGINE_KINDS, RULES, refusals_of
from harness.engines.protocol import Decoding
from tests.engines.greedy import GREEDY

ROOT = Path(__file__).parent.parent.parent
EVERYTHING = Decoding(
    max_tokens=8,
    temperature=0.7,
    top_p=0.9,
    top_k=40,
    stop=("\n",),
    seed=7,
    greedy=False,
    num_beams=4,
    presence_penalty=0.5,
    frequency_penalty=0.5,
    repetition_penalty=1.1,
    no_repeat_ngram_size=3,
)


def _settings(engine, decoding):
    return [refusal.setting for refusal in refusals_of(engine, decoding)]


@pytest.mark.parametrize("engine", ENGINE_KINDS)
def test_plain_greedy_decoding_is_applied_by_every_engine(engine):
    assert refusals_of(engine, GREEDY) == ()


@pytest.mark.parametrize(
    ("engine", "refused"),
    [
        (
            "torch_local",
            [
                *("temperature", "top_p", "top_k", "stop", "greedy", "num_beams"),
                *("presence_penalty", "frequency_penalty"),
            ],
        ),
        (
            "chat_http",
            ["top_k", "num_beams", "repetition_penalty", "no_repeat_ngram_size"],
        ),
        ("vllm_server", ["num_beams", "no_repeat_ngram_size"]),
        ("vllm_offline", ["num_beams", "no_repeat_ngram_size"]),
    ],
)
def test_every_setting_that_an_engine_lacks_is_refused_at_once(engine, refused):
    assert _settings(engine, EVERYTHING) == refused


@pytest.mark.parametrize("engine", ["chat_http", "vllm_server", "vllm_offline"])
@pytest.mark.parametrize(("greedy", "temperature"), [(True, 0.5), (False, 0.0)])
def test_greedy_that_contradicts_the_temperature_is_refused(
    engine, greedy, temperature
):
    decoding = replace(GREEDY, greedy=greedy, temperature=temperature)

    assert _settings(engine, decoding) == ["greedy"]


def test_a_refusal_names_engine_setting_value_and_reason():
    (refusal,) = refusals_of("torch_local", replace(GREEDY, stop=("END",)))

    assert (refusal.engine, refusal.setting, refusal.requested) == (
        "torch_local",
        "stop",
        ["END"],
    )
    assert refusal.reason == (
        "only the end tokens of the checkpoint end a text; no stop text is matched; "
        "only [] is applied"
    )


def test_rules_are_about_settings_and_engines_that_exist():
    assert {rule.setting for rule in RULES} <= {each.name for each in fields(Decoding)}
    assert frozenset().union(*(rule.engines for rule in RULES)) == set(ENGINE_KINDS)


def test_no_engine_has_two_refusals_for_one_value():
    for engine in ENGINE_KINDS:
        settings = _settings(engine, EVERYTHING)

        assert len(settings) == len(set(settings))


def test_the_documentation_has_the_whole_table():
    page = (ROOT / "docs/reference/engines.md").read_text(encoding="utf-8")
    written = re.findall(r"^\| `([a-z_]+)` \| (`.+`) \| (.+) \| (.+) \|$", page, re.M)

    assert written == [
        (
            rule.setting,
            ", ".join(f"`{kind}`" for kind in ENGINE_KINDS if kind in rule.engines),
            rule.accepts,
            rule.reason,
        )
        for rule in RULES
    ]
