"""The solver's own process: programs come in, solutions go out, until the input ends.

HiGHS stands alone, so that it can be killed without harm, and so that nothing else has to load it.
"""

from __future__ import annotations

import io
import os
import struct
import sys
import time
from typing import Any, BinaryIO

import numpy as np

HEADER = struct.Struct("<Q")
OPTIMAL, LIMIT, INFEASIBLE = 0, 1, 2


def send(stream: BinaryIO, message: dict[str, Any]) -> None:
    """Write arrays by name, with their length before them."""
    stream.write(frame(message))
    stream.flush()


def frame(message: dict[str, Any]) -> bytes:
    """Give arrays by name as bytes, with their length before them."""
    buffer = io.BytesIO()
    np.savez(buffer, **message)
    data = buffer.getvalue()
    return HEADER.pack(len(data)) + data


def parse(data: bytes) -> dict[str, Any]:
    """Read what `frame` wrote, without the length."""
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def receive(stream: BinaryIO) -> dict[str, Any] | None:
    """Read one message; None at the end."""
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    (length,) = HEADER.unpack(header)
    return parse(stream.read(length))


def solve(message: dict[str, Any]) -> dict[str, Any]:
    """Solve one program: status, values (empty if none were found), bound and the number of nodes searched.

    ``start`` has values to begin with, NaN where none is known; empty if there are none. A relaxed program is solved as
    a linear one, which needs no start.
    """
    import highspy  # noqa: PLC0415  takes long to load

    begin = time.process_time()
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    options: dict[str, bool | int | float | str] = {
        "output_flag": False,
        "threads": 1,
        "mip_rel_gap": float(message["gap"]),  # the default of 1e-4 stops short of the optimum
        "mip_max_nodes": int(message["node_limit"]),
        "time_limit": float(message["time_limit"]),
    }
    relaxed = bool(message["relaxed"])
    if not relaxed and not message["loose"]:
        # where `assemble` has done their work they take half of a small program's time
        options |= {"presolve": "off", "mip_heuristic_run_feasibility_jump": False}
    for name, value in options.items():
        solver.setOptionValue(name, value)
    solver.passModel(_model(highspy, message))
    known = np.flatnonzero(np.isfinite(message["start"])).astype(np.int32)
    if len(known) and not relaxed:
        solver.setSolution(len(known), known, message["start"][known])
    solver.run()
    status, info = solver.getModelStatus(), solver.getInfo()
    found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    infeasible = status == highspy.HighsModelStatus.kInfeasible
    optimal = status in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kModelEmpty)
    bound = info.mip_dual_bound
    if relaxed:
        bound = info.objective_function_value if optimal else -np.inf
    return {
        "status": np.int64(INFEASIBLE if infeasible else OPTIMAL if optimal else LIMIT),
        "x": np.array(solver.getSolution().col_value) if found else np.zeros(0),
        "bound": np.float64(bound if not infeasible else np.inf),
        "nodes": np.int64(max(0, info.mip_node_count)),
        "seconds": np.float64(time.process_time() - begin),
    }


def _model(highspy: Any, message: dict[str, Any]) -> Any:
    """Give the program as the solver takes it: column by column, entries of one place added up."""
    height, width = len(message["low"]), len(message["cost"])
    place = message["columns"].astype(np.int64) * height + message["rows"]
    order = np.argsort(place, kind="stable")
    unique, first = np.unique(place[order], return_index=True)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = width, height
    model.col_cost_, model.col_lower_, model.col_upper_ = message["cost"], np.zeros(width), message["upper"]
    model.row_lower_, model.row_upper_ = message["low"], message["high"]
    if not message["relaxed"]:
        kinds = [highspy.HighsVarType.kInteger] * width
        for column in message["broken"].tolist():
            kinds[column] = highspy.HighsVarType.kContinuous
        model.integrality_ = kinds
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = np.searchsorted(unique, np.arange(width + 1) * height).astype(np.int32)
    model.a_matrix_.index_ = (unique % height).astype(np.int32)
    model.a_matrix_.value_ = np.add.reduceat(message["values"][order], first) if len(first) else np.zeros(0)
    return model


def main() -> None:
    """Answer one message after the other."""
    with _answers() as answers:
        import highspy  # noqa: F401, PLC0415  loaded while the other side is still busy with its own

        while (message := receive(sys.stdin.buffer)) is not None:
            send(answers, solve(message))


def _answers() -> BinaryIO:
    """Keep standard output for answers alone: HiGHS 1.16 greets there when it is loaded, which would be read as one."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


if __name__ == "__main__":
    main()
