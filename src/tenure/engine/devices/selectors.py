"""Selectors of devices: expressions over ``device`` in the Common Expression Language, as Kubernetes reads them.

Google's implementation evaluates them. It has no access to anything but the device, and ends after 10,000 iterations;
what an expression may make of text, and how long it may take, is bounded before it is compiled.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from cel_expr_python import cel

from tenure.engine.devices.functions import EXTENSIONS, amount, declared, version
from tenure.engine.devices.selector_form import DeviceSelectorError, SelectorForm
from tenure.model.devices import Device, DeviceAttribute


class CompiledSelector:
    """A selector that was compiled once, and is evaluated device by device."""

    def __init__(self, expression: str) -> None:
        self.form = SelectorForm(expression)
        try:
            self._program = _environment().compile(expression)
        except (RuntimeError, ValueError) as error:
            raise DeviceSelectorError(f"cannot be compiled: {_first_line(error)}") from None
        if self._program.return_type() not in (cel.Type.BOOL, cel.Type.DYN):
            raise DeviceSelectorError("gives no truth value; compare what it gives with something")

    def matches(self, driver: str, device: Device) -> bool:
        """Tell whether a device of a driver is taken.

        Raises
        ------
        DeviceSelectorError
            If that cannot be told: an attribute is missing, or of another type.
        """
        try:
            found = self._program.eval(data={"device": _seen(driver, device, self.form.domains)})
        except RuntimeError as error:  # too many iterations
            raise DeviceSelectorError(_first_line(error)) from None
        if found.type() == cel.Type.ERROR:
            raise DeviceSelectorError(_first_line(found.value()))
        if found.type() != cel.Type.BOOL:
            raise DeviceSelectorError("gives no truth value")
        return bool(found.value())


@lru_cache(maxsize=4096)
def compiled(expression: str) -> CompiledSelector | DeviceSelectorError:
    """Give a compiled selector, or what is wrong with it."""
    try:
        return CompiledSelector(expression)
    except DeviceSelectorError as error:
        return error


def _first_line(error: object) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no reason was given")[:200]


# -- what an expression sees -------------------------------------------------------------------------------------------


def _seen(driver: str, device: Device, domains: tuple[str, ...]) -> dict[str, Any]:
    """Give a device as expressions see it: attributes and capacities by domain and name."""
    return {
        "driver": driver,
        "allowMultipleAllocations": device.is_shared,
        "attributes": _by_domain(driver, {name: _plain(a) for name, a in device.attributes.items()}, domains),
        "capacity": _by_domain(driver, {name: amount(c.value) for name, c in device.capacity.items()}, domains),
    }


def _by_domain(driver: str, values: Mapping[str, Any], domains: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {domain: {} for domain in domains}
    for name, value in values.items():
        domain, _, rest = name.rpartition("/")
        found.setdefault(domain or driver, {})[rest] = value
    return found


def _plain(attribute: DeviceAttribute) -> Any:
    for value in (attribute.number, attribute.flag, attribute.text):
        if value is not None:
            return value
    try:
        return version(attribute.version or "")
    except ValueError as error:
        raise DeviceSelectorError(str(error)) from None


@cache
def _environment() -> Any:
    """Give the environment of all selectors, made once: the language with Kubernetes' functions."""
    extensions = "".join(f"- name: {name}\n" for name in EXTENSIONS)
    return cel.NewEnv(
        config=cel.NewEnvConfigFromYaml(f"name: devices\nextensions:\n{extensions}"),
        variables={"device": cel.Type.Map(cel.Type.STRING, cel.Type.DYN)},
        functions=declared(),
    )
