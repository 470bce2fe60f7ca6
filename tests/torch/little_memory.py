"""Answer rows in a process that may not take much more memory than it has now.

Usage: python little_memory.py CHECKPOINT EXTRA_BYTES. Prints a JSON object: for each
row its failure or None, and the sizes of the batches that were answered.
"""

import json
import resource
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import anyio

from harness.engines.torch_local import TorchLocal
from tests.torch.asking import GREEDY, row, settings

ASKED = [row(f"short-{n}", "What? " * 100) for n in range(8)]
TOO_LONG = row("too-long", "What? " * 650)


def _leave_only(extra_bytes):
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + extra_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


async def main(checkpoint, extra_bytes):
    found = {}

    def take(generation):
        found[generation.row_id] = generation

    async with TorchLocal(settings(checkpoint, batch_size=8)) as engine:
        decoding = replace(GREEDY, max_tokens=2)
        await engine.generate([row("warm", "What?")], decoding, take)
        _leave_only(extra_bytes)
        await engine.generate([*ASKED, TOO_LONG], decoding, take)
    del found["warm"]
    sizes = Counter(each.elapsed_s for each in found.values() if not each.failure)
    report = {
        "failures": {row_id: each.failure for row_id, each in found.items()},
        "batches": sorted(sizes.values()),
    }
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]))
