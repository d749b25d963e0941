"""The JSON schema says of files what the loader says of them."""

import json
import re

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from tests.effort import tries
from tests.model.strategies import clusters

from tenure.model.file.dump import cluster_to_plain
from tenure.model.file.schema import json_schema

SCHEMA = json_schema()
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}


def accepts(schema, value):
    """Validate by the part of JSON Schema that ours uses; an unknown keyword is a failure of this test."""
    return all(CHECKS[keyword](schema, argument, value) for keyword, argument in schema.items())


def _type(_schema, name, value):
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def _resolve(_schema, reference, value):
    return accepts(SCHEMA["$defs"][reference.removeprefix("#/$defs/")], value)


def _names(_schema, names, value):
    return not isinstance(value, dict) or all(accepts(names, key) for key in value)


def _additional(schema, rest, value):
    if not isinstance(value, dict):
        return True
    others = [item for key, item in value.items() if key not in schema.get("properties", {})]
    return not others if rest is False else all(accepts(rest, item) for item in others)


CHECKS = {
    "type": _type,
    "$ref": _resolve,
    "description": lambda *_: True,
    "format": lambda *_: True,
    "const": lambda _, word, value: value == word,
    "enum": lambda _, words, value: value in words,
    "anyOf": lambda _, schemas, value: any(accepts(schema, value) for schema in schemas),
    "minimum": lambda _, low, value: value >= low,
    "maximum": lambda _, high, value: value <= high,
    "exclusiveMinimum": lambda _, low, value: value > low,
    "maxLength": lambda _, length, value: len(value) <= length,
    "minLength": lambda _, length, value: len(value) >= length,
    "pattern": lambda _, pattern, value: not isinstance(value, str) or re.search(pattern, value) is not None,
    "maxProperties": lambda _, count, value: len(value) <= count,
    "uniqueItems": lambda _schema, _wanted, value: len(value) == len({json.dumps(item) for item in value}),
    "items": lambda _, items, value: all(accepts(items, item) for item in value),
    "required": lambda _, keys, value: all(key in value for key in keys),
    "properties": lambda _, known, value: all(accepts(known[key], value[key]) for key in value if key in known),
    "propertyNames": _names,
    "additionalProperties": _additional,
}


def accepts_file(value):
    return any(accepts(root, value) for root in SCHEMA["anyOf"])


@hypothesis_settings(max_examples=tries(25, 250), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(clusters())
def test_it_accepts_every_cluster_that_is_written(cluster):
    assert accepts_file(cluster_to_plain(cluster))


@pytest.mark.parametrize(
    "value",
    [
        {"nodes": [{"name": "n", "count": 3}], "workloads": [{"name": "w", "replicas": 2, "gpuFraction": "500m"}]},
        {"kind": "SchedulerConfig", "scheduler": {"reclaimMinRuntime": 0, "placement": {"binpack": 1}}},
        {"workloads": [{"name": "w", "hostPorts": [80, {"hostPort": 81}], "tolerations": [{"tolerationSeconds": 5}]}]},
    ],
)
def test_it_accepts_the_short_forms(value):
    assert accepts_file(value)


@pytest.mark.parametrize(
    "value",
    [
        {"nodse": []},
        {"nodes": [{}]},
        {"nodes": [{"name": ""}]},
        {"nodes": [{"name": "n", "count": 0}]},
        {"queues": [{"name": "q", "reclaimMinRuntime": 600}]},
        {"queues": [{"name": "q", "reclaimMinRuntime": "-5m"}]},
        {"queues": [{"name": "q", "priority": 2**31}]},
        {"workloads": [{"name": "w", "tasks": [{"name": "t", "phase": "running"}]}]},
        {"scheduler": {"rescheduler": {"exact": {"timelimit": "5s"}}}},
        {"scheduler": {"actions": ["allocate", "allocate"]}},
        {"scheduler": {"placement": {"best": 1}}},
        [],
    ],
)
def test_it_refuses_what_the_loader_refuses(value):
    assert not accepts_file(value)


def test_it_is_json_and_all_its_references_lead_somewhere():
    text = json.dumps(SCHEMA)
    references = set(re.findall(r'"#/\$defs/([^"]+)"', text))
    assert references <= set(SCHEMA["$defs"])
    assert references
    assert all(definition for definition in SCHEMA["$defs"].values())
