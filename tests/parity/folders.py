"""Which parity module reads which folder of `--fixtures DIR`."""

import json
from pathlib import Path

DEFAULT_ROOT = Path(__file__).parent.parent / "fixtures"
MODULE_OF_FOLDER = {
    "provider-quirks": "test_provider_quirks.py",
    "action-ir": "test_action_ir.py",
    "mlperf-agentic": "test_mlperf_agentic.py",
    "json-records": "test_json_records.py",
}
FALLS_BACK = frozenset({"toolsets.json", "alias_table.json"})
"""Files that are taken from the project where DIR does not bring its own."""


def folders_in(root):
    """Return the names of the parity folders that `root` holds."""
    return [name for name in MODULE_OF_FOLDER if (root / name).is_dir()]


def fixture_path(config, folder, name):
    """Return the path of one fixture file under `--fixtures`."""
    path = config.option.parity_fixtures / folder / name
    if not path.exists() and name in FALLS_BACK:
        return DEFAULT_ROOT / folder / name
    return path


def fixture_lines(config, folder, name):
    """Return the objects of a JSON lines file, none where the folder is absent."""
    path = fixture_path(config, folder, name)
    if folder not in folders_in(config.option.parity_fixtures):
        return []
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def take_fixtures_option(config):
    """Read `--fixtures DIR` as our option; pytest has one of that name without DIR.

    pytest takes the word for its own flag (it lists test fixtures) and DIR for a
    place to collect from. `--fixtures` without a folder keeps pytest's meaning.
    """
    words = list(config.invocation_params.args)
    if "--fixtures" not in words[:-1]:
        return
    folder = words[words.index("--fixtures") + 1]
    if folder not in config.args or folder.startswith("-"):
        return
    config.option.parity_fixtures = Path(folder)
    config.option.showfixtures = False
    config.args.remove(folder)
    if not config.args:
        config.args.extend(config.getini("testpaths"))
