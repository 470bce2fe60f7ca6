"""What confined pack code may read is named once, by the outermost folders."""

from harness.oracle import paths
from tests.oracle.zoo import write_pack


def test_what_lies_below_a_readable_folder_is_not_named_again(tmp_path):
    pack = write_pack(tmp_path, fixtures="{}")

    readable = paths.readable(pack)

    assert str(pack.root) in readable
    assert str(pack.fixtures) not in readable
    assert not any(
        path.startswith(f"{other}/") for path in readable for other in readable
    )


def test_folder_that_only_begins_like_another_is_named(tmp_path):
    folders = [tmp_path / name for name in ("lib", "lib64", "lib/inner")]
    for folder in folders:
        folder.mkdir()

    found = paths._real([str(folder) for folder in folders])

    assert found == [str(folder.resolve()) for folder in folders[:2]]


def test_link_that_leads_elsewhere_keeps_its_target(tmp_path):
    inside, elsewhere = tmp_path / "inside", tmp_path / "elsewhere"
    inside.mkdir()
    elsewhere.mkdir()
    (inside / "link").symlink_to(elsewhere)

    found = paths._real([str(inside), str(inside / "link")])

    assert found == [str(inside.resolve()), str(elsewhere.resolve())]
