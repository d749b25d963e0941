"""The functions of selectors, each with a case of which the answer is Kubernetes' own."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from tests.engine.device_expressions import ATTRIBUTES, CAPACITY, DOMAIN, EVALUATED, NOT_EVALUATED

from tenure.engine.device_selectors import CompiledSelector, DeviceSelectorError
from tenure.model.devices import Device
from tenure.model.records import record_of
from tenure.model.report import ProblemReport

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
