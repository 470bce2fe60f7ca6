"""The light SHA-256 is SHA-256, and it is light."""

import hashlib
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from oracle_workers.light_hash import sha256

ROOT = Path(__file__).parent.parent.parent
WHAT_A_HOST_HOLDS = (
    "import sys; sys.path.insert(0, sys.argv[1]); import oracle_workers.keeper; "
    "print(*sys.modules)"
)


@given(st.binary(max_size=300))
def test_digest_is_that_of_the_standard_library(content):
    assert sha256(content).hexdigest() == hashlib.sha256(content).hexdigest()


def test_host_of_a_pack_holds_nothing_that_its_workers_do_not_need():
    command = [sys.executable, "-I", "-S", "-c", WHAT_A_HOST_HOLDS, str(ROOT)]

    done = subprocess.run(command, capture_output=True, text=True, check=True)
    heavy = {"hashlib", "_hashlib", "ssl", "random", "platform", "subprocess"}

    assert heavy & set(done.stdout.split()) == set()
