"""The solver's own process: programs come in, solutions go out, until the input ends.

It stands alone, so that it can be killed without harm, and so that nothing else has to load scipy.
"""

from __future__ import annotations

import io
import struct
import sys
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
    """Solve one program: status, values (empty if none were found), bound and the number of nodes searched."""
    from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415  takes long to load
    from scipy.sparse import csc_array  # noqa: PLC0415

    shape = (len(message["low"]), len(message["cost"]))
    matrix = csc_array((message["values"], (message["rows"], message["columns"])), shape=shape)
    result = milp(
        message["cost"],
        integrality=np.ones(shape[1], np.int64),
        bounds=Bounds(np.zeros(shape[1]), message["upper"]),
        constraints=LinearConstraint(matrix, message["low"], message["high"]),
        options={
            "mip_rel_gap": 0.0,  # the default of 1e-4 stops short of the optimum
            "node_limit": int(message["node_limit"]),
            "time_limit": float(message["time_limit"]),
        },
    )
    bound = result.mip_dual_bound
    return {
        "status": np.int64(result.status),
        "x": np.zeros(0) if result.x is None else result.x,
        "bound": np.float64(-np.inf if bound is None else bound),
        "nodes": np.int64(result.mip_node_count or 0),
    }


def main() -> None:
    """Answer one message after the other."""
    import scipy.optimize  # noqa: F401, PLC0415  loaded while the other side is still busy with its own

    while (message := receive(sys.stdin.buffer)) is not None:
        send(sys.stdout.buffer, solve(message))


if __name__ == "__main__":
    main()
