"""llama.cpp's own HTTP server with a GGUF file, in full precision, on a given port.

Usage: python llama_server.py PORT MODEL.gguf. Ends when it is killed.
"""

import signal
import sys

import xllamacpp


def main(port, model):
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_parallel = 1
    params.n_ctx = 4096
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    # Else keys and values are rounded to half precision, and answers may differ.
    full = xllamacpp.ggml_type.GGML_TYPE_F32
    params.cache_type_k = params.cache_type_v = full
    params.flash_attn_type = (
        xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    )
    # A prompt that is partly known already is computed in other steps.
    params.cache_prompt = False
    params.hostnames = ["127.0.0.1"]
    params.port = int(port)
    params.use_jinja = True
    server = xllamacpp.Server(params)
    sys.stdout.write(f"listening on {server.listening_address}\n")
    sys.stdout.flush()
    signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
