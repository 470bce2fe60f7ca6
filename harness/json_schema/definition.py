"""Whether a tool's `parameters` are inside the subset, with every reason at once.

The subset is that of spec 1.4 plus `anyOf oneOf not exclusiveMinimum
exclusiveMaximum multipleOf uniqueItems minProperties maxProperties`. What is outside
is refused when a pack loads, never while a candidate is judged. Our own reasons:
`schema_any_of_not_nonempty_array any_of_schema_not_object
schema_one_of_not_nonempty_array one_of_schema_not_object not_schema_not_object
schema_unique_items_not_boolean`.

A schema object is walked once, wherever references lead to it from; an edge back
into a schema that is still being walked is a cycle. `$defs` apply nothing by
themselves, so they are walked apart, after the schema that holds them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from harness.canonical import Json
from harness.json_schema.checks import Compiler
from harness.json_schema.patterns import PatternRefusedError, compile_search
from harness.json_schema.references import is_local, resolve
from harness.json_schema.values import PYTHON_TYPES, equality_key

Schema = dict[str, Json]

_SUBSET = """
$defs $ref definitions allOf type description title default examples deprecated readOnly
writeOnly format enum const properties required additionalProperties items pattern
minLength maxLength minimum maximum minItems maxItems
"""
_ADDED = """
anyOf oneOf not exclusiveMinimum exclusiveMaximum multipleOf uniqueItems minProperties
maxProperties
"""
KEYWORDS: Final = frozenset((_SUBSET + _ADDED).split())
"""Every keyword that a schema may use."""

MOST_SCHEMAS: Final = 10_000
"""Schema objects that a value may meet, each counted whenever a reference leads to it:
a few lines of references to references otherwise check one value for ever."""
MOST_LEVELS: Final = 100
"""Schema objects within or behind one another."""

_COUNTS: Final = (
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
)
_LIMITS: Final = (
    ("minimum", "maximum", False),
    ("exclusiveMinimum", "maximum", True),
    ("minimum", "exclusiveMaximum", True),
    ("exclusiveMinimum", "exclusiveMaximum", True),
)
_COMBINERS: Final = (("allOf", "all_of"), ("anyOf", "any_of"), ("oneOf", "one_of"))


class _Extent(NamedTuple):
    """What a value meets in a schema object."""

    schemas: int = 1
    levels: int = 1

    def around(self, part: _Extent) -> _Extent:
        """Return this extent with one part more."""
        return _Extent(self.schemas + part.schemas, max(self.levels, 1 + part.levels))


class Definition:
    """The walk over one `parameters` document; `failures` holds what it found."""

    def __init__(self, root: Schema, path: str) -> None:
        self.root = root
        self.prefix = path
        self.failures: list[dict[str, Json]] = []
        self.compiler = Compiler(root)
        self._verdicts: dict[int, bool | None] = {}
        """By schema object: accepted or not; None while it is being walked."""
        self._definitions: list[tuple[Schema, str]] = []
        self._extents: dict[int, _Extent] = {}
        """By schema object, once it was walked."""
        self._extent = _Extent()
        """Of what is being walked, so far."""
        self._level = 0
        """How deep the walk is."""

    def run(self) -> None:
        """Walk the document and all definitions in it."""
        if self.root.get("type") != "object":
            self._fail("parameters_type_not_object", "$.type")
        self._visit(self.root, "$", frozenset())
        while self._definitions:
            schema, path = self._definitions.pop(0)
            self._visit(schema, path, frozenset())

    def _fail(self, reason: str, path: str, **more: Json) -> None:
        self.failures.append(
            {"reason": reason, "path": self.prefix + path.removeprefix("$"), **more}
        )

    def _visit(self, schema: Schema, path: str, inherited: frozenset[str]) -> bool:
        known = self._verdicts.get(id(schema), False)
        if id(schema) in self._verdicts and known is not None:
            return known
        self._verdicts[id(schema)] = None
        before = len(self.failures)
        around, self._extent = self._extent, _Extent()
        self._level += 1
        for keyword in schema:
            if keyword not in KEYWORDS:
                self._fail(
                    "unsupported_schema_keyword", f"{path}.{keyword}", keyword=keyword
                )
        self._type(schema, path)
        self._values(schema, path)
        self._counts(schema, path)
        self._limits(schema, path)
        self._pattern(schema, path)
        self._flags(schema, path)
        self._definitions_of(schema, path)
        sound = self._reference(schema, path)
        declared = inherited | _property_names(schema)
        if sound:
            declared |= self._declared(schema, set())
        sound &= self._subschemas(schema, path, declared)
        self._required(schema, path, declared)
        self._level -= 1
        if self._extent.schemas > MOST_SCHEMAS:
            self._fail("schema_too_large", path, limit=MOST_SCHEMAS)
            # What holds it is too large by this one and is not told so again.
            self._extent = _Extent()
        self._extents[id(schema)], self._extent = self._extent, around
        sound &= len(self.failures) == before
        if sound and "default" in schema:
            sound = self._default(schema, path)
        self._verdicts[id(schema)] = sound
        return sound

    def _type(self, schema: Schema, path: str) -> None:
        if "type" not in schema:
            return
        words = schema["type"]
        listed = words if isinstance(words, list) else [words]
        if not listed or not all(
            isinstance(word, str) and word in PYTHON_TYPES for word in listed
        ):
            self._fail("invalid_schema_type", f"{path}.type")
        elif len(set(listed)) != len(listed):
            self._fail("duplicate_schema_type", f"{path}.type")

    def _values(self, schema: Schema, path: str) -> None:
        admitted = _admitted(schema)
        if "enum" in schema:
            values = schema["enum"]
            where = f"{path}.enum"
            if not isinstance(values, list):
                self._fail("schema_enum_not_array", where)
                return
            if not values:
                self._fail("schema_enum_empty", where)
            if len(set(map(equality_key, values))) != len(values):
                self._fail("duplicate_schema_enum_value", where)
            for index, value in enumerate(values):
                if admitted is not None and type(value) not in admitted:
                    self._fail("schema_value_violates_type", f"{where}[{index}]")
        if (
            "const" in schema
            and admitted is not None
            and type(schema["const"]) not in admitted
        ):
            self._fail("schema_value_violates_type", f"{path}.const")

    def _counts(self, schema: Schema, path: str) -> None:
        for least, most in _COUNTS:
            sound = True
            for keyword in (least, most):
                value = schema.get(keyword, 0)
                if type(value) is not int or value < 0:
                    self._fail("invalid_schema_bound", f"{path}.{keyword}")
                    sound = False
            if sound and schema.get(least, 0) > schema.get(most, float("inf")):
                self._fail("inconsistent_schema_bounds", f"{path}.{least}")

    def _limits(self, schema: Schema, path: str) -> None:
        sound = True
        for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            if type(schema.get(keyword, 0)) not in (int, float):
                self._fail("invalid_schema_bound", f"{path}.{keyword}")
                sound = False
        factor = schema.get("multipleOf", 1)
        if type(factor) not in (int, float) or factor <= 0:
            self._fail("invalid_schema_bound", f"{path}.multipleOf")
        for least, most, open_end in _LIMITS:
            if sound and least in schema and most in schema:
                low, high = schema[least], schema[most]
                if low > high or (open_end and low == high):
                    self._fail("inconsistent_schema_bounds", f"{path}.{least}")

    def _pattern(self, schema: Schema, path: str) -> None:
        if "pattern" not in schema:
            return
        pattern = schema["pattern"]
        if not isinstance(pattern, str):
            self._fail("schema_pattern_not_string", f"{path}.pattern")
            return
        try:
            compile_search(pattern)
        except PatternRefusedError as error:
            self._fail("invalid_schema_pattern", f"{path}.pattern", problem=str(error))

    def _flags(self, schema: Schema, path: str) -> None:
        for keyword, reason in (
            ("additionalProperties", "schema_additional_properties_not_boolean"),
            ("uniqueItems", "schema_unique_items_not_boolean"),
        ):
            if not isinstance(schema.get(keyword, True), bool):
                self._fail(reason, f"{path}.{keyword}")

    def _definitions_of(self, schema: Schema, path: str) -> None:
        for keyword in ("$defs", "definitions"):
            definitions = schema.get(keyword, {})
            if not isinstance(definitions, dict):
                self._fail("schema_definitions_not_object", f"{path}.{keyword}")
                continue
            for name, definition in definitions.items():
                where = f"{path}.{keyword}.{name}"
                if isinstance(definition, dict):
                    self._definitions.append((definition, where))
                else:
                    self._fail("definition_schema_not_object", where)

    def _reference(self, schema: Schema, path: str) -> bool:
        if "$ref" not in schema:
            return True
        reference = schema["$ref"]
        where = f"{path}.$ref"
        if not is_local(reference):
            self._fail("schema_ref_not_local", where)
            return False
        target = resolve(self.root, reference)
        if target is None:
            self._fail("unresolvable_schema_ref", where, reference=reference)
            return False
        return self._enter(target.schema, target.path, where, frozenset())

    def _enter(
        self, schema: Schema, path: str, edge: str, inherited: frozenset[str]
    ) -> bool:
        if self._verdicts.get(id(schema), True) is None:
            self._fail("cyclic_schema_ref", edge)
            return False
        known = self._extents.get(id(schema), _Extent())
        if self._level + known.levels > MOST_LEVELS:
            self._fail("schema_too_deep", edge, limit=MOST_LEVELS)
            return False
        sound = self._visit(schema, path, inherited)
        self._extent = self._extent.around(self._extents[id(schema)])
        return sound

    def _subschemas(self, schema: Schema, path: str, declared: frozenset[str]) -> bool:
        sound = True
        properties = schema.get("properties", {})
        if not isinstance(properties, dict):
            self._fail("schema_properties_not_object", f"{path}.properties")
            properties = {}
        for name, part in properties.items():
            where = f"{path}.properties.{name}"
            sound &= self._subschema(part, where, "property_schema_not_object")
        if "items" in schema:
            sound &= self._subschema(
                schema["items"], f"{path}.items", "items_schema_not_object"
            )
        for keyword, word in _COMBINERS:
            sound &= self._combiner(schema, path, keyword, word, declared)
        if "not" in schema:
            sound &= self._subschema(
                schema["not"], f"{path}.not", "not_schema_not_object", declared
            )
        return sound

    def _combiner(
        self,
        schema: Schema,
        path: str,
        keyword: str,
        word: str,
        declared: frozenset[str],
    ) -> bool:
        if keyword not in schema:
            return True
        parts = schema[keyword]
        if not isinstance(parts, list) or not parts:
            self._fail(f"schema_{word}_not_nonempty_array", f"{path}.{keyword}")
            return False
        verdicts = [
            self._subschema(
                part, f"{path}.{keyword}[{i}]", f"{word}_schema_not_object", declared
            )
            for i, part in enumerate(parts)
        ]
        return all(verdicts)

    def _subschema(
        self,
        part: Json,
        path: str,
        reason: str,
        inherited: frozenset[str] = frozenset(),
    ) -> bool:
        if not isinstance(part, dict):
            self._fail(reason, path)
            return False
        return self._enter(part, path, path, inherited)

    def _required(self, schema: Schema, path: str, declared: frozenset[str]) -> None:
        names = schema.get("required", [])
        where = f"{path}.required"
        if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            self._fail("schema_required_not_string_array", where)
            return
        if len(set(names)) != len(names):
            self._fail("duplicate_required_property", where)
        for name in dict.fromkeys(names):
            if name not in declared:
                self._fail("required_property_not_declared", where, property=name)

    def _declared(self, schema: Schema, seen: set[int]) -> frozenset[str]:
        """Names that the schema declares itself, by `$ref` or in `allOf`."""
        if id(schema) in seen:
            return frozenset()
        seen.add(id(schema))
        names = _property_names(schema)
        if is_local(schema.get("$ref")):
            target = resolve(self.root, schema["$ref"])
            if target is not None:
                names |= self._declared(target.schema, seen)
        parts = schema.get("allOf")
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict):
                names |= self._declared(part, seen)
        return names

    def _default(self, schema: Schema, path: str) -> bool:
        found: list[dict[str, Json]] = []
        self.compiler.compile(schema)(schema["default"], (), found)
        if found:
            self._fail("invalid_schema_default", f"{path}.default", failures=found)
        return not found


def _property_names(schema: Schema) -> frozenset[str]:
    properties = schema.get("properties")
    return frozenset(properties) if isinstance(properties, dict) else frozenset()


def _admitted(schema: Schema) -> frozenset[type] | None:
    """Python types that `type` admits; None where it is absent or broken."""
    words = schema.get("type")
    listed = words if isinstance(words, list) else [words]
    kinds: frozenset[type] = frozenset()
    for word in listed:
        if not isinstance(word, str) or word not in PYTHON_TYPES:
            return None
        kinds |= PYTHON_TYPES[word]
    return kinds
