"""What the controllers of frameworks make of their objects: objects below, and pods with their labels and owners."""

from __future__ import annotations

from copy import deepcopy

from tests.kubernetes.frameworks import GPU, SETS, path_of

JOB_LABELS = "training.kubeflow.org"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
CLIQUES = "/apis/grove.io/v1alpha1/namespaces/default/podcliques"
ONCE = {"restartPolicy": "Never"}


def reference(item):
    """Give the reference to an object by which it controls others."""
    return {
        "apiVersion": item["apiVersion"], "kind": item["kind"], "name": item["metadata"]["name"],
        "uid": item["metadata"]["uid"], "controller": True,
    }  # fmt: skip


class Controllers:
    """The controllers of all frameworks. ``operators`` keep the pods that they make; ``made`` are the objects below."""

    def __init__(self, operators):
        self.operators = operators
        self.client = operators.client
        self.made = []
        self.of_kind = {
            "PyTorchJob.kubeflow.org": self.training, "TFJob.kubeflow.org": self.training,
            "XGBoostJob.kubeflow.org": self.training, "TrainJob.trainer.kubeflow.org": self.train_job,
            "JobSet.jobset.x-k8s.io": self.job_set, "RayCluster.ray.io": self.ray_cluster,
            "RayJob.ray.io": self.ray_job, "RayService.ray.io": self.ray_service,
            "Notebook.kubeflow.org": self.notebook, "PodCliqueSet.grove.io": self.clique_set,
            "Job.batch.volcano.sh": self.volcano_job, "Job.batch": self.job, "MPIJob.kubeflow.org": self.mpi_job,
            "LeaderWorkerSet.leaderworkerset.x-k8s.io": self.leader_worker_set,
            "AppWrapper.workload.codeflare.dev": self.app_wrapper, "Workflow.argoproj.io": self.workflow,
            "SparkApplication.sparkoperator.k8s.io": self.spark_application,
        }  # fmt: skip

    def act(self, item):
        """Make what belongs to an object, if its kind makes anything."""
        make = self.of_kind.get(f"{item['kind']}.{item['apiVersion'].rpartition('/')[0]}")
        if make is not None:
            make(item)

    def clear(self):
        """Delete the objects that were made."""
        while self.made:
            self.client.discard(self.made.pop(), {"propagationPolicy": "Background"})

    def below(self, owner, path, name, kind, spec, **labels):
        """Create an object that another controls."""
        version, what = kind
        meta = {"name": name, "labels": labels, "ownerReferences": [reference(owner)]}
        found = self.client.create(path, {"apiVersion": version, "kind": what, "metadata": meta, "spec": spec})
        self.made.append(f"{path}/{name}")
        return {"apiVersion": version, "kind": what, **found}

    def pod(self, owner, name, template, *, after=(), driver=None, through=None, annotations=None, **labels):
        """Let there be a pod of a template, with labels and annotations of its controller's own."""
        meta, known = template.get("metadata", {}), {key: str(value) for key, value in labels.items()}
        self.operators.keep(
            {
                "metadata": {
                    "name": name, "labels": {**meta.get("labels", {}), **known}, "ownerReferences": [reference(owner)],
                    "annotations": {**meta.get("annotations", {}), **(annotations or {})},
                },
                "spec": deepcopy(template["spec"]),
            },
            after=after, driver=driver, through=through,
        )  # fmt: skip
        return name

    def training(self, job):
        """The training operator makes a pod for each replica of each role."""
        name = job["metadata"]["name"]
        (specs,) = (value for key, value in job["spec"].items() if key.endswith("ReplicaSpecs"))
        for role, spec in specs.items():
            for number in range(spec.get("replicas", 1)):
                self.pod(job, f"{name}-{role.lower()}-{number}", spec["template"], **{
                    f"{JOB_LABELS}/job-name": name, f"{JOB_LABELS}/operator-name": f"{job['kind'].lower()}-controller",
                    f"{JOB_LABELS}/replica-type": role.lower(), f"{JOB_LABELS}/replica-index": number,
                })  # fmt: skip

    def mpi_job(self, job):
        """The MPI operator makes the workers, and a Job for the launcher."""
        name, roles = job["metadata"]["name"], job["spec"]["mpiReplicaSpecs"]

        def labels(role):
            return {f"{JOB_LABELS}/job-name": name, f"{JOB_LABELS}/operator-name": "mpi-operator",
                    f"{JOB_LABELS}/job-role": role}  # fmt: skip

        for number in range(roles["Worker"].get("replicas", 1)):
            known = labels("worker") | {f"{JOB_LABELS}/replica-index": number}
            self.pod(job, f"{name}-worker-{number}", roles["Worker"]["template"], **known)
        template = deepcopy(roles["Launcher"]["template"])
        template["metadata"] = {"labels": labels("launcher")}
        template["spec"] |= ONCE
        self.job(self.below(job, JOBS, f"{name}-launcher", ("batch/v1", "Job"), {"template": template}))

    def leader_worker_set(self, whole):
        """A StatefulSet makes the leaders; of each group the leader's pod owns another, which makes its workers."""
        name, spec, known = whole["metadata"]["name"], whole["spec"], "leaderworkerset.sigs.k8s.io"
        both = spec["leaderWorkerTemplate"]
        worker = both["workerTemplate"]
        leader = both.get("leaderTemplate", worker)
        shape = {"metadata": {"labels": {"set": name}}, "spec": leader["spec"]}
        said = {"serviceName": name, "selector": {"matchLabels": {"set": name}}, "template": shape}
        leaders = self.below(whole, SETS, name, ("apps/v1", "StatefulSet"), said)
        for group in range(spec["replicas"]):
            labels = {f"{known}/name": name, f"{known}/group-index": group, f"{known}/group-key": f"{name}-{group}"}
            first = f"{name}-{group}"
            self.pod(leaders, first, leader, **labels, **{f"{known}/worker-index": 0})
            for number in range(1, both["size"]):
                self.pod(whole, f"{first}-{number}", worker, driver=first, through=first,
                         **labels, **{f"{known}/worker-index": number})  # fmt: skip

    def app_wrapper(self, whole):
        """The wrapper makes what is in it, with a label that says whose it is."""
        name = whole["metadata"]["name"]
        for component in whole["spec"]["components"]:
            inner = deepcopy(component["template"])
            mark = {"workload.codeflare.dev/appwrapper": name}
            inner["spec"]["template"].setdefault("metadata", {}).setdefault("labels", {}).update(mark)
            title = inner["metadata"]["name"]
            self.job(self.below(whole, JOBS, title, (inner["apiVersion"], inner["kind"]), inner["spec"], **mark))

    def spark_application(self, application):
        """The operator submits the driver; that makes its executors when it runs, and owns them."""
        name, spec = application["metadata"]["name"], application["spec"]

        def template(role):
            said = spec[role]
            gpus = {GPU: str(said["gpu"]["quantity"])} if "gpu" in said else {}
            resources = {"requests": {"cpu": str(said["cores"]), **gpus}, "limits": gpus}
            container = {"name": f"spark-{role}", "image": spec["image"], "resources": resources}
            return {"metadata": {"labels": said.get("labels", {})},
                    "spec": {"schedulerName": said["schedulerName"], "containers": [container]}}  # fmt: skip

        labels = {"spark-app-name": name, "sparkoperator.k8s.io/app-name": name}
        driver = self.pod(application, f"{name}-driver", template("driver"), **labels, **{"spark-role": "driver"})
        for number in range(1, spec["executor"]["instances"] + 1):
            self.pod(application, f"{name}-exec-{number}", template("executor"), driver=driver, **labels,
                     **{"spark-role": "executor", "spark-exec-id": number})  # fmt: skip

    def workflow(self, workflow):
        """Argo makes a pod for each task of the entry's graph, once those run that it depends on."""
        name, spec = workflow["metadata"]["name"], workflow["spec"]
        by_name = {template["name"]: template for template in spec["templates"]}
        for task in by_name[spec["entrypoint"]]["dag"]["tasks"]:
            container = {"name": "main", **by_name[task["template"]]["container"]}
            inside = {"schedulerName": spec["schedulerName"], "containers": [container], **ONCE}
            template = {"metadata": deepcopy(spec.get("podMetadata", {})), "spec": inside}
            after = [f"{name}-{other}" for other in task.get("dependencies", ())]
            self.pod(workflow, f"{name}-{task['name']}", template, after=after, **{
                "workflows.argoproj.io/workflow": name, "workflows.argoproj.io/completed": "false",
            })  # fmt: skip

    def train_job(self, job):
        """Kubeflow Trainer makes a JobSet of its runtime, with what the job itself says of its trainer."""
        asked, wanted = job["spec"]["runtimeRef"], job["spec"]["trainer"]
        path = f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainingruntimes/{asked['name']}"
        spec = deepcopy(self.client.get(path)["spec"]["template"]["spec"])
        for one in spec["replicatedJobs"]:
            inner = one["template"]["spec"]
            inner |= {"parallelism": wanted["numNodes"], "completions": wanted["numNodes"]}
            trained = {"image": wanted["image"], "resources": wanted["resourcesPerNode"]}
            inner["template"]["spec"]["containers"][0] |= trained
        name = job["metadata"]["name"]
        kind = ("jobset.x-k8s.io/v1alpha2", "JobSet")
        self.job_set(self.below(job, path_of("JobSet.jobset.x-k8s.io"), name, kind, spec))

    def job_set(self, whole):
        """JobSet makes a Job for each replica of each replicated job."""
        name = whole["metadata"]["name"]
        for one in whole["spec"]["replicatedJobs"]:
            for number in range(one.get("replicas", 1)):
                labels = {
                    "jobset.sigs.k8s.io/jobset-name": name, "jobset.sigs.k8s.io/replicatedjob-name": one["name"],
                    "jobset.sigs.k8s.io/job-index": str(number),
                }  # fmt: skip
                spec = deepcopy(one["template"]["spec"])
                spec["completionMode"] = "Indexed"
                spec["template"]["spec"] |= ONCE
                spec["template"].setdefault("metadata", {}).setdefault("labels", {}).update(labels)
                title = f"{name}-{one['name']}-{number}"
                self.job(self.below(whole, JOBS, title, ("batch/v1", "Job"), spec, **labels))

    def job(self, job):
        """Kubernetes makes the pods of a Job."""
        name, spec = job["metadata"]["name"], job["spec"]
        for number in range(spec.get("parallelism", 1)):
            self.pod(job, f"{name}-{number}", spec["template"], **{
                "batch.kubernetes.io/job-name": name, "batch.kubernetes.io/job-completion-index": number,
            })  # fmt: skip

    def ray_cluster(self, cluster):
        """KubeRay makes a head, and the workers of each group; gives their names."""
        name, spec = cluster["metadata"]["name"], cluster["spec"]

        def labels(kind, group):
            return {
                "ray.io/is-ray-node": "yes", "ray.io/cluster": name, "ray.io/node-type": kind, "ray.io/group": group,
                "app.kubernetes.io/created-by": "kuberay-operator",
            }  # fmt: skip

        head = spec["headGroupSpec"]["template"]
        made = [self.pod(cluster, f"{name}-head", head, **labels("head", "headgroup"))]
        for group in spec["workerGroupSpecs"]:
            for number in range(group["replicas"]):
                title = f"{name}-{group['groupName']}-worker-{number}"
                made.append(self.pod(cluster, title, group["template"], **labels("worker", group["groupName"])))
        return made

    def ray_job(self, job):
        """KubeRay makes a cluster, and when that runs a Job that submits what is to be done."""
        name, spec = job["metadata"]["name"], job["spec"]
        ray = ("ray.io/v1", "RayCluster")
        cluster = self.below(job, path_of("RayCluster.ray.io"), f"{name}-x7k2p", ray, spec["rayClusterSpec"])
        nodes = self.ray_cluster(cluster)
        template = spec["submitterPodTemplate"]
        submits = self.below(job, JOBS, name, ("batch/v1", "Job"), {"template": template})
        self.pod(submits, f"{name}-submit", template, after=nodes, **{"batch.kubernetes.io/job-name": name})

    def ray_service(self, service):
        """KubeRay makes a cluster of a name of its own for each version of a service."""
        ray = ("ray.io/v1", "RayCluster")
        name = f"{service['metadata']['name']}-q4m9z"
        path = path_of("RayCluster.ray.io")
        self.ray_cluster(self.below(service, path, name, ray, service["spec"]["rayClusterConfig"]))

    def notebook(self, notebook):
        """The notebook controller makes a StatefulSet of one pod, which has the notebook's labels."""
        name, template = notebook["metadata"]["name"], deepcopy(notebook["spec"]["template"])
        labels = {**notebook["metadata"].get("labels", {}), "statefulset": name, "notebook-name": name}
        template["metadata"] = {"labels": labels}
        spec = {
            "replicas": 1, "serviceName": name, "template": template,
            "selector": {"matchLabels": {"statefulset": name}},
        }  # fmt: skip
        made = self.below(notebook, SETS, name, ("apps/v1", "StatefulSet"), spec)
        self.pod(made, f"{name}-0", template, **{"apps.kubernetes.io/pod-index": 0})

    def clique_set(self, whole):
        """Grove makes a PodClique for each clique of each replica, their pods, and a PodGang that names these."""
        for number in range(whole["spec"]["replicas"]):
            gang = f"{whole['metadata']['name']}-{number}"
            groups = [self.clique(whole, gang, clique) for clique in whole["spec"]["template"]["cliques"]]
            kind = ("scheduler.grove.io/v1alpha1", "PodGang")
            self.below(whole, path_of("PodGang.scheduler.grove.io"), gang, kind, {"podgroups": groups})

    def clique(self, whole, gang, clique):
        """Make one clique; gives what its gang says of it."""
        spec, name = clique["spec"], f"{gang}-{clique['name']}"
        made = self.below(whole, CLIQUES, name, ("grove.io/v1alpha1", "PodClique"), spec)
        template = {"metadata": {"labels": clique.get("labels", {})}, "spec": spec["podSpec"]}
        pods = [
            self.pod(made, f"{name}-{number}", template, **{
                "grove.io/podclique": name, "grove.io/podgang": gang, "grove.io/podclique-pod-index": number,
                "app.kubernetes.io/part-of": whole["metadata"]["name"],
                "app.kubernetes.io/managed-by": "grove-operator",
            })
            for number in range(spec["replicas"])
        ]  # fmt: skip
        named = [{"namespace": "default", "name": pod} for pod in pods]
        return {"name": name, "podReferences": named, "minReplicas": spec.get("minAvailable", spec["replicas"])}

    def volcano_job(self, job):
        """Volcano makes a PodGroup, and the pods of each task, which name it; the job says who schedules them."""
        name, spec = job["metadata"]["name"], job["spec"]
        tasks = {task["name"]: task.get("minAvailable", task["replicas"]) for task in spec["tasks"]}
        group = f"{name}-{job['metadata']['uid']}"
        path = path_of("PodGroup.scheduling.volcano.sh")
        said = {"minMember": spec["minAvailable"], "minTaskMember": tasks, "queue": spec["queue"]}
        self.below(job, path, group, ("scheduling.volcano.sh/v1beta1", "PodGroup"), said)
        for task in spec["tasks"]:
            template = deepcopy(task["template"])
            template["spec"]["schedulerName"] = spec["schedulerName"]
            for number in range(task["replicas"]):
                known = {
                    "volcano.sh/job-name": name, "volcano.sh/task-spec": task["name"],
                    "volcano.sh/task-index": str(number), "volcano.sh/queue-name": spec["queue"],
                }  # fmt: skip
                named = {"scheduling.k8s.io/group-name": group, **known}
                self.pod(job, f"{name}-{task['name']}-{number}", template, annotations=named, **{
                    **known, "volcano.sh/job-namespace": "default",
                })  # fmt: skip
