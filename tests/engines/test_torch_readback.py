"""Applied is what the configuration says where its processor was there."""

from dataclasses import fields

from harness.engines.protocol import UNKNOWN, Decoding
from harness.engines.torch_model import Effective
from harness.engines.torch_readback import applied_decoding, other_processors

CONFIG = {
    "max_new_tokens": 9,
    "do_sample": False,
    "num_beams": 1,
    "temperature": 0.7,
    "top_p": 0.4,
    "top_k": 50,
    "repetition_penalty": 1.3,
    "no_repeat_ngram_size": 2,
    "stop_strings": None,
}


def test_nothing_generated_is_unknown():
    settings = [each.name for each in fields(Decoding)]

    assert applied_decoding(None, None) == dict.fromkeys(settings, UNKNOWN)
    assert other_processors(None) == UNKNOWN


def test_every_setting_of_a_decoding_is_told():
    found = applied_decoding(Effective(CONFIG, ()), 5)

    assert found.keys() == {each.name for each in fields(Decoding)}


def test_a_setting_without_its_processor_was_not_applied():
    found = applied_decoding(Effective(CONFIG, ()), 5)

    assert (found["top_p"], found["top_k"]) == (1.0, None)
    assert (found["repetition_penalty"], found["no_repeat_ngram_size"]) == (1.0, 0)
    assert (found["temperature"], found["greedy"], found["seed"]) == (0.0, True, 5)


def test_a_setting_with_its_processor_was_applied():
    processors = (
        "RepetitionPenaltyLogitsProcessor",
        "NoRepeatNGramLogitsProcessor",
        "TopKLogitsWarper",
        "TopPLogitsWarper",
    )
    sampled = CONFIG | {"do_sample": True, "stop_strings": ["END"]}

    found = applied_decoding(Effective(sampled, processors), None)

    assert (found["top_p"], found["top_k"]) == (0.4, 50)
    assert (found["repetition_penalty"], found["no_repeat_ngram_size"]) == (1.3, 2)
    assert (found["temperature"], found["greedy"]) == (0.7, False)
    assert found["stop"] == ["END"]


def test_processors_beyond_the_settings_are_named():
    processors = ("SuppressTokensLogitsProcessor", "TopKLogitsWarper")

    assert other_processors(Effective(CONFIG, processors)) == [
        "SuppressTokensLogitsProcessor"
    ]
