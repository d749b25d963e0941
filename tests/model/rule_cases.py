"""Cluster files that break one rule each: the text, the path of the problem, and some of its words."""

QUEUES = {
    "a parent that is not there": (
        "queues: [{name: research}, {name: b, parent: reserch}]",
        "queues[1].parent",
        "there is no queue reserch; did you mean research?",
    ),
    "a queue below itself": (
        "queues: [{name: a, parent: a}]",
        "queues[0].parent",
        "queue a is its own ancestor: a < a",
    ),
    "a cycle of three": (
        "queues: [{name: a, parent: b}, {name: b, parent: c}, {name: c, parent: a}]",
        "queues[0].parent",
        "a < b < c < a",
    ),
    "two queues of one name": ("queues: [{name: a}, {name: a}]", "queues[1].name", "queue a is there twice"),
    "guaranteed over max": (
        "queues: [{name: a, guaranteed: {cpu: 3}, max: {cpu: 2500m}}]",
        "queues[0].guaranteed.cpu",
        "3 is more than the queue's max of 2500m",
    ),
    "a max over the parent's": (
        "queues: [{name: p, max: {cpu: 1}}, {name: a, parent: p, max: {cpu: 2}}]",
        "queues[1].max.cpu",
        "2 is more than 1, the max of queue p above it",
    ),
    "a max over that of a queue further up": (
        "queues: [{name: g, max: {cpu: 1}}, {name: p, parent: g}, {name: a, parent: p, max: {cpu: 2}}]",
        "queues[2].max.cpu",
        "the max of queue g above it",
    ),
    "children that are guaranteed more than the parent's max": (
        (
            "queues: [{name: p, max: {nvidia.com/gpu: 3}}, {name: a, parent: p, guaranteed: {nvidia.com/gpu: 2}},"
            " {name: b, parent: p, guaranteed: {nvidia.com/gpu: 1500m}}]"
        ),
        "queues[0].max.nvidia.com/gpu",
        "guaranteed 3500m together, more than its max of 3",
    ),
    "grandchildren that are guaranteed more than a max, with nothing set in between": (
        "queues: [{name: g, max: {cpu: 1}}, {name: p, parent: g}, {name: a, parent: p, guaranteed: {cpu: 2}}]",
        "queues[0].max.cpu",
        "guaranteed 2 together, more than its max of 1",
    ),
    "a negative amount": ("queues: [{name: a, max: {cpu: -1}}]", "queues[0].max.cpu", "-1 is negative"),
    "a negative minimum runtime": (
        "queues: [{name: a, reclaimMinRuntime: -5m}]",
        "queues[0].reclaimMinRuntime",
        "-5m is negative",
    ),
    "a minimum runtime without unit": (
        "queues: [{name: a, preemptMinRuntime: 600}]",
        "queues[0].preemptMinRuntime",
        "600 has no unit; write 600s",
    ),
    "a negative weight": ("queues: [{name: a, weight: -1}]", "queues[0].weight", "but 0 to 1e+12 is expected"),
    "a weight by resource that is text": (
        "queues: [{name: a, weight: {cpu: much}}]",
        "queues[0].weight.cpu",
        "'much' (text), but a number",
    ),
    "an infinite weight": ("queues: [{name: a, weight: .inf}]", "queues[0].weight", "is inf"),
    "a policy that is not there": (
        "queues: [{name: a, preemptionPolicy: fenced}]",
        "queues[0].preemptionPolicy",
        "one of default | fence | disabled is expected; did you mean fence?",
    ),
    "an unknown field": ("queues: [{name: a, quota: 1}]", "queues[0].quota", "unknown key"),
    "a priority beyond int32": (
        "queues: [{name: a, priority: 2147483648}]",
        "queues[0].priority",
        "-2147483648 to 2147483647",
    ),
    "a queue without a name": ("queues: [{parent: a}]", "queues[0].name", "is missing"),
}

