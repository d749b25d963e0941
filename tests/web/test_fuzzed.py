"""Random requests to the API, made from its own document: answers as documented, never a server's error."""

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.web.consoles import hostile, served, small

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module", params=["small", "hostile"])
def documented(request):
    with served({"small": small, "hostile": hostile}[request.param]()) as address:
        yield schemathesis.openapi.from_url(f"{address}/openapi.json")


schema = schemathesis.pytest.from_fixture("documented")


@schema.parametrize()
@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_answers_are_as_documented(case):
    case.call_and_validate(checks=CHECKS, timeout=60)
