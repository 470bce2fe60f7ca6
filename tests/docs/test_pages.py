"""Pages are reachable, their links lead somewhere, generated ones are current."""

import importlib.util
import re

import pytest

from tests.docs.pages import ROOT, links, markdown_pages, name_of

PAGES = {name_of(page): page for page in markdown_pages()}


def _generator():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs/generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATED = _generator().pages()


@pytest.mark.parametrize("name", GENERATED)
def test_generated_page_is_what_the_code_says(name):
    committed = (ROOT / "docs" / name).read_text(encoding="utf-8")

    assert committed == GENERATED[name], "run: python docs/generate.py"


def _anchors(text):
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    page = PAGES[name]
    broken = []
    for target in links(page):
        if target.startswith(("https://", "http://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (
            anchor and anchor not in _anchors(file.read_text(encoding="utf-8"))
        ):
            broken.append(target)

    assert broken == []


@pytest.mark.parametrize("name", PAGES)
def test_rows_of_a_table_have_the_columns_of_its_head(name):
    text = re.sub(r"```.*?```", "", PAGES[name].read_text(), flags=re.DOTALL)
    tables = re.findall(r"(?:^\|.*\|$\n?)+", text, re.MULTILINE)
    columns = [
        {len(re.split(r"(?<!\\)\|", row)) for row in table.splitlines()}
        for table in tables
    ]

    assert all(len(counts) == 1 for counts in columns), columns


def test_index_reaches_every_page_of_the_documentation():
    index = ROOT / "docs/README.md"
    reached = {(index.parent / target).resolve() for target in links(index)}

    missing = [
        name
        for name, page in PAGES.items()
        if name.startswith("docs/") and page != index and page.resolve() not in reached
    ]

    assert missing == []


@pytest.mark.parametrize("name", PAGES)
def test_page_opens_with_one_title(name):
    text = re.sub(r"```.*?```", "", PAGES[name].read_text(), flags=re.DOTALL)
    titles = re.findall(r"^# .+$", text, re.MULTILINE)

    assert len(titles) == 1
    assert text.startswith(titles[0])
