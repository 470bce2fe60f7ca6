"""`torch_local` decodes greedily, says what it applied, and fails row by row."""

import json
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from harness.causes import exit_status
from harness.engines.protocol import UNKNOWN
from harness.engines.torch_local import TorchLocal
from harness.errors import EngineError, SourceError
from harness.predictions.digests import file_sha256
from tests.torch.asking import GREEDY, answer, row, rows, settings, torch_answers
from tests.torch.tiny_model import CONTEXT, build, reference

ROOT = Path(__file__).parent.parent.parent


def _texts(found):
    return {row_id: generation.text for row_id, generation in found.items()}


def _decoded(checkpoint, tokens):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    return tokenizer.decode(tokens, clean_up_tokenization_spaces=False)


@pytest.fixture
def copied(checkpoint, tmp_path):
    """A checkpoint that a test may change."""
    return shutil.copytree(checkpoint, tmp_path / "checkpoint")


def _declare(checkpoint, **generation):
    path = checkpoint / "generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | generation))


def test_answers_are_the_argmax_of_every_step_whatever_the_batch(checkpoint):
    found = torch_answers(checkpoint, rows())

    assert _texts(found) == {
        each.row_id: _decoded(
            checkpoint,
            reference(checkpoint, [dict(m) for m in each.messages], GREEDY.max_tokens),
        )
        for each in rows()
    }


def test_a_row_gets_one_answer_in_any_batch_size(checkpoint):
    alone = torch_answers(checkpoint, rows(), batch_size=1)
    together = torch_answers(checkpoint, rows(), batch_size=16)

    assert _texts(alone) == _texts(together)


def test_rows_come_by_token_length_and_then_by_id(checkpoint):
    asked = [row("b", "What?"), row("c", "What? What?"), row("a", "What?")]

    assert list(torch_answers(checkpoint, asked, batch_size=1)) == ["a", "b", "c"]


def test_an_answer_that_is_cut_says_length_and_counts_its_tokens(checkpoint):
    (found,) = torch_answers(checkpoint, rows()[:1]).values()

    assert (found.finish_reason, found.failure) == ("length", None)
    assert found.generated_tokens == GREEDY.max_tokens
    assert found.elapsed_s > 0
    assert found.conditions == {"device": "cpu", "compute_dtype": "float32"}


def test_prompt_tokens_are_those_of_the_chat_template(checkpoint):
    from transformers import AutoTokenizer

    asked = row("one", "What?", system="You answer in JSON.")
    (found,) = torch_answers(checkpoint, [asked]).values()

    rendered = AutoTokenizer.from_pretrained(checkpoint).apply_chat_template(
        [dict(message) for message in asked.messages],
        add_generation_prompt=True,
        return_dict=True,
    )
    assert found.prompt_tokens == len(rendered["input_ids"])


def test_every_end_token_of_the_checkpoint_ends_an_answer(checkpoint, copied):
    asked = rows()[0]
    tokens = reference(checkpoint, [dict(m) for m in asked.messages], 24)
    position = next(n for n in range(4, 24) if tokens[n] not in tokens[:n])
    _declare(copied, eos_token_id=[2, tokens[position]])

    (found,) = torch_answers(copied, [asked]).values()

    assert found.finish_reason == "stop"
    assert found.generated_tokens == position + 1
    assert found.text == _decoded(checkpoint, tokens[:position])


def test_an_end_token_at_the_cap_is_an_end(checkpoint, copied):
    asked = rows()[0]
    tokens = reference(checkpoint, [dict(m) for m in asked.messages], 24)
    position = next(n for n in range(4, 24) if tokens[n] not in tokens[:n])
    _declare(copied, eos_token_id=[tokens[position]])

    decoding = replace(GREEDY, max_tokens=position + 1)
    (found,) = torch_answers(copied, [asked], decoding).values()

    assert (found.finish_reason, found.generated_tokens) == ("stop", position + 1)


def test_text_keeps_special_tokens_and_outer_spaces_and_drops_the_closing_end(
    checkpoint,
):
    async def decoded():
        async with TorchLocal(settings(checkpoint)) as engine:
            tokens = engine.model.tokenizer("  <|im_start|> a <|im_end|> b  ")
            return engine.model.decode([*tokens["input_ids"], 2])

    assert anyio.run(decoded) == "  <|im_start|> a <|im_end|> b  "


def test_sampling_that_the_checkpoint_asks_for_changes_nothing(checkpoint, copied):
    _declare(
        copied,
        do_sample=True,
        temperature=0.7,
        top_k=3,
        top_p=0.5,
        repetition_penalty=1.8,
        no_repeat_ngram_size=2,
        num_beams=3,
        max_new_tokens=2,
        min_new_tokens=30,
        suppress_tokens=[10, 11, 12],
        temperature_last_layer=None,
    )
    plain = TorchLocal(settings(checkpoint))
    urged = TorchLocal(settings(copied))

    assert _texts(answer(plain, rows())) == _texts(answer(urged, rows()))
    assert plain.applied() == urged.applied()


