"""Makes ``simulation.svg`` anew: a generated workload on eight nodes, simulated and drawn by Tenure itself."""
# ruff: noqa: INP001  a script, not a package

from dataclasses import replace
from pathlib import Path

from tenure.model.documents.files import write_atomically
from tenure.model.settings import Settings
from tenure.report.picture import simulation_picture
from tenure.simulator.generate import GeneratorConfig, cluster_for, generate
from tenure.simulator.metrics import summarize
from tenure.simulator.outcomes import outcomes_of
from tenure.simulator.run import Simulation, SimulationSetup, prepare


def main() -> None:
    """Generate, simulate, draw, write."""
    config = GeneratorConfig(jobs=400, capacity=64, queues=4, load=0.85)
    trace = generate(config, seed=7)
    cluster = replace(prepare(cluster_for(config), trace), settings=Settings(actions=("allocate",)))
    result = Simulation(SimulationSetup(cluster), trace).run()
    outcomes = outcomes_of(result.log, trace)
    summary = summarize(outcomes, trace, cluster.nodes, violations=0, wall_s=0.0)
    target = Path(__file__).with_name("simulation.svg")
    write_atomically(target, simulation_picture(outcomes, cluster, summary))


if __name__ == "__main__":
    main()
