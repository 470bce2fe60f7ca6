"""An oracle pack, loaded and checked whole without running any of its code.

`load_pack` reports every problem of every file in one PackError. A Pack that exists
has passed all static checks; whether its code keeps the promises is certification's
question (`spec/executable-evaluator.md` 1).
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from harness.benchmark.assertion_specs import AssertionCatalog, read_assertions
from harness.benchmark.endpoint_config import (
    EndpointConfig,
    check_endpoint,
    load_endpoint,
)
from harness.benchmark.fixtures import Fixtures, HeldOut, read_fixtures, read_held_out
from harness.benchmark.manifest import PackManifest, read_manifest
from harness.benchmark.pack_code import PackCode
from harness.benchmark.pack_python import NotPythonError, parse_module
from harness.benchmark.pack_tools import PackTools, read_tools
from harness.benchmark.pack_tree import Fingerprint, PackTree, read_tree
from harness.benchmark.problems import PackFile, Problems, read_json, read_yaml
from harness.benchmark.template_checks import check_template
from harness.benchmark.template_model import Template
from harness.benchmark.template_reader import read_templates
from harness.benchmark.validation_cases import ValidationCase, read_cases
from harness.canonical import Json
from harness.regular_file import read_regular_file

MANIFEST_NAME: Final = "manifest.yaml"


@dataclass(frozen=True)
class Pack:
    """One pack that passed every static check."""

    root: Path
    manifest: PackManifest
    tools: PackTools
    fixtures: Fixtures
    templates: tuple[Template, ...]
    cases: tuple[ValidationCase, ...]
    assertion_specs: AssertionCatalog
    held_out: HeldOut | None
    tree: PackTree

    @property
    def pack_id(self) -> str:
        """The pack's id, stamped on every row."""
        return self.manifest.pack_id

    @property
    def version(self) -> str:
        """The pack's version, stamped on every row."""
        return self.manifest.version

    @property
    def model_tools(self) -> list[dict[str, Json]]:
        """The whole model-facing tool list."""
        return self.tools.model_tools()

    @property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint under our own algorithm."""
        return self.tree.fingerprint()

    @property
    def files(self) -> dict[str, str]:
        """Logical name to content hash of every file."""
        return self.tree.files

    @property
    def oracle_kind(self) -> str:
        """`python` or `endpoint`."""
        return "python" if "backend" in self.manifest.paths else "endpoint"

    @cached_property
    def endpoint(self) -> EndpointConfig | None:
        """The endpoint that answers for the pack; None for a local backend."""
        path = self.manifest.paths.get("endpoint")
        return None if path is None else load_endpoint(path, self.root)

    def code(self) -> PackCode:
        """Return the files that a pack host needs."""
        paths = self.manifest.paths
        return PackCode(
            root=self.root,
            backend=paths.get("backend"),
            endpoint=paths.get("endpoint"),
            assertions=paths["assertions"],
            fixtures=paths.get("fixtures"),
        )

    def template(self, template_id: str) -> Template | None:
        """Return a template by id, or None."""
        found = (t for t in self.templates if t.template_id == template_id)
        return next(found, None)


def load_pack(path: Path) -> Pack:
    """Load a pack from its folder or its manifest file.

    Raises PackError (`pack_invalid`) that holds every problem found.
    """
    problems = Problems()
    manifest_path = path if path.is_file() else path / MANIFEST_NAME
    root = manifest_path.parent.resolve()
    if not manifest_path.is_file():
        problems.add(
            str(path),
            "not a pack",
            expected=f"a folder with {MANIFEST_NAME}, or a bundled name",
        )
    problems.raise_any()
    file = read_yaml(manifest_path, problems)
    manifest = read_manifest(file, root) if file is not None else None
    if file is None or manifest is None:
        problems.raise_any()
        raise AssertionError("an unreadable manifest without a problem")
    declared = dict(manifest.paths)
    if "endpoint" in manifest.paths:
        endpoint = read_yaml(manifest.paths["endpoint"], problems)
        declared |= check_endpoint(endpoint, root) if endpoint is not None else {}
    tree = read_tree(root, declared, manifest.docs, problems)
    pack = _Loader(root, manifest, file, tree, problems).load()
    problems.raise_any()
    if pack is None:
        raise AssertionError("an incomplete pack without a problem")
    return pack


class _Loader:
    """Reads the parts in the order in which they need each other."""

    def __init__(
        self,
        root: Path,
        manifest: PackManifest,
        file: PackFile,
        tree: PackTree,
        problems: Problems,
    ) -> None:
        self.root = root
        self.manifest = manifest
        self.file = file
        self.tree = tree
        self.problems = problems

    def load(self) -> Pack | None:
        paths = self.manifest.paths
        self.check_modules()
        self.check_docs()
        fixtures_file = (
            read_json(paths["fixtures"], self.problems) if "fixtures" in paths else None
        )
        assertions = (
            read_assertions(paths["assertions"], self.problems)
            if "assertions" in paths
            else None
        )
        tools = self.tools()
        without_rows = "fixtures" in paths and fixtures_file is None
        if tools is None or assertions is None or without_rows:
            return None
        fixtures = read_fixtures(fixtures_file, self.manifest, self.file)
        templates = self.templates(fixtures, tools, assertions)
        cases: tuple[ValidationCase, ...] = ()
        if "validation_cases" in paths:
            cases_file = read_yaml(paths["validation_cases"], self.problems)
            if cases_file is not None:
                cases = read_cases(cases_file, tools)
        return Pack(
            root=self.root,
            manifest=self.manifest,
            tools=tools,
            fixtures=fixtures,
            templates=templates,
            cases=cases,
            assertion_specs=assertions,
            held_out=self.held_out(fixtures, templates),
            tree=self.tree,
        )

    def tools(self) -> PackTools | None:
        if "tools" not in self.manifest.paths:
            return None
        file = read_json(self.manifest.paths["tools"], self.problems)
        if file is None:
            return None
        return read_tools(file, self.manifest.confirmation)

    def templates(
        self, fixtures: Fixtures, tools: PackTools, assertions: AssertionCatalog
    ) -> tuple[Template, ...]:
        if "templates" not in self.manifest.paths:
            return ()
        file = read_yaml(self.manifest.paths["templates"], self.problems)
        if file is None:
            return ()
        templates = read_templates(file, fixtures, tools)
        for template in templates:
            check_template(file, template, self.manifest, tools, assertions)
        return templates

    def held_out(
        self, fixtures: Fixtures, templates: tuple[Template, ...]
    ) -> HeldOut | None:
        if "held_out" not in self.manifest.paths:
            return None
        file = read_yaml(self.manifest.paths["held_out"], self.problems)
        if file is None:
            return None
        ids = tuple(template.template_id for template in templates)
        return read_held_out(file, fixtures, ids)

    def check_docs(self) -> None:
        docs = self.manifest.docs
        for role, path in self.manifest.paths.items():
            if docs is not None and path.is_relative_to(self.root / docs):
                self.file.problem(
                    ("docs",),
                    f"the {role} file stands under docs, outside the fingerprint",
                )

    def check_modules(self) -> None:
        """Refuse helper modules that hide a standard module the pack imports."""
        helpers: dict[str, str] = {}
        imported: set[str] = set()
        for name, path in self.tree.paths.items():
            if path.suffix != ".py":
                continue
            where = name.removeprefix("tree/")
            imported |= self.imports_of(where, path)
            module = self.helper_module(path)
            if module in sys.stdlib_module_names:
                helpers[where] = module
        for where, module in helpers.items():
            if module in imported:
                self.problems.add(
                    where,
                    f"hides the standard module {module!r}, which the pack imports",
                    expected="a name of its own",
                )

    def helper_module(self, path: Path) -> str:
        """Return the name by which a file can be imported, empty if it cannot."""
        package = path.name == "__init__.py"
        folder = path.parent.parent if package else path.parent
        folders = {self.root}
        for role in ("backend", "assertions"):
            if role in self.manifest.paths:
                folders.add(self.manifest.paths[role].parent)
        if folder not in folders:
            return ""
        return path.parent.name if package else path.stem

    def imports_of(self, where: str, path: Path) -> set[str]:
        """Return the top-level names that a file imports; report what is no Python."""
        try:
            tree = parse_module(read_regular_file(path), where)
        except NotPythonError as error:
            if path != self.manifest.paths.get("assertions"):
                self.problems.add(f"{where}:{error.line}", f"not Python: {error}")
            return set()
        names: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                names.add(node.module.partition(".")[0])
        return names
