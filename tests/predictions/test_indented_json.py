"""The text is that of the standard library, however it is made."""

import json

from hypothesis import given
from hypothesis import strategies as st

from harness.predictions.indented_json import document, indented

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=10,
)
objects = st.dictionaries(st.text(max_size=3), values, max_size=3)
lists = st.dictionaries(st.text("xyz"), st.lists(values, max_size=3), max_size=2)


@given(values)
def test_value_has_the_librarys_text(value):
    assert indented(value) == json.dumps(value, indent=2)


@given(objects, lists)
def test_document_in_pieces_has_the_librarys_text(head, rows):
    head = {name: value for name, value in head.items() if name not in rows}
    pieces = document(head, {name: iter(items) for name, items in rows.items()})

    assert "".join(pieces) == json.dumps({**head, **rows}, indent=2)
