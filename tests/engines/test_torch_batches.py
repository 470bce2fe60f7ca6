"""Batches hold every row once, in the order of length and id."""

from hypothesis import given
from hypothesis import strategies as st

from harness.engines.protocol import PromptRow
from harness.engines.torch_local import batches

LENGTHS = st.lists(st.integers(0, 6), max_size=30)


def _prompts(lengths):
    return [
        (PromptRow(f"row-{n % 7}-{n}", ()), [0] * length)
        for n, length in enumerate(lengths)
    ]


@given(LENGTHS, st.integers(1, 9), st.booleans())
def test_every_row_is_in_one_batch_and_in_order(lengths, size, equal):
    prompts = _prompts(lengths)

    found = [each for batch in batches(prompts, size, equal) for each in batch]

    assert found == sorted(prompts, key=lambda each: (len(each[1]), each[0].row_id))


@given(LENGTHS, st.integers(1, 9), st.booleans())
def test_no_batch_is_empty_or_too_large(lengths, size, equal):
    sizes = [len(batch) for batch in batches(_prompts(lengths), size, equal)]

    assert all(1 <= each <= size for each in sizes)


@given(LENGTHS, st.integers(1, 9))
def test_batches_of_one_length_have_one_length(lengths, size):
    for batch in batches(_prompts(lengths), size, equal_lengths=True):
        assert len({len(tokens) for _, tokens in batch}) == 1


@given(LENGTHS, st.integers(1, 9))
def test_batches_of_any_length_are_as_few_as_can_be(lengths, size):
    found = list(batches(_prompts(lengths), size, equal_lengths=False))

    assert len(found) == -(-len(lengths) // size)
