"""Removing what pack code left behind."""

import os

from oracle_workers.folders import remove_tree


def test_missing_folder_is_no_error(tmp_path):
    remove_tree(str(tmp_path / "absent"))


def test_deep_tree_is_removed(tmp_path):
    folder = tmp_path / "deep"
    folder.mkdir()
    here = os.open(folder, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)

    remove_tree(str(folder))

    assert not folder.exists()


def test_links_are_removed_and_not_followed(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("x")
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    for place in (folder, folder / "inner"):
        (place / "to_folder").symlink_to(kept)
        (place / "dangling").symlink_to("nowhere")

    remove_tree(str(folder))

    assert not folder.exists()
    assert (kept / "file").read_text() == "x"


def test_closed_folders_are_opened(tmp_path):
    folder = tmp_path / "folder"
    inner = folder / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "file").write_text("x")
    inner.chmod(0)
    (folder / "a").chmod(0)

    remove_tree(str(folder))

    assert not folder.exists()