WORKLOADS = {
    "a queue that is not there": (
        "queues: [{name: vision}]\nworkloads: [{name: w, queue: vison}]",
        "workloads[0].queue",
        "did you mean vision?",
    ),
    "a queue where none are configured": (
        "workloads: [{name: w, queue: vision}]",
        "workloads[0].queue",
        "there is no queue vision",
    ),
    "a queue that is no leaf": (
        "queues: [{name: a}, {name: b, parent: a}]\nworkloads: [{name: w, queue: a}]",
        "workloads[0].queue",
        "workloads live in leaf queues only",
    ),
    "no queue, where some are configured": (
        "queues: [{name: a}]\nworkloads: [{name: w}]",
        "workloads[0].queue",
        "names no queue, and there is no leaf queue default; name one of the leaf queues: a",
    ),
    "two workloads of one name": (
        "workloads: [{name: w}, {name: w, namespace: default}]",
        "workloads[1].name",
        "workload default/w is there twice, first as workloads[0]",
    ),
    "two tasks of one name": (
        "workloads: [{name: w, tasks: [{name: t}, {name: t}]}]",
        "workloads[0].tasks[1].name",
        "task t is there twice",
    ),
    "a priority above int32": ("workloads: [{name: w, priority: 2147483648}]", "workloads[0].priority", "expected"),
    "a priority below int32": ("workloads: [{name: w, priority: -2147483649}]", "workloads[0].priority", "expected"),
    "a priority that is text": ('workloads: [{name: w, priority: "5"}]', "workloads[0].priority", "whole number"),
    "a core of nobody": ("workloads: [{name: w, minMember: 0}]", "workloads[0].minMember", "is 0"),
    "fewer replicas than tasks": (
        "workloads: [{name: w, replicas: 1, tasks: [{name: a}, {name: b}]}]",
        "workloads[0].replicas",
        "2 tasks are listed",
    ),
    "negative replicas": ("workloads: [{name: w, replicas: -1}]", "workloads[0].replicas", "is -1"),
    "so many replicas that memory would end": (
        "workloads: [{name: w, replicas: 2000000000}]",
        "workloads[0].replicas",
        "more than 300,000 tasks",
    ),
    "1e30 CPUs": ("workloads: [{name: w, requests: {cpu: 1e30}}]", "workloads[0].requests.cpu", "is too large"),
    "a part of more than one GPU": (
        "workloads: [{name: w, gpuFraction: 1500m}]",
        "workloads[0].gpuFraction",
        "a part of one GPU is 1m to 1000m",
    ),
    "no part of a GPU": ("workloads: [{name: w, gpuFraction: 0}]", "workloads[0].gpuFraction", "1m to 1000m"),
    "a fraction beside GPU memory": (
        "workloads: [{name: w, gpuFraction: 1m, gpuMemory: 1Gi}]",
        "workloads[0].gpuFraction",
        "keep one of the two",
    ),
    "a fraction beside whole GPUs": (
        "workloads: [{name: w, tasks: [{name: t, gpuFraction: 1m, requests: {nvidia.com/gpu: 1}}]}]",
        "workloads[0].tasks[0].gpuFraction",
        "not both",
    ),
    "devices of no part": ("workloads: [{name: w, gpuDevices: 2}]", "workloads[0].gpuDevices", "add gpuFraction"),
    "a subgroup that is not there": (
        "workloads: [{name: w, subGroups: [{name: left}], tasks: [{name: t, subGroup: lft}]}]",
        "workloads[0].tasks[0].subGroup",
        "did you mean left?",
    ),
    "a task without a subgroup": (
        "workloads: [{name: w, subGroups: [{name: left}], tasks: [{name: t}]}]",
        "workloads[0].tasks[0].subGroup",
        "names no subGroup",
    ),
    "a task in a subgroup that has some itself": (
        "workloads: [{name: w, subGroups: [{name: a, subGroups: [{name: b}]}], tasks: [{name: t, subGroup: a}]}]",
        "workloads[0].tasks[0].subGroup",
        "name one of b",
    ),
    "two subgroups of one name": (
        "workloads: [{name: w, tasks: [], subGroups: [{name: a, subGroups: [{name: b}]}, {name: b}]}]",
        "workloads[0].subGroups[1].name",
        "subgroup b is there twice",
    ),
    "more subgroups needed than there are": (
        "workloads: [{name: w, tasks: [], minSubGroup: 2, subGroups: [{name: a}]}]",
        "workloads[0].minSubGroup",
        "there are 1 subGroups",
    ),
    "more needed of a subgroup's than there are": (
        "workloads: [{name: w, tasks: [], subGroups: [{name: a, minSubGroup: 2, subGroups: [{name: b}]}]}]",
        "workloads[0].subGroups[0].minSubGroup",
        "is 2",
    ),
    "a subgroup with members and subgroups": (
        "workloads: [{name: w, tasks: [], subGroups: [{name: a, minMember: 1, subGroups: [{name: b}]}]}]",
        "workloads[0].subGroups[0].minMember",
        "has one of the two",
    ),
    "a level that is none": ("workloads: [{name: w, topology: {}}]", "workloads[0].topology", "names no level"),
    "a name with a slash": ("workloads: [{name: a/b}]", "workloads[0].name", "no '/'"),
    "a label that is a number": ("workloads: [{name: w, labels: {a: 1}}]", "workloads[0].labels.a", "put it in quotes"),
    "a selector of nothing": (
        (
            "workloads: [{name: w, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
            "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In}]}]}}}}]"
        ),
        (
            "workloads[0].affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
            ".matchExpressions[0].values"
        ),
        "In needs at least one value",
    ),
    "a weight of a term beyond 100": (
        (
            "workloads: [{name: w, affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "
            "[{weight: 101, preference: {}}]}}}]"
        ),
        "workloads[0].affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight",
        "1 to 100",
    ),
    "a toleration of nothing": (
        "workloads: [{name: w, tolerations: [{value: x}]}]",
        "workloads[0].tolerations[0].operator",
        "Exists",
    ),
    "a budget without a bound": (
        "disruptionBudgets: [{name: b, selector: {}}]",
        "disruptionBudgets[0]",
        "one of minAvailable and maxUnavailable",
    ),
    "a budget with two bounds": (
        "disruptionBudgets: [{name: b, minAvailable: 1, maxUnavailable: 10%}]",
        "disruptionBudgets[0]",
        "not both",
    ),
    "a percentage that is none": (
        "disruptionBudgets: [{name: b, minAvailable: much%}]",
        "disruptionBudgets[0].minAvailable",
        "a percentage such as 30%",
    ),
}

