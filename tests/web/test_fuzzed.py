"""Random requests to the API, made from its own document: answers as documented, never a server's error."""

import pytest
from hypothesis import HealthCheck, given, settings
from tests.effort import THOROUGH, tries
from tests.web.consoles import hostile, served, small


@pytest.mark.parametrize("cluster", [small, hostile])
def test_answers_are_as_documented(cluster):
    import schemathesis  # noqa: PLC0415  it takes two seconds, of every worker

    with served(cluster()) as address:
        schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
        operations = [found.ok() for found in schema.get_all_operations()]
        for operation in operations:
            _fuzz(operation)
        assert len(operations) >= 9


def _checks():
    from schemathesis.checks import not_a_server_error  # noqa: PLC0415
    from schemathesis.specs.openapi import checks  # noqa: PLC0415

    return [not_a_server_error, checks.status_code_conformance, checks.content_type_conformance,
            checks.response_schema_conformance]  # fmt: skip


def _fuzz(operation):
    checks = _checks()

    @settings(max_examples=tries(10, 300), deadline=None, derandomize=not THOROUGH,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(operation.as_strategy())
    def holds(case):
        case.call_and_validate(checks=checks, timeout=60)

    holds()
