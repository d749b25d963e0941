"""Seeded workloads after a published model, for simulations without a trace."""

from __future__ import annotations

from tenure.simulator.generate.config import DEFAULT_CAPACITY, GeneratorConfig, TooManyJobsError
from tenure.simulator.generate.workload import cluster_for, generate

__all__ = ["DEFAULT_CAPACITY", "GeneratorConfig", "TooManyJobsError", "cluster_for", "generate"]
