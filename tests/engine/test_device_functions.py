"""The functions of selectors, each with a case of which the answer is Kubernetes' own."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.device_expressions import ATTRIBUTES, CAPACITY, DOMAIN, EVALUATED, NOT_EVALUATED

from tenure.engine.devices.selector_form import DeviceSelectorError, SelectorForm
from tenure.engine.devices.selectors import CompiledSelector
from tenure.model.devices import Device
from tenure.model.fields.records import record_of
from tenure.model.values.report import ProblemReport

DEVICE = record_of(Device).decode(
    {"name": "d", "attributes": ATTRIBUTES, "capacity": CAPACITY}, None, ProblemReport()
)  # fmt: skip


@pytest.mark.parametrize("expression", EVALUATED)
def test_an_expression_gives_what_kubernetes_makes_of_it(expression):
    """An evaluation that fails there fails here, and says why."""
    program = CompiledSelector(expression)
    if EVALUATED[expression] is None:
        with pytest.raises(DeviceSelectorError):
            program.matches(DOMAIN, DEVICE)
    else:
        assert program.matches(DOMAIN, DEVICE) is EVALUATED[expression]


@pytest.mark.parametrize("expression", NOT_EVALUATED)
def test_a_function_that_is_not_evaluated_is_named(expression):
    """The reason of the pod that waits says which function it is."""
    with pytest.raises(DeviceSelectorError, match=NOT_EVALUATED[expression].replace(".", r"\.")):
        CompiledSelector(expression)


def test_a_long_text_is_not_searched_again_and_again():
    """Kubernetes takes it; for each device it takes as long as many thousands of others."""
    with pytest.raises(DeviceSelectorError, match="goes through lists"):
        CompiledSelector(f'[1, 2].all(a, [3, 4].all(b, !"{"x" * 3000}".matches("(x|y)*z")))')


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(1000000000).size() > 0",
        "lists.range(99).map(x, lists.range(99)).flatten().distinct().size() > 0",
        f"sets.contains([{','.join(map(str, range(900)))}], [1])",
        f'"{"a" * 5000}".find("(a*)*(a*)*b") == ""',
        "[1].map(a, lists.range(99).map(b, lists.range(99).map(c, lists.range(99)))).size() > 0",
        "cel.bind(a, [1, 2], cel.bind(b, a + a, cel.bind(c, b + b, c.distinct().size() > 0)))",
    ],
)
def test_an_expression_ends_soon_whatever_it_asks_for(expression):
    """It is refused by its form, or ends soon and in little memory, also on a slow machine."""
    began = time.process_time()
    with suppress(DeviceSelectorError):
        CompiledSelector(expression).matches(DOMAIN, DEVICE)
    assert time.process_time() - began < 30


TEN = "[1,2,3,4,5,6,7,8,9,10]"
HEAVY = " && ".join(['quantity("1Gi").isGreaterThan(quantity("1"))'] * 38)


@pytest.mark.parametrize(
    "expression",
    [
        f"{TEN}.all(a, {TEN}.all(b, {TEN}.all(c, [1, 2, 3].all(d, {HEAVY}))))",
        f'r"\\".size() == 1 && {TEN}.all(a, {TEN}.all(b, {TEN}.all(c, {HEAVY}))) && "" == ""',
        f'true // "\n && {TEN}.all(a, {TEN}.all(b, {TEN}.all(c, {HEAVY})))//"',
        f'"""""".size() == 0 && {TEN}.all(a, {TEN}.all(b, {TEN}.all(c, {HEAVY}))) && .size() == 0',
        f'"a".replace("", "{"a" * 4500}").matches("{"a?" * 2000}b")',
    ],
)
def test_an_expression_that_takes_seconds_for_a_device_is_not_evaluated(expression):
    """Whatever text its loops are hidden behind: on a cluster of thousands of devices it would take hours."""
    with pytest.raises(DeviceSelectorError, match="could take too long"):
        CompiledSelector(expression)


@given(st.sampled_from(list(EVALUATED)), st.data())
def test_devices_of_which_an_expression_reads_the_same_get_the_same_answer(expression, data):
    """So it is asked once about all of them."""

    def drawn():
        driver = data.draw(st.sampled_from([DOMAIN, "other.org"]))
        names = data.draw(st.sets(st.sampled_from([*ATTRIBUTES, "uuid", f"{DOMAIN}/numa", "other.org/fast"])))
        values = {"uuid": ATTRIBUTES["model"], f"{DOMAIN}/numa": {"int": 4}, "other.org/fast": {"bool": False}}
        attributes = {name: values.get(name) or ATTRIBUTES[name] for name in sorted(names)}
        made = {"name": "d", "attributes": attributes, "capacity": data.draw(st.sampled_from([CAPACITY, {}]))}
        found = record_of(Device).decode(made, None, ProblemReport())
        return driver, replace(found, is_shared=data.draw(st.booleans()))

    def answer(driver, device):
        try:
            return program.matches(driver, device)
        except DeviceSelectorError as error:
            return str(error)

    program, one, other = CompiledSelector(expression), drawn(), drawn()
    seen = program.form.seen_of(*one)
    if seen is not None and seen == program.form.seen_of(*other):
        assert answer(*one) == answer(*other)


@pytest.mark.parametrize(
    ("expression", "is_told"),
    [
        (f'device.attributes["{DOMAIN}"].model == "x" && device.driver != "y"', True),
        (f"device.capacity['{DOMAIN}']['memory'].compareTo(quantity('1Gi')) > 0", True),
        (f'has(device.attributes["{DOMAIN}"].model)', True),
        (f'"model" in device.attributes["{DOMAIN}"]', False),
        (f'device.attributes["{DOMAIN}"].?model.hasValue()', False),
        ("[1].all(device, device == 1)", False),
        ("cel.bind(d, device, true)", False),
    ],
)
def test_what_an_expression_reads_is_told_from_its_form(expression, is_told):
    """Where it is not said in so many words, it may be anything."""
    CompiledSelector(expression)
    assert (SelectorForm(expression).seen_of(DOMAIN, DEVICE) is not None) == is_told
