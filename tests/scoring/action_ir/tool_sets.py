"""Tools that the tests of this contract share."""

from harness.scoring.action_ir.tools import Tool, ToolSet, ValueSchema

TEXT = ValueSchema("string")
INTEGER = ValueSchema("integer")
NUMBER = ValueSchema("number")

TOOLS = ToolSet(
    [
        Tool("set_timer", {"minutes": INTEGER}, frozenset({"minutes"})),
        Tool("send_message", {"body": TEXT, "to": TEXT}, frozenset({"body", "to"})),
        Tool("set_level", {"level": NUMBER}, frozenset({"level"})),
        Tool(
            "tag_note",
            {"tags": ValueSchema("array", items=NUMBER, set_semantics=True)},
            frozenset({"tags"}),
        ),
        Tool("anything", additional_arguments=True),
        Tool("look_up", {"query": TEXT}, frozenset({"query"}), side_effecting=False),
        Tool(
            "configure",
            {
                "settings": ValueSchema(
                    "object",
                    properties={"x": NUMBER, "name": TEXT},
                    required=frozenset({"name"}),
                ),
                "mode": ValueSchema("string", enum=("off", "on")),
            },
        ),
    ]
)


def call(tool, **args):
    return {"tool": tool, "args": args}


def act(*calls, decision="CALL", mode=None):
    mode = mode or ("SINGLE" if len(calls) == 1 else "SERIAL")
    return {"decision": decision, "mode": mode, "calls": list(calls)}
