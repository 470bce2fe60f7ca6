"""The tiny Qwen2 checkpoint as a GGUF file, every number kept as it is.

Names are those that llama.cpp reads; tokens, merges and template come from the
checkpoint's own tokenizer.
"""

import json
from pathlib import Path

_LAYER = {
    "input_layernorm.weight": "attn_norm.weight",
    "self_attn.q_proj.weight": "attn_q.weight",
    "self_attn.q_proj.bias": "attn_q.bias",
    "self_attn.k_proj.weight": "attn_k.weight",
    "self_attn.k_proj.bias": "attn_k.bias",
    "self_attn.v_proj.weight": "attn_v.weight",
    "self_attn.v_proj.bias": "attn_v.bias",
    "self_attn.o_proj.weight": "attn_output.weight",
    "post_attention_layernorm.weight": "ffn_norm.weight",
    "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight",
}
_OTHER = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


def convert(checkpoint: Path, path: Path) -> Path:
    """Write the checkpoint as one GGUF file and return its path."""
    import gguf
    from safetensors.numpy import load_file

    config = json.loads((checkpoint / "config.json").read_text())
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    _add_tokenizer(writer, gguf, checkpoint)
    for name, numbers in load_file(checkpoint / "model.safetensors").items():
        writer.add_tensor(_name(name), numbers)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_tokenizer(writer, gguf, checkpoint):
    declared = json.loads((checkpoint / "tokenizer.json").read_text())
    special = {each["id"] for each in declared["added_tokens"]}
    vocabulary = declared["model"]["vocab"]
    tokens = sorted(vocabulary, key=vocabulary.get)
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(
        [control if n in special else normal for n in range(len(tokens))]
    )
    writer.add_token_merges([" ".join(pair) for pair in declared["model"]["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_chat_template((checkpoint / "chat_template.jinja").read_text())


def _name(name):
    if name in _OTHER:
        return _OTHER[name]
    _, _, number, inner = name.split(".", 3)
    return f"blk.{number}.{_LAYER[inner]}"
