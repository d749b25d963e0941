"""Structural schemas, as CustomResourceDefinitions want them, made of the model's JSON schemas.

A structural schema names one type at each place, knows no references and no ``const``, and tells unions apart only
between whole numbers and text. What it cannot say becomes a CEL rule, or is left to the scheduler, which says so on the
object itself.
"""

from __future__ import annotations

from typing import Any, Final

from tenure.model.fields.kinds import Definitions, Schema

MAX_ITEMS: Final = 256
MAX_NESTED: Final = (128, 32, 8)
MAX_KEYS: Final = 32
MAX_TEXT: Final = 256
MAX_SCALAR: Final = 32
"""Bounds of lists, mappings and texts: the API server estimates what a rule costs at the most, and wants to know.

``MAX_NESTED`` holds for lists of what contains itself, by depth; deeper it must not go, as a structural schema is
written out.
"""

_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_RULES: Final = "x-kubernetes-validations"
_KEPT: Final = ("description", "type", "format", "minimum", "maximum", "minLength", "pattern", "required")
_DURATION_MARK: Final = "(ns|us"

Rule = dict[str, str]


def rule(holds: str, message: str) -> Rule:
    """Give a CEL rule and what is said where it does not hold."""
    return {"rule": holds, "message": message}


class Structural:
    """The converter of schemas into structural ones.

    ``rules`` are CEL rules by the name of the definition they belong to.
    """

    def __init__(self, definitions: Definitions, rules: dict[str, list[Rule]]) -> None:
        self._definitions = definitions
        self._rules = rules

    def of(self, name: str) -> Schema:
        """Give the structural schema of a definition."""
        return self._reference(name, ())

    def _reference(self, name: str, above: tuple[str, ...]) -> Schema:
        described = self._definitions[name]
        within = (*above, name)
        properties = {
            key: self._convert(inner, within)
            for key, inner in described["properties"].items()
            if not self._contains_itself_too_deep(inner, within)
        }
        made: Schema = {key: described[key] for key in ("description", "type", "required") if key in described}
        made["properties"] = properties
        rules = [entry for entry in self._rules.get(name, ()) if _is_about(entry, properties)]
        if rules:
            made[_RULES] = rules
        return made

    def _contains_itself_too_deep(self, schema: Schema, within: tuple[str, ...]) -> bool:
        reference = schema.get("items", schema).get("$ref", "")
        return within.count(_name(reference)) >= len(MAX_NESTED) if reference else False

    def _contains_itself(self, name: str) -> bool:
        parts = self._definitions.get(name, {}).get("properties", {}).values()
        return any(_name(part.get("items", {}).get("$ref", "")) == name for part in parts)

    def _convert(self, schema: Schema, within: tuple[str, ...]) -> Schema:
        made: Schema = {}
        if "$ref" in schema:
            made = self._reference(_name(schema["$ref"]), within)
        elif "anyOf" in schema:
            made = _union(schema["anyOf"])
        elif "const" in schema or "enum" in schema:
            made = {"type": "string", "enum": schema.get("enum") or [schema["const"]]}
        elif schema.get("type") == "array":
            made = self._list(schema, within)
        elif "additionalProperties" in schema and "properties" not in schema:
            made = self._map(schema, within)
        elif "properties" in schema:
            inner = {key: self._convert(value, within) for key, value in schema["properties"].items()}
            made = {"type": "object", "properties": inner, "required": schema["required"]}
        elif not schema:
            made = {"x-kubernetes-preserve-unknown-fields": True}
        else:
            made = _single(schema)
        return {**made, "description": schema["description"]} if "description" in schema else made

    def _list(self, schema: Schema, within: tuple[str, ...]) -> Schema:
        items = self._convert(schema["items"], within)
        name = _name(schema["items"].get("$ref", ""))
        most = MAX_NESTED[within.count(name)] if self._contains_itself(name) else MAX_ITEMS
        made = {"type": "array", "maxItems": most, "items": items}
        if schema.get("uniqueItems"):
            made["x-kubernetes-list-type"] = "set"
        elif "name" in items.get("required", ()):
            made |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
        return made

    def _map(self, schema: Schema, within: tuple[str, ...]) -> Schema:
        values = schema["additionalProperties"]
        made = {"type": "object", "maxProperties": MAX_KEYS, "additionalProperties": self._convert(values, within)}
        rules = []
        if _is_quantity(values):
            rules.append(
                rule(
                    "self.all(r, isQuantity(string(self[r])) && !quantity(string(self[r])).isLessThan(quantity('0')))",
                    "an amount is a quantity of 0 or more, such as 2, 500m or 1.5Gi",
                )
            )
        words = schema.get("propertyNames", {}).get("enum")
        if words:
            rules.append(rule(f"self.all(k, k in {words})", f"the keys are {', '.join(words)}"))
        pattern = schema.get("propertyNames", {}).get("pattern")
        if pattern:
            rules.append(rule(f"self.all(k, k.matches(r'{pattern}'))", f"the keys match {pattern}"))
        return {**made, _RULES: rules} if rules else made


def _is_about(entry: Rule, properties: dict[str, Any]) -> bool:
    """Tell whether what a rule speaks of is there: the innermost of a definition that contains itself lacks a part."""
    return "self.subGroups" not in entry["rule"] or "subGroups" in properties


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]


def _single(schema: Schema) -> Schema:
    made: Schema = {key: schema[key] for key in _KEPT if key in schema}
    if "exclusiveMinimum" in schema:
        made |= {"minimum": schema["exclusiveMinimum"], "exclusiveMinimum": True}
    if made.get("type") == "integer":
        made["format"] = "int64"
    if made.get("type") == "string" and "format" not in made:
        made["maxLength"] = MAX_TEXT
    if made.get("type") == "object":
        made["properties"] = {}
    return made


def _is_quantity(schema: Schema) -> bool:
    return {"type": "string"} in schema.get("anyOf", ())


def _union(arms: list[Schema]) -> Schema:
    """Give whole number or text where that says it; else anything, which the scheduler then looks at."""
    texts = [arm for arm in arms if arm.get("type") == "string"]
    if len(texts) != 1 or any(arm.get("type") in ("object", "array") or "$ref" in arm for arm in arms):
        return {"x-kubernetes-preserve-unknown-fields": True}
    made: Schema = {_INT_OR_STRING: True}
    made["maxLength"] = MAX_SCALAR
    if "pattern" in texts[0]:
        made["pattern"] = texts[0]["pattern"]
    if {"const": 0} in arms:
        made |= {"minimum": 0, "maximum": 0}
    for arm in arms:
        made |= {key: arm[key] for key in ("minimum", "maximum") if key in arm}
    return made
