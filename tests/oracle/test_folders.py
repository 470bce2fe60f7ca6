"""Scratch folders: what a killed evaluator leaves goes at the next start, no other."""

import signal
import subprocess
import sys

import anyio

from harness.oracle.folders import PREFIX, Root, remove_abandoned


def settle(monkeypatch):
    """Let every folder count as old: change times cannot be set."""
    monkeypatch.setattr("harness.oracle.folders._SETTLED_S", -1.0)


def left(place):
    return sorted(path.name for path in place.iterdir())


def test_folder_of_a_killed_evaluator_is_removed(tmp_path, monkeypatch):
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from harness.oracle.folders import Root, make\n"
        "root = Root(Path(sys.argv[1]))\n"
        "(make(root.path, 'host-1') / 'rest').write_text('x')\n"
        "print('made', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as evaluator:
        assert evaluator.stdout.readline() == b"made\n"
        settle(monkeypatch)

        remove_abandoned(tmp_path)
        while_alive = left(tmp_path)
        evaluator.send_signal(signal.SIGKILL)
        evaluator.wait()
        remove_abandoned(tmp_path)

    assert len(while_alive) == 1
    assert left(tmp_path) == []


def test_folder_in_use_stays(tmp_path, monkeypatch):
    settle(monkeypatch)

    first = Root(tmp_path)
    second = Root(tmp_path)

    assert left(tmp_path) == sorted([first.path.name, second.path.name])


def test_young_folder_stays(tmp_path):
    (tmp_path / f"{PREFIX}new").mkdir()

    remove_abandoned(tmp_path)

    assert left(tmp_path) == [f"{PREFIX}new"]


def test_link_and_foreign_names_stay(tmp_path, monkeypatch):
    settle(monkeypatch)
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis").write_text("x")
    (tmp_path / f"{PREFIX}link").symlink_to(precious)

    remove_abandoned(tmp_path)

    assert (precious / "thesis").exists()
    assert left(tmp_path) == [f"{PREFIX}link", "precious"]


def test_place_that_is_not_there_is_no_trouble(tmp_path):
    remove_abandoned(tmp_path / "nowhere")


def test_root_is_gone_after_its_removal(tmp_path):
    root = Root(tmp_path)
    (root.path / "rest").write_text("x")

    async def twice():
        await root.remove()
        await root.remove()

    anyio.run(twice)

    assert left(tmp_path) == []
