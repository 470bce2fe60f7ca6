"""The grammar of the TOOLS block, traps included."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.scoring.action_ir.refusal import ActionIrError
from harness.scoring.action_ir.tools import Tool, ToolSet, ValueSchema
from harness.scoring.action_ir.tools_block import ToolsBlockReader, schema_signature

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
kinds = st.sampled_from(["string", "integer", "number", "boolean"])
tools = st.lists(
    st.tuples(
        names,
        st.dictionaries(names, st.tuples(kinds, st.booleans()), max_size=3),
        st.text(st.characters(codec="ascii", min_codepoint=32), max_size=9).filter(
            lambda words: "): " not in words
        ),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda tool: tool[0],
)


def prompt(block, rest="\n<user>\nhello\n<assistant>\n"):
    return f"<bos><system>\nACTION_IR_V1\nNOW now\nTOOLS\n{block}{rest}"


def read(block, **options):
    return ToolsBlockReader().read(prompt(block, **options))


@given(tools)
def test_rendered_tools_are_read_back(declared):
    lines = [
        f"{name}("
        + ", ".join(f"{a}:{kind}{'!' * must}" for a, (kind, must) in args.items())
        + f"): {words}"
        for name, args, words in declared
    ]

    found = read("\n".join(lines))

    assert list(found.values()) == [
        Tool(
            name,
            {argument: ValueSchema(kind) for argument, (kind, _) in args.items()},
            frozenset(argument for argument, (_, must) in args.items() if must),
        )
        for name, args, _ in declared
    ]


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ("", "empty_tools_block"),
        ("\n<user>\n", "empty_tools_block"),
        ("<user>", "invalid_tool_line"),
        ("\n", "invalid_tool_line"),
        ("f(): x\n\ng(): y", "invalid_tool_line"),
        ("f():", "invalid_tool_line"),
        ("f (): x", "invalid_tool_line"),
        ("1f(): x", "invalid_tool_line"),
        ("é(): x", "invalid_tool_line"),
        ("f(): a\x85b", "invalid_tool_line"),
        ("f(): a\x1cb", "invalid_tool_line"),
        ("f(): a\u2029b", "invalid_tool_line"),
        ("f( ): x", "invalid_argument"),
        ("f(a:string,b:string): x", "invalid_argument"),
        ("f(a:string, ): x", "invalid_argument"),
        ("f(a: string): x", "invalid_argument"),
        ("f(a:array): x", "invalid_argument"),
        ("f(a:string!!): x", "invalid_argument"),
        ("f(): does (this): that", "invalid_argument"),
        ("f(a:string, a:integer): x", "duplicate_argument"),
        ("f(): x\nf(a:string): y", "duplicate_tool"),
    ],
)
def test_block_that_breaks_the_grammar_is_refused(block, reason):
    with pytest.raises(ActionIrError) as refused:
        read(block)

    assert refused.value.reason == reason


@pytest.mark.parametrize(
    "text", ["", "TOOLS\nf(): x\n", prompt("f(): x").replace("\n", "\r\n")]
)
def test_prompt_without_the_line_is_refused(text):
    with pytest.raises(ActionIrError, match="missing_tools_block"):
        ToolsBlockReader().read(text)


@pytest.mark.parametrize(
    ("block", "rest"),
    [
        ("f(): x\n", "\n<user>\nhello\n"),
        ("f(): x\r", "\n<user>\nhello\n"),
        ("f(): x", ""),
        ("f(): ", "\n<user>\nTOOLS\ng(): y\n<user>\n"),
    ],
)
def test_what_does_not_belong_to_the_block_is_harmless(block, rest):
    assert list(read(block, rest=rest)) == ["f"]


def test_equal_lines_of_two_prompts_are_one_tool():
    reader = ToolsBlockReader()

    first = reader.read(prompt("f(a:string): x\ng(): y"))
    second = reader.read(prompt("g(): y\nf(a:string): x"))

    assert first["f"] is second["f"]


def test_signature_ignores_order_and_sees_types():
    text, integer = ValueSchema("string"), ValueSchema("integer")
    tools = [Tool("f", {"a": text, "b": integer}, frozenset({"a"})), Tool("g")]
    turned = [Tool("g"), Tool("f", {"b": integer, "a": text}, frozenset({"a"}))]
    other = [Tool("g"), Tool("f", {"b": integer, "a": text})]

    assert schema_signature(ToolSet(tools)) == schema_signature(ToolSet(turned))
    assert schema_signature(ToolSet(tools)) != schema_signature(ToolSet(other))
