"""A checkpoint of half a megabyte: random weights, a real tokenizer, a template.

The tokenizer is a byte-level BPE trained on a few lines here, the model two layers of a
known architecture. Nothing is downloaded, and one seed gives one model.
"""

import json
from pathlib import Path

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LINES = [
    json.dumps({"tool": f"tool_{i}", "args": {"city": "Paris", "n": i}})
    for i in range(100)
] + ["You answer in JSON.", "What is the weather in Paris?", "Set an alarm."] * 10
CONTEXT = 4096


def build(folder: Path, *, kind: str = "qwen2", seed: int = 0, **changes) -> Path:
    """Write a checkpoint; `changes` go into the model's configuration."""
    import torch
    import transformers

    tokenizer = _tokenizer(transformers)
    sizes = {
        "vocab_size": len(tokenizer),
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": CONTEXT,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "tie_word_embeddings": False,
        "initializer_range": 0.2,
    } | changes
    config_class, model_class = {
        "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM),
        "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
    }[kind]
    torch.manual_seed(seed)
    model = model_class(config_class(**sizes)).eval()
    with torch.no_grad():
        # Servers take special tokens out of a text, so the model never chooses one.
        model.lm_head.weight[: len(SPECIAL)] = 0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _tokenizer(transformers):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=512,
        special_tokens=SPECIAL,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    trained.train_from_iterator(LINES, trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=trained,
        bos_token="<|endoftext|>",
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def reference(folder: Path, messages, max_tokens: int):
    """Return the greedy tokens of one prompt by a plain loop over the forward pass."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32
    ).eval()
    text = tokenizer.apply_chat_template(
        messages, tokenize=False, add_generation_prompt=True
    )
    tokens = tokenizer(text, add_special_tokens=False)["input_ids"]
    prompt = len(tokens)
    with torch.inference_mode():
        while len(tokens) < prompt + max_tokens:
            logits = model(torch.tensor([tokens]), use_cache=False).logits[0, -1]
            tokens.append(int(logits.argmax()))
            if tokens[-1] == tokenizer.eos_token_id:
                break
    return tokens[prompt:]


def train(folder: Path, pairs, output: Path, *, steps: int = 60) -> Path:
    """Write a copy of a checkpoint that has learned to answer messages with a text."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32
    )
    batch = _examples(tokenizer, pairs)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(steps):
        model(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(output)
    tokenizer.save_pretrained(output)
    return output


def _examples(tokenizer, pairs):
    """Return tokens, mask and labels of all pairs; only answers have labels."""
    import torch

    rows = []
    for messages, answer in pairs:
        prompt = tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        asked = tokenizer(prompt, add_special_tokens=False)["input_ids"]
        answered = tokenizer(answer, add_special_tokens=False)["input_ids"]
        answered.append(tokenizer.eos_token_id)
        rows.append((asked, answered))
    width = max(len(asked) + len(answered) for asked, answered in rows)
    filled = [(*row, width - len(row[0]) - len(row[1])) for row in rows]
    pad = tokenizer.pad_token_id
    return {
        "input_ids": torch.tensor([a + b + [pad] * n for a, b, n in filled]),
        "attention_mask": torch.tensor(
            [[1] * (width - n) + [0] * n for *_, n in filled]
        ),
        "labels": torch.tensor(
            [[-100] * len(a) + b + [-100] * n for a, b, n in filled]
        ),
    }