def test_applied_is_unknown_until_something_was_generated(checkpoint):
    engine = TorchLocal(settings(checkpoint))

    assert set(engine.applied().values()) == {UNKNOWN}


def test_applied_is_read_back_from_what_generate_used(checkpoint):
    engine = TorchLocal(settings(checkpoint))
    answer(engine, rows()[:1], replace(GREEDY, seed=11, repetition_penalty=1.25))

    assert engine.applied() == {
        "max_tokens": 24,
        "temperature": 0.0,
        "top_p": 1.0,
        "top_k": None,
        "stop": [],
        "seed": 11,
        "greedy": True,
        "num_beams": 1,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "repetition_penalty": 1.25,
        "no_repeat_ngram_size": 0,
    }
    assert engine.conditions()["other_processors"] == []


@pytest.mark.parametrize(
    "setting", [{"repetition_penalty": 1.9}, {"no_repeat_ngram_size": 1}]
)
def test_settings_that_look_back_at_tokens_never_see_padding(checkpoint, setting):
    decoding = replace(GREEDY, **setting)

    together = torch_answers(checkpoint, rows(), decoding, batch_size=16)
    alone = torch_answers(checkpoint, rows(), decoding, batch_size=1)

    assert _texts(together) == _texts(alone)
    assert _texts(together) != _texts(torch_answers(checkpoint, rows()))


def test_a_prompt_and_cap_beyond_the_context_fail_that_row_only(checkpoint):
    asked = [row("long", "What? " * CONTEXT), row("short", "What?")]

    found = torch_answers(checkpoint, asked)

    assert found["long"].failure == "context_overflow"
    assert (found["long"].text, found["long"].generated_tokens) == (None, 0)
    assert found["long"].prompt_tokens > CONTEXT
    assert found["short"].failure is None


def test_a_prompt_that_just_fits_is_answered(checkpoint):
    (short,) = torch_answers(checkpoint, [row("a", "What?")]).values()
    room = CONTEXT - short.prompt_tokens

    fits = replace(GREEDY, max_tokens=room)
    over = replace(GREEDY, max_tokens=room + 1)

    assert torch_answers(checkpoint, [row("a", "What?")], over)["a"].failure
    engine = TorchLocal(settings(checkpoint))

    async def not_refused():
        async with engine:
            return engine._overflows([0] * short.prompt_tokens, fits)

    assert not anyio.run(not_refused)


def test_a_plain_prompt_is_taken_as_it_stands(checkpoint):
    from transformers import AutoTokenizer

    text = "<|im_start|>user\nWhat?"
    found = torch_answers(checkpoint, [row("a", text)], chat_template=False)

    tokens = AutoTokenizer.from_pretrained(checkpoint)(text)["input_ids"]
    assert found["a"].prompt_tokens == len(tokens)


def test_a_plain_prompt_has_no_system_message(checkpoint):
    asked = row("a", "What?", system="You answer in JSON.")

    with pytest.raises(EngineError, match="system, user"):
        torch_answers(checkpoint, [asked], chat_template=False)


def test_conditions_name_versions_device_types_and_template(checkpoint):
    engine = TorchLocal(settings(checkpoint, dtype="bfloat16"))

    async def observed():
        async with engine:
            return dict(engine.conditions())

    found = anyio.run(observed)

    assert found["engine"] == "torch_local"
    assert found["versions"].keys() >= {
        *("python", "torch", "transformers", "numpy", "safetensors", "tokenizers")
    }
    assert (found["device"], found["device_name"]) == ("cpu", None)
    assert (found["weight_dtype"], found["compute_dtype"]) == ("bfloat16",) * 2
    assert found["quantization"] is None
    assert found["numerics"]["attention"] == "sdpa"
    assert found["end_tokens"] == [2]
    assert len(found["chat_template_sha256"]) == 64
    assert found["chat_template_reads_clock"] is False


def test_measurements_have_values_and_words(checkpoint):
    async def measured():
        async with TorchLocal(settings(checkpoint)) as engine:
            return await engine.measure(rows(), GREEDY)

    found = {each.name: each for each in anyio.run(measured)}

    assert list(found) == [
        *("first_token_cold_s", "first_token_warm_s", "tokens_per_second"),
        *("peak_memory_bytes", "load_s"),
    ]
    assert all(each.value > 0 for each in found.values())
    assert "prefill included" in found["tokens_per_second"].boundary


def test_a_batch_that_is_asked_to_stop_ends_at_its_next_token(checkpoint):
    decoding = replace(GREEDY, max_tokens=CONTEXT - 60)
    stop = threading.Event()
    stop.set()

    async def stopped():
        async with TorchLocal(settings(checkpoint)) as engine:
            prompt = engine.model.prompt_tokens(row("a", "What?"))
            return engine.model.continuations([prompt], decoding, stop)

    assert [len(tokens) for tokens in anyio.run(stopped)] == [1]


