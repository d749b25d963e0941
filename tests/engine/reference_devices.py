"""Which nodes meet claims on devices, by trying every choice: the plainest reading of the rules, for small states."""

from __future__ import annotations

from itertools import chain, combinations, product


def meets(node, demands, used, matches):
    """Whether the free devices of a node meet all demands at once.

    ``matches`` says by request (the ``ExactDevices``) and device whether it is taken; ``used`` has the keys of devices
    that are given out.
    """
    options = [list(request.options) for demand in demands for request in demand.requests]
    where = [number for number, demand in enumerate(demands) for _ in demand.requests]
    for chosen in product(*options):
        sets = [list(_sets(node, asked, matches)) for _, asked in chosen]
        for picked in product(*sets):
            if _holds(picked, chosen, where, demands, used):
                return True
    return False


def _sets(node, asked, matches):
    fitting = [device for device in node if matches(asked, device)]
    if asked.mode == "All":
        return [tuple(fitting)] if fitting else []
    return combinations(fitting, asked.count)


def _holds(picked, chosen, where, demands, used):
    taken = list(chain.from_iterable(picked))
    if len({d.key for d in taken}) != len(taken) or any(d.key in used for d in taken):
        return False
    for number, demand in enumerate(demands):
        for constraint in demand.constraints:
            name = constraint.match_attribute or constraint.distinct_attribute
            values = [
                _attribute(device, name)
                for place, devices in enumerate(picked)
                if where[place] == number and _named(constraint, chosen[place][0])
                for device in devices
            ]
            if None in values:
                return False
            if constraint.match_attribute is not None and len(set(map(repr, values))) > 1:
                return False
            if constraint.distinct_attribute is not None and len(set(map(repr, values))) < len(values):
                return False
    return True


def _named(constraint, name):
    return not constraint.requests or name in constraint.requests or name.split("/")[0] in constraint.requests


def _attribute(device, name):
    domain, _, rest = name.partition("/")
    attributes = device.model.attributes
    return attributes.get(name) or (attributes.get(rest) if domain == device.key[0] else None)
