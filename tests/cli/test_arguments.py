"""A value that an option cannot have is refused in words, not in names of our code."""

import pytest

from harness.causes import EXIT_USAGE
from harness.cli.main import main


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["candidates", "serve", "--benchmark", "b", "--port", "22x"], "0 to 65535"),
        (["candidates", "serve", "--benchmark", "b", "--port", "99999"], "0 to 65535"),
        (["doctor", "--timeout-s", "soon"], "no time in seconds"),
        (["doctor", "--timeout-s", "nan"], "no time in seconds"),
        (["drill", "--episodes", "some"], "1 or more"),
        (["drill", "--episodes", "0"], "1 or more"),
        (["publish", "library", "--output", "b", "--max-variants", "x"], "from 1 to"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else None,
)
def test_value_is_refused_with_what_it_may_be(words, expected, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)

    message = capsys.readouterr().err
    assert ended.value.code == EXIT_USAGE
    assert expected in message
    assert "invalid _" not in message
