"""The search for victims, and the play-through that a set has to pass before anything of it is evicted.

Eight rooms, each of which talks to those below it:

=============  ====================================================================================
`aftermath`    what enabled causes would do next, for victims and against contenders
`passes`       contenders of one cause in turn, from the bounds to the plan
`recording`    the evictions of a cycle so far, and how a set is written into the plan
`search`       the best set of one contender: greedily, then among all subsets of a few pieces
`dry_run`      what a set leads to, played through in a scenario
`bounds`       what no set can do or cost less than
`candidates`   which pieces there are for a contender, and what preemptible work holds
`rules`        what of a workload may be taken, which cause takes from which, which set is best
=============  ====================================================================================
"""