def test_an_interrupted_batch_hands_nothing_on(checkpoint):
    decoding = replace(GREEDY, max_tokens=CONTEXT - 60)
    taken = []

    async def interrupted():
        async with TorchLocal(settings(checkpoint)) as engine:
            with anyio.move_on_after(0.1) as scope:
                await engine.generate([row("a", "What?")], decoding, taken.append)
            return scope.cancelled_caught

    assert anyio.run(interrupted)
    assert taken == []


def _declared(checkpoint):
    return {
        path.name: file_sha256(path) for path in checkpoint.iterdir() if path.is_file()
    }


def test_a_checkpoint_with_its_declared_hashes_is_loaded(checkpoint):
    declared = _declared(checkpoint)
    engine = TorchLocal(settings(checkpoint, checkpoint_sha256=declared))

    assert answer(engine, rows()[:1])
    assert engine.checkpoint_sha256 == declared


def test_hashes_of_an_undeclared_checkpoint_are_taken(checkpoint):
    engine = TorchLocal(settings(checkpoint))
    answer(engine, [])

    assert engine.checkpoint_sha256 == _declared(checkpoint)


def test_a_changed_file_is_refused(copied):
    declared = _declared(copied)
    _declare(copied, eos_token_id=5)

    with pytest.raises(SourceError) as caught:
        torch_answers(copied, rows(), checkpoint_sha256=declared)

    assert [v.where for v in caught.value.violations] == [
        str(copied / "generation_config.json")
    ]


def test_weights_in_a_pickle_are_refused(copied):
    import torch
    from safetensors.torch import load_file

    weights = copied / "model.safetensors"
    torch.save(load_file(weights), copied / "pytorch_model.bin")
    weights.unlink()

    with pytest.raises(EngineError) as caught:
        torch_answers(copied, rows())

    assert caught.value.code == "eval_engine_start_failed"


def test_a_weight_that_is_missing_is_never_drawn_at_random(copied):
    from safetensors.torch import load_file, save_file

    weights = load_file(copied / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, copied / "model.safetensors", {"format": "pt"})

    with pytest.raises(EngineError, match="lacks weights") as caught:
        torch_answers(copied, rows())

    assert "model.layers.1.mlp.up_proj.weight" in str(caught.value)


def test_a_tokenizer_without_a_template_is_refused(copied):
    (copied / "chat_template.jinja").unlink()

    with pytest.raises(EngineError, match="has no chat template") as caught:
        torch_answers(copied, rows())

    assert exit_status(caught.value.code) == 3


def test_a_template_that_refuses_a_prompt_ends_the_run(copied):
    (copied / "chat_template.jinja").write_text(
        "{{ raise_exception('roles must alternate') }}"
    )

    with pytest.raises(EngineError, match="roles must alternate") as caught:
        torch_answers(copied, rows())

    assert caught.value.code == "eval_engine_failed"


def test_a_device_that_is_not_there_is_refused(checkpoint):
    with pytest.raises(EngineError, match="the device is not there"):
        torch_answers(checkpoint, rows(), device="cuda:63")


def test_code_of_a_checkpoint_is_not_run(copied, tmp_path):
    config = copied / "config.json"
    declared = json.loads(config.read_text())
    declared["auto_map"] = {"AutoModelForCausalLM": "own.Model", "AutoConfig": "own.C"}
    declared["model_type"] = "of_its_own"
    config.write_text(json.dumps(declared))
    (copied / "own.py").write_text(
        f"from pathlib import Path\nPath({str(tmp_path / 'ran')!r}).touch()\n"
    )

    with pytest.raises(EngineError):
        torch_answers(copied, rows())

    assert not (tmp_path / "ran").exists()


def test_another_architecture_decodes_by_the_same_rule(tmp_path):
    llama = build(tmp_path, kind="llama", seed=3)
    found = torch_answers(llama, rows()[:2])

    assert _texts(found) == {
        each.row_id: _decoded(
            llama, reference(llama, [dict(m) for m in each.messages], 24)
        )
        for each in rows()[:2]
    }


def test_a_batch_beyond_memory_is_halved_and_a_row_beyond_it_fails_alone(tmp_path):
    # A wide layer holds much for each token: 0.1 MB here, and three times for a while.
    wide = build(tmp_path, num_hidden_layers=1, intermediate_size=1 << 15)
    done = subprocess.run(
        [sys.executable, "-m", "tests.torch.little_memory", str(wide), "250000000"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    failures = found["failures"]
    assert failures.pop("too-long") == "oom"
    assert set(failures.values()) == {None}
    assert sum(found["batches"]) == 8 > max(found["batches"])
