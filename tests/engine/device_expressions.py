"""Expressions over a device, by the functions that they call, with what Kubernetes makes of each.

True and False are answers; None is an evaluation that fails. `tests/kubernetes/test_referee.py` asks
kube-scheduler.
"""

from __future__ import annotations

DOMAIN = "gpu.example.com"
ATTRIBUTES = {
    "model": {"string": "h100-80"},
    "numa": {"int": 3},
    "fast": {"bool": True},
    "driver": {"version": "1.10.2-rc.1"},
    "address": {"string": "10.1.2.3"},
    "link": {"string": "https://user@host.example.com:8443/a%20b/c?k=1&k=2#x"},
}
CAPACITY = {"memory": {"value": "80Gi"}, "lanes": {"value": "1500m"}}

_A = f'device.attributes["{DOMAIN}"]'
_C = f'device.capacity["{DOMAIN}"]'

EVALUATED = {
    # quantities
    f'{_C}.memory.compareTo(quantity("80Gi")) == 0': True,
    f'{_C}.memory.isGreaterThan(quantity("80G"))': True,
    f'{_C}.lanes.isLessThan(quantity("1500m"))': False,
    f'{_C}.lanes.add(quantity("500m")).compareTo(quantity("2")) == 0': True,
    f"{_C}.lanes.sub(1).asApproximateFloat() == 0.5": True,
    f"{_C}.lanes.asInteger() == 1": None,
    f"{_C}.lanes.isInteger()": False,
    f"sign({_C}.memory) == 1": True,
    'isQuantity("1.5Ki") && !isQuantity("1.5x")': True,
    'quantity("nothing").asInteger() == 0': None,
    # versions
    f'{_A}.driver.isLessThan(semver("1.10.2"))': True,
    f'{_A}.driver.compareTo(semver("1.9.0")) == 1': True,
    f"{_A}.driver.major() == 1 && {_A}.driver.minor() == 10 && {_A}.driver.patch() == 2": True,
    'semver("v1.02", true).compareTo(semver("1.2.0")) == 0': True,
    'semver("v1.2.0").major() == 1': None,
    'isSemver("1.0") || !isSemver("1.0", true)': False,
    # texts
    f'{_A}.model.startsWith("h100") && {_A}.model.endsWith("80") && {_A}.model.contains("-")': True,
    f'{_A}.model.split("-")[1] == "80"': True,
    f'{_A}.model.substring(0, 4).upperAscii() == "H100"': True,
    f'{_A}.model.replace("-", "").size() == 6': True,
    f'{_A}.model.indexOf("0") == 2 && {_A}.model.lastIndexOf("0") == 6': True,
    f'{_A}.model.charAt(99) == ""': None,
    '" x ".trim() == "x"': True,
    '"%s has %d".format(["x", 2]) == "x has 2"': True,
    f'{_A}.model.matches("^h[0-9]+-")': True,
    # patterns
    f'{_A}.model.find("[0-9]+") == "100"': True,
    f'{_A}.model.find("h([0-9])(0)") == "h10"': True,
    f'{_A}.model.find("x+") == ""': True,
    f'{_A}.model.findAll("[0-9]+") == ["100", "80"]': True,
    f'{_A}.model.findAll("(1|8)0", 1) == ["10"]': True,
    f'{_A}.model.findAll("[(]?[0-9]", 2).size() == 2': True,
    f'{_A}.model.find({_A}.model.substring(0, 0) + "(") == ""': None,
    # lists
    f"[1, 2].sum() == {_A}.numa": True,
    "[1.5, 2.5].sum() == 4.0": True,
    f"[1, 3].max() == {_A}.numa && [1, 3].min() == 1": True,
    "[1, 1, 2].isSorted() && ![2, 1].isSorted()": True,
    "[1].filter(x, x > 1).min() == 1": None,
    "[1, 2, 3].slice(1, 3) == [2, 3] && [[1], [2]].flatten() == [1, 2]": True,
    "[3, 1, 2].sort() == [1, 2, 3] && [1, 1, 2].distinct() == [1, 2] && [1, 2].reverse() == [2, 1]": True,
    "[3, 1, 2].sortBy(x, -x) == [3, 2, 1]": True,
    "lists.range(3) == [0, 1, 2]": True,
    "[1, 2].first().value() == 1 && [1, 2].last().orValue(0) == 2": True,
    f"[0, 1].exists(n, n == {_A}.numa) || [1, 2].exists_one(n, n == {_A}.numa)": False,
    f"{_A}.numa in [1, 3] && [1, 2].map(n, n * 2) == [2, 4]": True,
    "[1, 2].all(i, v, v == i + 1) && [5].exists(i, v, i == 0 && v == 5)": True,
    "[1, 2].transformList(i, v, v * i) == [0, 2]": True,
    # sets
    f"sets.contains([1, 3, 5], [{_A}.numa])": True,
    "sets.equivalent([1, 1, 2], [2, 1]) && !sets.intersects([1], [2])": True,
    # what may be missing
    f'"nothing" in {_A}': False,
    f"{_A}.?nothing.orValue(7) == 7": True,
    f'{_A}[?"numa"].optMap(n, n + 1).orValue(0) == 4': True,
    f"{_A}.nothing == 1": None,
    f"has({_A}.fast) && {_A}.fast": True,
    f"optional.of({_A}.numa).hasValue() && !optional.ofNonZeroValue(0).hasValue()": True,
    "optional.none().or(optional.of(2)).value() == 2": True,
    f"cel.bind(own, {_A}, own.fast && own.numa == 3)": True,
    # addresses and networks
    f"ip({_A}.address).family() == 4 && isIP({_A}.address)": True,
    f'cidr("10.0.0.0/8").containsIP({_A}.address)': True,
    f'cidr("10.1.0.0/16").containsIP(ip({_A}.address)) && !cidr("10.2.0.0/16").containsIP("10.1.2.3")': True,
    'cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16") && !cidr("10.1.0.0/16").containsCIDR(cidr("10.0.0.0/8"))': True,
    'cidr("10.1.2.3/8").masked() == cidr("10.0.0.0/8") && cidr("10.1.2.3/8").prefixLength() == 8': True,
    'cidr("10.1.2.3/8").ip() == ip("10.1.2.3") && !isCIDR("10.0.0.0/33")': True,
    'ip("127.0.0.1").isLoopback() && ip("fe80::1").isLinkLocalUnicast()': True,
    'ip("224.0.0.7").isLinkLocalMulticast() && !ip("224.0.1.7").isLinkLocalMulticast()': True,
    'ip("::").isUnspecified() && ip("8.8.8.8").isGlobalUnicast() && ip("10.1.2.3").isGlobalUnicast()': True,
    'ip.isCanonical("fe80::1") && !ip.isCanonical("FE80::1")': True,
    'isIP("::ffff:1.2.3.4") || isIP("1.2.3") || isIP("fe80::1%eth0")': False,
    'ip("nothing").family() == 4': None,
    # URLs
    f'url({_A}.link).getScheme() == "https" && url({_A}.link).getHostname() == "host.example.com"': True,
    f'url({_A}.link).getHost() == "host.example.com:8443" && url({_A}.link).getPort() == "8443"': True,
    f'url({_A}.link).getEscapedPath() == "/a%20b/c" && url({_A}.link).getQuery()["k"] == ["1", "2"]': True,
    'url("/path").getHost() == "" && url("https://[::1]:80/").getHostname() == "::1"': True,
    'isURL("https://a:b:c/") || isURL("../path")': False,
    'url("../path").getHost() == ""': None,
    # of the language itself
    f'device.driver == "{DOMAIN}" && !device.allowMultipleAllocations': True,
    'timestamp("2026-11-24T17:00:00Z").getFullYear() == 2026 && duration("90s") > duration("1m")': True,
    "double(2) == 2.0": True,
    "1 / 0 == 1": None,
    f'{_A}.numa == "3"': False,
}

NOT_EVALUATED = {
    '{"a": 1}.transformMap(k, v, v + 1) == {"a": 2}': "transformMap",
    '{"a": 1}.transformMapEntry(k, v, {v: k}) == {1: "a"}': "transformMapEntry",
    "[1, 2].indexOf(2) == 1": "indexOf",
    "[1, 2].lastIndexOf(2) == 1": "lastIndexOf",
    'string(ip("10.1.2.3")) == "10.1.2.3"': "string",
    '!format.dns1123Label().validate("a").hasValue()': "format.dns1123Label",
    "optional.unwrap([optional.of(1)]) == [1]": "optional.unwrap",
    "1 < 1.5": "_<_",
}
"""Expressions that Kubernetes evaluates and Tenure does not, with the name that the reason has to have in it."""
