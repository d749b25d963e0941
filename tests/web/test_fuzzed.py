"""Random requests to the API, made from its own document: answers as documented, never a server's error."""

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.effort import THOROUGH, tries
from tests.web.consoles import hostile, served, small

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.mark.parametrize("cluster", [small, hostile])
def test_answers_are_as_documented(cluster):
    with served(cluster()) as address:
        schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
        operations = [found.ok() for found in schema.get_all_operations()]
        for operation in operations:
            _fuzz(operation)
        assert len(operations) >= 9


def _fuzz(operation):
    @settings(max_examples=tries(10, 300), deadline=None, derandomize=not THOROUGH,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(operation.as_strategy())
    def holds(case):
        case.call_and_validate(checks=CHECKS, timeout=60)

    holds()
