"""`fairtrial --help` is one screen, cheap, and names every command."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.main import COMMANDS, main

HEAVY = ("pyarrow", "duckdb", "httpx", "pydantic", "anyio", "yaml", "multiprocess")


@pytest.fixture
def help_text(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as done:
        main(["--help"])

    assert done.value.code == 0
    return capsys.readouterr().out


def test_help_fits_one_screen(help_text):
    lines = help_text.splitlines()

    assert len(lines) <= 30
    assert max(map(len, lines)) <= 80


def test_help_names_every_command(help_text):
    words = help_text.split()

    assert [name for name in COMMANDS if name not in words] == []


def test_every_command_has_its_module():
    folder = Path(sys.modules["harness.cli.main"].__file__).parent

    missing = [
        name
        for name, command in COMMANDS.items()
        if not (folder / f"{command.module}.py").is_file()
    ]

    assert missing == []


def test_help_loads_nothing_heavy():
    program = (
        "import sys\nfrom harness.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert set(HEAVY) & set(done.stderr.split()) == set()


@pytest.mark.parametrize("words", [["no-such-command"], ["--no-such-option"]])
def test_usage_error_has_code_and_remedy(words, capsys):
    with pytest.raises(SystemExit) as done:
        main(words)

    message = capsys.readouterr().err
    assert done.value.code == 2
    assert message.startswith("eval_cli_invalid: ")
    assert "--help" in message


def test_no_command_shows_the_help_and_is_a_usage_error(capsys):
    status = main([])

    assert status == 2
    assert "COMMAND" in capsys.readouterr().out
