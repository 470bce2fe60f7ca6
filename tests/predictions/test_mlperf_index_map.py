"""Only the names at the top of the map are read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.predictions.mlperf_index_map import IndexMapError, index_map_keys

maps = st.dictionaries(
    st.text(max_size=4),
    st.recursive(
        st.integers() | st.text('{}[]":\\', max_size=4),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(st.text(max_size=3), inner, max_size=2)
        ),
        max_leaves=5,
    ),
    max_size=4,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("report") / "sample_idx_map.json"


@given(maps, st.booleans())
def test_names_are_the_keys_of_the_object(path, value, ensure_ascii):
    text = json.dumps(value, ensure_ascii=ensure_ascii, indent=1)
    path.write_text(text, encoding="utf-8")

    assert index_map_keys(path) == list(value)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{", b'{"a":{"b":1}', b'{"a', b"{5:1}", b"{\xff}", b"5"]
)
def test_file_that_is_no_object_is_refused(path, data):
    path.write_bytes(data)

    with pytest.raises(IndexMapError):
        index_map_keys(path)
