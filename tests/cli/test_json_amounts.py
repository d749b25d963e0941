"""Amounts in JSON are said in one way, whichever command prints them."""

import json

import pytest

from tenure.cli.main import main
from tenure.engine.plan import Reason
from tenure.model.values.resources import GPU

EXAMPLE = "examples/cluster.yaml"


def printed(capsys, *arguments):
    with pytest.raises(SystemExit):
        main([*arguments, "--format", "json"])
    return json.loads(capsys.readouterr().out)


def test_explain_says_the_reasons_that_plan_says_with_the_same_numbers(capsys):
    pending = printed(capsys, "plan", EXAMPLE)["pending"]
    compared = 0
    for waiting in pending:
        own = {reason["code"]: reason for reason in waiting["reasons"]}
        for reason in printed(capsys, "explain", EXAMPLE, waiting["workload"])["reasons"]:
            if reason["code"] in own and "resource" in reason:
                assert reason == own[reason["code"]]
                compared += 1
    assert compared


def test_whole_gpus_are_said_whole_and_parts_in_thousandths_and_nothing_is_changed_by_saying_it():
    whole = Reason("OverMax", "…", {"resource": GPU, "asked": 8000, "max": 24000})
    assert whole.plain() == {"code": "OverMax", "message": "…", "resource": GPU, "asked": 8, "max": 24}
    assert whole.numbers["asked"] == 8000
    part = Reason("OverMax", "…", {"resource": GPU, "asked": 500, "max": 24000})
    assert part.plain() == {"code": "OverMax", "message": "…", "resource": "milliGpu", "asked": 500, "max": 24000}
    assert Reason("OverMax", "…", {"resource": "cpu", "asked": 8000}).plain()["asked"] == 8000
