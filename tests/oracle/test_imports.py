"""What is imported of a pack: its sources as they are, nothing that lies beside."""

import importlib.util
import marshal
import struct
from pathlib import Path

import pytest

from tests.oracle.zoo import ASSERTIONS, BACKEND, write_pack

POISON = "raise RuntimeError('compiled code was run')"


def poison(source):
    """Leave compiled code beside a source, as an earlier run could have left it."""
    facts = source.stat()
    head = importlib.util.MAGIC_NUMBER + struct.pack(
        "<III", 0, int(facts.st_mtime) & 0xFFFFFFFF, facts.st_size
    )
    target = Path(importlib.util.cache_from_source(str(source)))
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(head + marshal.dumps(compile(POISON, str(source), "exec")))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["shared", "per_task"])
def test_compiled_code_beside_a_module_is_never_run(zoo, mode):
    pack = write_pack(
        zoo.folder,
        backend="import shelf\nimport parts.inner\n" + BACKEND,
        assertions=ASSERTIONS,
    )
    (pack.root / "parts").mkdir()
    for name in ("shelf.py", "parts/__init__.py", "parts/inner.py"):
        (pack.root / name).write_text("PLACE = __file__\n")
    for source in pack.root.rglob("*.py"):
        poison(source)
    code = "result = {'seen': sorted([shelf.PLACE, parts.inner.PLACE])}"

    seen = zoo.python(code, pack=pack, mode=mode)["seen"]

    assert seen == [
        str(pack.root / "parts" / "inner.py"),
        str(pack.root / "shelf.py"),
    ]
