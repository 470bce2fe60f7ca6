"""Print one set-up command of README.md: the code block after its marker.

A marker is the line `<!-- command: NAME -->`; the next fenced block holds the
command. Both the CI and a test read the README through this file, so what people
copy and what gets checked cannot drift apart.
"""

import re
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"
_COMMAND = re.compile(
    r"^<!-- command: (?P<name>[a-z]+) -->\n+```sh\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def commands(text: str) -> dict[str, str]:
    """Return the marked commands of a README's text by name."""
    return {match["name"]: match["text"].strip() for match in _COMMAND.finditer(text)}


if __name__ == "__main__":
    found = commands(README.read_text(encoding="utf-8"))
    if len(sys.argv) != 2 or sys.argv[1] not in found:
        sys.exit(f"usage: readme_command.py NAME, NAME one of {sorted(found)}")
    print(found[sys.argv[1]])
