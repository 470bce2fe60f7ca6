"""`fairtrial publish` and `fairtrial pack` as a user meets them."""

import json

import pytest

from harness.cli.main import main
from tests.benchmark.shop import ASSERTIONS, purchase, template, write_pack

FAILING = ASSERTIONS.replace("assert state", "assert not state")


@pytest.mark.slow
def test_publish_writes_a_benchmark_and_says_so(tmp_path, capsys):
    output = tmp_path / "benchmark"
    pack = write_pack(tmp_path / "pack", purchase())

    status = main(["publish", str(pack), "--output", str(output)])

    captured = capsys.readouterr()
    assert status == 0
    assert captured.out.startswith("3 tasks published, tier gold\n")
    assert "gold tasks" in captured.err
    assert (output / "run_manifest.json").is_file()


@pytest.mark.slow
def test_publish_that_is_not_gold_exits_2_and_keeps_the_benchmark(tmp_path, capsys):
    source = ASSERTIONS + (
        "\n\ndef assert_lamp(*, task, **kwargs):\n"
        "    assert task['slots']['item_id'] == 'I-1'\n"
    )
    made = template(template_id="lamp", success_assertions=["assert_lamp"])
    pack = write_pack(tmp_path / "pack", purchase(), made, assertions=source)
    output = tmp_path / "benchmark"

    status = main(["publish", str(pack), "--output", str(output), "--json"])

    summary = json.loads(capsys.readouterr().out)
    assert status == 2
    assert summary["gold_ineligibility_reasons"] == ["gold_assertions.failed"]
    assert (summary["rows"], summary["raw_rows"]) == (4, 6)
    assert (output / "run_manifest.json").is_file()


@pytest.mark.slow
def test_publish_takes_fewer_variants_where_episodes_cost_money(tmp_path, capsys):
    pack = write_pack(tmp_path / "pack", purchase())
    output = tmp_path / "benchmark"

    status = main(
        ["publish", str(pack), "--output", str(output), "--max-variants", "2"]
    )

    assert status == 0
    assert capsys.readouterr().out.startswith("2 tasks published")


@pytest.mark.parametrize("count", ["0", "-1", "257", "two", ""])
def test_a_count_of_variants_out_of_range_exits_2(count, tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["publish", "library", "--output", str(tmp_path), "--max-variants", count])

    assert "whole number from 1 to 256" in capsys.readouterr().err


def test_publish_over_an_existing_folder_exits_2(tmp_path, capsys):
    status = main(["publish", "library", "--output", str(tmp_path)])

    assert status == 2
    assert "eval_output_exists" in capsys.readouterr().err


def test_publish_of_a_broken_pack_shows_every_problem(tmp_path, capsys):
    pack = write_pack(tmp_path / "pack", template(turn_policy="odd", colour="red"))

    status = main(["publish", str(pack), "--output", str(tmp_path / "out")])

    error = capsys.readouterr().err
    assert status == 2
    assert "unknown turn policy" in error
    assert "unknown key 'colour'" in error
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_check_lists_every_check(tmp_path, capsys):
    status = main(["pack", "check", str(write_pack(tmp_path / "pack", purchase()))])

    out = capsys.readouterr().out
    assert status == 0
    assert out.startswith("shop 1.0: gold\n")
    assert "passed   state_bleed" in out


@pytest.mark.slow
def test_check_of_a_pack_without_sound_tasks_says_why(tmp_path, capsys):
    pack = write_pack(tmp_path / "pack", purchase(), assertions=FAILING)

    status = main(["pack", "check", str(pack), "--json"])

    report = json.loads(capsys.readouterr().out)
    assert status == 2
    assert report["gold_eligible"] is False
    assert report["publishing_refused"]["code"] == "pack_invalid"


@pytest.mark.slow
def test_init_writes_a_pack_that_is_gold(tmp_path, capsys):
    folder = tmp_path / "my shop"

    assert main(["pack", "init", str(folder)]) == 0
    assert main(["pack", "check", str(folder)]) == 0

    assert "my-shop 1.0.0: gold" in capsys.readouterr().out


def test_init_never_overwrites(tmp_path, capsys):
    status = main(["pack", "init", str(tmp_path)])

    assert status == 2
    assert "eval_output_exists" in capsys.readouterr().err


@pytest.mark.slow
def test_what_a_pack_raises_commands_no_terminal(tmp_path, capsys):
    pack = tmp_path / "pack"
    main(["pack", "init", str(pack)])
    with (pack / "backend.py").open("a") as backend:
        backend.write("raise RuntimeError('\\x1b[2J\\x1b]0;title\\x07')\n")
    capsys.readouterr()

    main(["pack", "check", str(pack)])

    shown = capsys.readouterr()
    assert "\\u{1b}[2J\\u{1b}]0;title\\u{7}" in shown.out
    assert not {"\x1b", "\x07"} & {*shown.out, *shown.err}
