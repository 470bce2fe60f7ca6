"""The house rules that a program can check: imports, shapes, names, handlers."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE_ROOTS = ("harness", "oracle_workers")
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 70
NAMELESS = {"utils", "helpers", "common", "base", "misc"}

STDLIB_ONLY = (
    "harness/__init__.py",
    "harness/errors.py",
    "harness/visible_text.py",
    "harness/causes.py",
    "harness/canonical.py",
    "harness/regular_file.py",
    "harness/recursion.py",
    "harness/strict_json.py",
    "harness/json_schema",
    "harness/evidence/record_code.py",
    "harness/evidence/records.py",
    "harness/evidence/episode.py",
    "harness/conversation/script.py",
    "harness/conversation/task.py",
    "harness/conversation/matching.py",
    "harness/conversation/turn_matcher.py",
    "harness/conversation/companions.py",
    "harness/conversation/dependencies.py",
    "harness/scoring",
    "harness/stats",
    "oracle_workers",
)
LAZY_PATTERN_ENGINE = "re2"
"""May be imported inside a function of `json_schema`, where a schema has a pattern."""

PACK_BORDER = {
    "oracle_workers/host.py": "worker main: the import, and a forked worker's end",
    "oracle_workers/loop.py": "one operation of a session",
    "oracle_workers/assertions.py": "one assertion",
    "oracle_workers/python_backend.py": "the text of an exception of the pack",
}
"""Where code of a pack may raise anything and the handler makes a fault of it.

