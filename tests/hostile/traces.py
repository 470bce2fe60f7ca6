"""The search for a planted key: in files, tables and processes, in any spelling."""

import base64
import gzip
import json
import os
from contextlib import suppress
from urllib.parse import quote

from harness.benchmark.tables import read_rows
from harness.evidence.task_table import read_task_rows
from oracle_workers.processes import children

SHORTEST_PART = 16
"""So many characters of the key in a row count as the key."""
_READ_AT_ONCE = 1 << 24


def spellings(key):
    """Return the bytes that show a key, plain, escaped or encoded."""
    data = key.encode()
    # Base64 looks different at each of three places in a group; the ends vary.
    shifted = [base64.b64encode(b"x" * shift + data)[4:-4] for shift in range(3)]
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in key)
    halves = [data[:SHORTEST_PART], data[-SHORTEST_PART:]]
    return [
        *halves,
        *shifted,
        data.hex().encode(),
        escaped.encode(),
        data[::-1],
        quote(key, safe="").encode(),
        key.encode("utf-16-le"),
    ]


def shows(data, key):
    """Tell whether bytes show the key."""
    return any(spelling in data for spelling in spellings(key))


def traces_in(folder, key):
    """Return every file below a folder whose name or content shows the key."""
    found = []
    for path in sorted(folder.rglob("*")):
        if shows(os.fsencode(path.name), key):
            found.append(f"name of {path}")
        if path.is_file() and any(shows(data, key) for data in _contents(path)):
            found.append(str(path))
    return found


def _contents(path):
    data = path.read_bytes()
    yield data
    if data[:2] == b"\x1f\x8b":
        yield gzip.decompress(data)
    if path.name == "eval_task_results.parquet":
        rows = [row.semantic_payload() for row in read_task_rows(path)]
        yield json.dumps(rows, ensure_ascii=False).encode()
    elif path.suffix == ".parquet":
        yield json.dumps(list(read_rows(path)), ensure_ascii=False).encode()


def processes_below(pid):
    """Return all processes below one."""
    found, pending = [], [pid]
    while pending:
        below = children(pending.pop())
        found += below
        pending += below
    return found


class Watch:
    """What the kernel shows of the processes below a command, looked at in between."""

    def __init__(self, key):
        self.key = key
        self.command = 0
        self.seen = set()
        """Process ids that were looked at."""
        self.memories = 0
        """How many memories could be searched."""
        self.traces = []

    def look(self):
        """Search everything below the command, and the command's own words."""
        self._search(self.command, ("cmdline",))
        for pid in processes_below(self.command):
            self._search(pid, ("cmdline", "environ", "comm", "status"))
            if pid not in self.seen:
                self._search_memory(pid)
                self.seen.add(pid)

    def _search(self, pid, names):
        for name in names:
            with suppress(OSError), open(f"/proc/{pid}/{name}", "rb") as stream:
                if shows(stream.read(), self.key):
                    self.traces.append(f"{name} of a process: {pid}")

    def _search_memory(self, pid):
        with (
            suppress(OSError),
            open(f"/proc/{pid}/maps") as maps,
            open(f"/proc/{pid}/mem", "rb", 0) as memory,
        ):
            self.memories += 1
            for line in maps:
                place, rights = line.split()[:2]
                start, end = (int(side, 16) for side in place.split("-"))
                if rights.startswith("rw") and end - start < _READ_AT_ONCE:
                    memory.seek(start)
                    if self.key.encode() in memory.read(end - start):
                        self.traces.append(f"memory of a process: {pid} {line}")
