"""The chart on a real control plane: installed, upgraded, rolled back, uninstalled and installed again."""

from tests.kubernetes.running import TENURE, bound, gang, pods_of, queue
from tests.kubernetes.stage import wait_until
from tools.controlplane.client import ApiError
from tools.deploy.write import DEPLOY

DEPLOYMENTS = "/apis/apps/v1/namespaces/tenure-system/deployments"
QUEUES = f"{TENURE}/queues"
SETS = "/apis/apps/v1/namespaces/default/replicasets"


def replicas(client, name="tenure"):
    return client.get(f"{DEPLOYMENTS}/{name}")["status"].get("readyReplicas")


def test_a_release_is_installed_upgraded_rolled_back_and_uninstalled(helm, plane, scheduling):
    """Through all of it, what runs goes on running; queues outlast the release, and the next one takes them over."""
    client = plane.client()
    helm.chart("install", "--create-namespace")
    assert replicas(client) == 2
    client.create(QUEUES, queue("team", guaranteed={"nvidia.com/gpu": 4}))
    with scheduling("first") as scheduler:
        wait_until(scheduler.leads, "it does not lead")
        client.create(SETS, gang("work", "team", 3))
        wait_until(lambda: bound(client, "work") == 3, "the gang is not bound")
    running = {pod["metadata"]["uid"] for pod in pods_of(client, "work")}

    helm.chart("upgrade", "--set", "replicas=3,console.enabled=true,scheduler.reclaimMinRuntime=1h")
    assert replicas(client) == 3
    assert replicas(client, "tenure-console") == 1
    with scheduling("second") as scheduler:
        wait_until(scheduler.leads, "it does not lead after the upgrade")

    helm("rollback", "tenure", "1", "--wait")
    wait_until(lambda: replicas(client) == 2, "the old number of replicas is not back")
    assert not client.exists(f"{DEPLOYMENTS}/tenure-console")

    helm("uninstall", "tenure", "--wait")
    assert not client.exists(f"{DEPLOYMENTS}/tenure")
    assert client.get(f"{QUEUES}/team")["spec"] == {"guaranteed": {"nvidia.com/gpu": 4}}
    helm.chart("install", "--set", "crds.keep=false")
    with scheduling("third") as scheduler:
        wait_until(scheduler.leads, "it does not lead after it was installed again")
        client.create(SETS, gang("more", "team", 2))
        wait_until(lambda: bound(client, "more") == 2, "the next gang is not bound")
    assert {pod["metadata"]["uid"] for pod in pods_of(client, "work")} == running

    helm("uninstall", "tenure", "--wait")
    wait_until(lambda: _gone(client, QUEUES), "the definitions are still there")


def _gone(client, path):
    try:
        client.get(path)
    except ApiError as error:
        return error.status == 404
    return False


def test_a_further_pool_is_a_release_of_its_own(helm, plane):
    """The second release has its pool's objects alone, and goes without the first one's going."""
    client = plane.client()
    helm.chart("install", "--create-namespace", "--set", "replicas=1")
    helm("install", "gpu", str(DEPLOY / "helm/tenure"), "--wait", "--set", "pool=gpu,shared=false,replicas=1")
    assert replicas(client, "tenure-gpu") == 1
    helm("uninstall", "gpu", "--wait")
    assert replicas(client) == 1