Elsewhere a handler for every exception has to clean up and raise again.
"""


def _modules():
    for root in SOURCE_ROOTS:
        for path in sorted((ROOT / root).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix()


MODULES = tuple(_modules())
ERROR_TREE = "harness/errors.py"
"""Opens with the whole tree drawn, so its docstring may be longer."""
OTHER_SIDE = ("harness", "packs")


def _tree(module):
    return ast.parse((ROOT / module).read_text(encoding="utf-8"), filename=module)


def _in(module, room):
    return module == room or module.startswith(room.removesuffix("/") + "/")


def _imports(tree):
    """Yield (top-level name, whole name, line, whether inside a function)."""
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            names = [node.module or ""]
        else:
            continue
        for name in names:
            yield name.split(".")[0], name, node.lineno, id(node) in inside


def test_source_tree_is_found():
    assert "harness/causes.py" in MODULES
    assert "oracle_workers/__init__.py" in MODULES


@pytest.mark.parametrize(
    "module", [m for m in MODULES if any(_in(m, room) for room in STDLIB_ONLY)]
)
def test_room_needs_only_the_standard_library(module):
    foreign = [
        f"{module}:{line} {name}"
        for top, name, line, lazy in _imports(_tree(module))
        if top not in sys.stdlib_module_names
        and top not in SOURCE_ROOTS
        and not (
            lazy and top == LAZY_PATTERN_ENGINE and _in(module, "harness/json_schema")
        )
    ]

    assert foreign == []


@pytest.mark.parametrize("module", [m for m in MODULES if _in(m, "oracle_workers")])
def test_worker_side_imports_nothing_of_the_evaluator(module):
    reached = [name for top, name, _, _ in _imports(_tree(module)) if top in OTHER_SIDE]

    assert reached == []


@pytest.mark.parametrize("module", [m for m in MODULES if _in(m, "harness")])
def test_evaluator_imports_no_pack(module):
    assert [name for top, name, _, _ in _imports(_tree(module)) if top == "packs"] == []


def test_stdlib_only_rooms_reach_no_room_that_is_not():
    """A stdlib-only module stays so through what it imports of ours."""
    outside = []
    for module in MODULES:
        if not any(_in(module, room) for room in STDLIB_ONLY):
            continue
        for top, name, line, _ in _imports(_tree(module)):
            if top != "harness":
                continue
            file = name.replace(".", "/")
            if not any(_in(file, room.removesuffix(".py")) for room in STDLIB_ONLY):
                outside.append(f"{module}:{line} {name}")

    assert outside == []


def test_every_module_has_a_layer():
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "tool"
    ]["importlinter"]["contracts"][0]
    layered = {
        name.strip(" ()")
        for layer in contract["layers"]
        for name in re.split(r"[:|]", layer)
    }

    loose = []
    for module in MODULES:
        dotted = module.removesuffix(".py").replace("/", ".")
        if module.startswith("oracle_workers") or dotted.endswith("__init__"):
            continue
        if not any(dotted == name or dotted.startswith(f"{name}.") for name in layered):
            loose.append(module)

    assert loose == []


@pytest.mark.parametrize("module", MODULES)
def test_file_and_functions_keep_their_size(module):
    text = (ROOT / module).read_text(encoding="utf-8")
    long_functions = [
        f"{node.name} at line {node.lineno}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno - node.lineno + 1 > MAX_FUNCTION_LINES
    ]

    assert text.count("\n") <= MAX_FILE_LINES
    assert long_functions == []


@pytest.mark.parametrize("module", MODULES)
def test_module_is_named_after_a_concept(module):
    parts = set(module.removesuffix(".py").split("/"))

    assert parts & NAMELESS == set()


@pytest.mark.parametrize(
    "module",
    [m for m in MODULES if not m.endswith("__init__.py") or (ROOT / m).stat().st_size],
)
def test_module_docstring_is_one_to_twelve_lines(module):
    docstring = ast.get_docstring(_tree(module))

    assert docstring
    assert len(docstring.splitlines()) <= 12 or module == ERROR_TREE


def _catches_everything(handler):
    if handler.type is None:
        return True
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(
        isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException")
        for kind in types
    )


def _raises_again(handler):
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def test_handler_for_everything_stands_at_the_pack_or_raises_again():
    swallowing = {
        module
        for module in MODULES
        for node in ast.walk(_tree(module))
        if isinstance(node, ast.ExceptHandler)
        and _catches_everything(node)
        and not _raises_again(node)
    }

    assert len(PACK_BORDER) <= 4
    assert swallowing - PACK_BORDER.keys() == set()


def test_package_root_is_empty():
    assert (ROOT / "harness/__init__.py").read_text(encoding="utf-8") == ""


def _text_files():
    skipped = {".git", ".venv", "venv", "__pycache__", "build", "dist"}
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        if skipped & set(parts) or any(p.endswith("_cache") for p in parts):
            continue
        if parts[0].startswith("fairtrial-demo"):
            continue
        if ".hypothesis" in parts or not path.is_file() or path.is_symlink():
            continue
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def test_no_file_names_a_place_of_one_machine():
    """Home folders, mount points and the checkout itself."""
    places = re.compile(
        "|".join(
            (
                r"/(?:home|Users)/[a-z][\w.-]*/",
                r"/root/",
                r"/mnt/[a-z]",
                re.escape(f"{ROOT}/"),
            )
        )
    )
    own = Path(__file__)
    named = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path, text in _text_files()
        if path != own and (match := places.search(text))
    ]

    assert named == []


def test_nothing_is_left_to_do_later():
    unfinished = re.compile(r"NotImplementedError|\b(?:TODO|FIXME|XXX)\b")
    found = [
        f"{module}:{text[: match.start()].count(chr(10)) + 1}"
        for module in MODULES
        for text in [(ROOT / module).read_text(encoding="utf-8")]
        if (match := unfinished.search(text))
    ]

    assert found == []


@pytest.mark.parametrize("module", MODULES)
def test_published_names_exist(module):
    tree = _tree(module)
    listed = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)
    ]
    defined = {
        name
        for node in tree.body
        for name in (
            [node.name]
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            else [a.asname or a.name for a in node.names]
            if isinstance(node, ast.Import | ast.ImportFrom)
            else [t.id for t in getattr(node, "targets", []) if isinstance(t, ast.Name)]
            + (
                [node.target.id]
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
                else []
            )
        )
    }

    assert [name for names in listed for name in names if name not in defined] == []