NODE = "nodes: [{name: n, gpuMemory: 10Gi, allocatable: {nvidia.com/gpu: 2, cpu: 4}}, {name: m}]\n"

PLACEMENT = {
    "two nodes of one name": ("nodes: [{name: n}, {name: n}]", "nodes[1].name", "node n is there twice"),
    "a node that a count makes once more": (
        "nodes: [{name: n, count: 2}, {name: n-1}]",
        "nodes[1].name",
        "node n-1 is there twice",
    ),
    "so many nodes that memory would end": ("nodes: [{name: n, count: 2000000000}]", "nodes[0].count", "more than"),
    "a count of none": ("nodes: [{name: n, count: 0}]", "nodes[0].count", "is 0"),
    "a task on a node that is not there": (
        NODE + "workloads: [{name: w, tasks: [{name: t, node: o}]}]",
        "workloads[0].tasks[0].node",
        "there is no node o",
    ),
    "a nomination on a node that is not there": (
        NODE + "workloads: [{name: w, tasks: [{name: t, nominated: {node: o}}]}]",
        "workloads[0].tasks[0].nominated.node",
        "there is no node o",
    ),
    "a fraction placed on a node without GPUs": (
        NODE + "workloads: [{name: w, tasks: [{name: t, node: m, devices: [0], gpuFraction: 500m}]}]",
        "workloads[0].tasks[0].devices",
        "node m has no nvidia.com/gpu",
    ),
    "a fraction placed nowhere in particular": (
        NODE + "workloads: [{name: w, tasks: [{name: t, node: n, gpuFraction: 500m}]}]",
        "workloads[0].tasks[0].node",
        "say which: devices: [0]",
    ),
    "a device out of range": (
        NODE + "workloads: [{name: w, tasks: [{name: t, node: n, devices: [2], gpuFraction: 500m}]}]",
        "workloads[0].tasks[0].devices",
        "names device 2, but node n has 2 GPUs",
    ),
    "a device named twice": (
        NODE + "workloads: [{name: w, tasks: [{name: t, node: n, devices: [1, 1], requests: {nvidia.com/gpu: 2}}]}]",
        "workloads[0].tasks[0].devices",
        "twice",
    ),
    "fewer devices than asked for": (
        NODE + "workloads: [{name: w, tasks: [{name: t, node: n, devices: [1], requests: {nvidia.com/gpu: 2}}]}]",
        "workloads[0].tasks[0].devices",
        "names 1 devices, but asks for 2",
    ),
    "devices of a task that asks for no GPU": (
        NODE + "workloads: [{name: w, tasks: [{name: t, node: n, devices: [1]}]}]",
        "workloads[0].tasks[0].devices",
        "asks for 0",
    ),
    "a device given away twice": (
        NODE + "workloads: [{name: w, tasks: [{name: t, node: n, devices: [1], requests: {nvidia.com/gpu: 1}},"
        " {name: u, node: n, devices: [1], gpuFraction: 1m}]}]",
        "workloads[0].tasks[1].devices",
        "no room left",
    ),
    "more memory than a device has left": (
        NODE + "workloads: [{name: w, tasks: [{name: t, node: n, devices: [0], gpuMemory: 6Gi},"
        " {name: u, node: n, devices: [0], gpuFraction: 500m}]}]",
        "workloads[0].tasks[1].devices",
        "no room left",
    ),
    "more memory than any device has": (
        NODE + "workloads: [{name: w, tasks: [{name: t, node: n, devices: [0], gpuMemory: 11Gi}]}]",
        "workloads[0].tasks[0].devices",
        "more than the 10Gi",
    ),
    "GPU memory on a node that does not say how much it has": (
        (
            "nodes: [{name: n, allocatable: {nvidia.com/gpu: 1}}]\n"
            "workloads: [{name: w, tasks: [{name: t, node: n, devices: [0], gpuMemory: 1Gi}]}]"
        ),
        "workloads[0].tasks[0].devices",
        "does not say its gpuMemory",
    ),
    "a running task without a node": (
        "workloads: [{name: w, tasks: [{name: t, phase: Running}]}]",
        "workloads[0].tasks[0].phase",
        "names no node",
    ),
    "a pending task with a node": (
        NODE + "workloads: [{name: w, tasks: [{name: t, phase: Pending, node: n}]}]",
        "workloads[0].tasks[0].node",
        "is Pending, but has a node",
    ),
    "a phase that is none": (
        "workloads: [{name: w, tasks: [{name: t, phase: running}]}]",
        "workloads[0].tasks[0].phase",
        "did you mean Running?",
    ),
}

