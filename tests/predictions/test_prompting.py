"""A prompt puts the contract and the input in, once each, and keeps its texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.predictions.prompting import (
    Prompt,
    contract_of_labels,
    contract_of_schema,
)
from harness.predictions.questions import Question

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def asked(prompt, text):
    return prompt.messages(Question("a", text, "gold"))


def test_contract_and_input_are_put_in():
    prompt = Prompt("One of {contract}.", "Text: {input}", "a\nb")

    assert asked(prompt, "hello") == (
        {"role": "system", "content": "One of a\nb."},
        {"role": "user", "content": "Text: hello"},
    )


def test_without_texts_the_input_is_the_only_message():
    assert asked(Prompt(None, None, "a"), "hello") == (
        {"role": "user", "content": "hello"},
    )


@given(text=texts)
def test_what_is_put_in_is_not_searched_again(text):
    prompt = Prompt("{contract}", "{input}", "{input}{contract}")

    system, user = asked(prompt, text)

    assert system["content"] == "{input}{contract}"
    assert user["content"] == text


@given(system=st.none() | texts, user=st.none() | texts, contract=st.none() | texts)
def test_record_gives_the_prompt_back(system, user, contract):
    prompt = Prompt(system, user, contract)

    assert Prompt.from_record(prompt.as_record()) == prompt


def test_record_with_an_edited_text_is_refused():
    record = Prompt("a", None, None).as_record()
    record["system"]["text"] = "b"

    with pytest.raises(ValueError, match="hash"):
        Prompt.from_record(record)


def test_template_without_the_input_is_a_problem():
    assert [name for name, *_ in Prompt(None, "ask", "a").problems()] == ["user"]


def test_mark_without_a_contract_is_a_problem():
    prompt = Prompt("{contract}", None, None)

    assert [name for name, *_ in prompt.problems()] == ["system"]


def test_labels_stand_one_a_line():
    assert contract_of_labels(["a", "b c"]) == "a\nb c"


def test_labels_with_lines_are_written_as_json():
    assert contract_of_labels(["a\nb", "c"]) == '["a\\nb","c"]'


def test_schema_is_shown_as_its_file_is_written():
    assert contract_of_schema(b'\n{ "type": "object" }\n') == '{ "type": "object" }'
