"""Plain values as YAML that people read: in the order of the fields, what is innermost on one line."""

from __future__ import annotations

from typing import IO, Any

import yaml

from tenure.model.values.scalars import resolve_scalar

_TEXT = "tag:yaml.org,2002:str"
_NUMBER = "tag:yaml.org,2002:float"
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class _Dumper(yaml.CSafeDumper):
    """Writes equal values out instead of naming them, and times without quotes: the loader takes them as text."""

    yaml_implicit_resolvers = {  # noqa: RUF012  the class's own way to hold them
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
        for first, resolvers in yaml.CSafeDumper.yaml_implicit_resolvers.items()
    }

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        """Tell what a word without quotes would be read as: by other readers (YAML 1.1), or else by our own."""
        tag = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]
        if tag == _TEXT and kind is yaml.ScalarNode and implicit[0] and not isinstance(resolve_scalar(value), str):
            return _NUMBER
        return tag

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def write_yaml(plain: dict[str, Any], stream: IO[str]) -> None:
    """Write plain values."""
    yaml.dump(plain, stream, _Dumper, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)
