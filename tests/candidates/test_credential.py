import copy
import json
import pickle

import pytest

from harness.candidates.credential import Credential
from harness.errors import CandidateError

KEY = "key-5f/1b9c77e0"


def test_header_carries_the_key():
    assert Credential(KEY).headers() == [(b"authorization", f"Bearer {KEY}".encode())]


def test_without_a_key_there_is_no_header():
    assert Credential(None).headers() == []


@pytest.mark.parametrize("key", ["", "two\nlines", "schlüssel"])
def test_key_that_no_header_can_carry_is_refused_without_showing_it(key):
    with pytest.raises(CandidateError) as caught:
        Credential(key)

    assert not key or key not in str(caught.value)


@pytest.mark.parametrize("show", [repr, str, "{!r}".format])
def test_no_text_form_holds_the_key(show):
    assert KEY not in show(Credential(KEY))


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy])
def test_credential_is_never_copied(duplicate):
    with pytest.raises(TypeError):
        duplicate(Credential(KEY))


@pytest.mark.parametrize(
    "spelling",
    [
        KEY,
        KEY.replace("/", "\\/"),
        "\\u006b" + KEY[1:],
        json.dumps({"a": json.dumps({"b": "\\u006b" + KEY[1:]})}),
        json.dumps(json.dumps(KEY).replace("/", "\\/")),
    ],
)
def test_key_is_found_in_any_spelling_that_json_decodes_to_it(spelling):
    assert Credential(KEY).is_in(f'{{"x":"{spelling}"}}'.encode())


def test_key_is_not_found_where_it_is_not():
    assert not Credential(KEY).is_in(b'{"x":"key-5f\\n1b9c77e0"}')


def test_dummy_key_of_a_local_server_is_no_secret():
    assert not Credential("EMPTY").is_in(b"EMPTY")


def test_beginning_of_the_key_in_cut_bytes_counts():
    assert Credential(KEY).may_begin_in(f"... {KEY[:9]}".encode())