SETTINGS = {
    "an unknown key three levels deep": (
        "scheduler: {rescheduler: {exact: {timelimit: 5s}}}",
        "scheduler.rescheduler.exact.timelimit",
        "unknown key; did you mean timeLimit?",
    ),
    "a boolean that is text": (
        "scheduler: {quotaPreemption: {enabled: yes}}",
        "scheduler.quotaPreemption.enabled",
        "true or false is expected",
    ),
    "an action named twice": ("scheduler: {actions: [allocate, allocate]}", "scheduler.actions[1]", "twice"),
    "an action that is none": ("scheduler: {actions: [alocate]}", "scheduler.actions[0]", "did you mean allocate?"),
    "weights of nothing": ("scheduler: {placement: {binpack: 0}}", "scheduler.placement", "no weight above 0"),
    "a search of no steps": ("scheduler: {search: {maxScenarios: 0}}", "scheduler.search.maxScenarios", "is 0"),
    "a half-life of nothing": (
        "scheduler: {fairness: {history: {halfLife: 0}}}",
        "scheduler.fairness.history.halfLife",
        "more than 0",
    ),
    "a share above all": (
        "scheduler: {rescheduler: {hotNodes: {hot: 110%}}}",
        "scheduler.rescheduler.hotNodes.hot",
        "a share is expected",
    ),
    "an objective that is none": (
        "scheduler: {rescheduler: {background: {objective: {pack: 1, pakc: 1}}}}",
        "scheduler.rescheduler.background.objective.pakc",
        "did you mean pack?",
    ),
    "an objective of nothing": (
        "scheduler: {rescheduler: {background: {objective: {pack: 0}}}}",
        "scheduler.rescheduler.background.objective",
        "no weight above 0",
    ),
    "an objective that works against placement": (
        "scheduler: {rescheduler: {background: {interval: 1h, objective: spread}}}",
        "scheduler.rescheduler.background.objective",
        "use placement or pack, or set placement: spread",
    ),
    "an objective that packs what is spread": (
        "scheduler: {placement: spread, rescheduler: {background: {objective: {placement: 1, pack: 1}}}}",
        "scheduler.rescheduler.background.objective",
        "use placement or spread, or set placement: binpack",
    ),
    "a mode of a cause that is none": (
        "scheduler: {modes: {reclame: off}}",
        "scheduler.modes.reclame",
        "did you mean reclaim?",
    ),
    "a rule that bounds nothing": (
        "scheduler: {disruption: {budgets: [{name: b}]}}",
        "scheduler.disruption.budgets[0]",
        "bounds nothing",
    ),
    "a rate without a window": (
        "scheduler: {disruption: {budgets: [{name: b, maxEvictions: 5}]}}",
        "scheduler.disruption.budgets[0].per",
        "which window",
    ),
    "a schedule without an end": (
        'scheduler: {disruption: {budgets: [{name: b, maxEvictions: 0, schedule: "0 6 * * *"}]}}',
        "scheduler.disruption.budgets[0].duration",
        "how long it lasts",
    ),
    "a list where a mapping is expected": ("scheduler: [1]", "scheduler", "is a list, but a mapping"),
    "another version": ("apiVersion: tenure.dev/v2", "apiVersion", "tenure.dev/v1alpha1"),
    "another kind": ("kind: Pod", "kind", "but one of Cluster is expected"),
}
