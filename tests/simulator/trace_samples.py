"""A small file of each published format, by hand in its true shape; what is odd in it is odd in real ones as well."""
# ruff: noqa: E501  tables of values are lines

from __future__ import annotations

import json
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Sample:
    """A trace, and tables beside it, by file name."""

    format: str
    name: str
    text: str
    beside: dict[str, str] = field(default_factory=dict)
    found: bool = True
    """Whether it is recognised without ``--trace-format``."""

    def write(self, folder):
        """Write all files and give the options of `read_trace`."""
        for name, text in {self.name: self.text, **self.beside}.items():
            (folder / name).write_text(text, encoding="utf-8")
        options = {} if self.found else {"format": self.format}
        return folder / self.name, {**options, "beside": [folder / name for name in self.beside]}


def attempt(start, end, *servers):
    detail = [{"ip": f"m{number}", "gpus": [f"gpu{n}" for n in range(gpus)]} for number, gpus in enumerate(servers)]
    return {"start_time": start, "end_time": end, "detail": detail}


def philly_job(number, attempts, status="Pass", submitted="2017-10-07 01:00:00", vc="ee9e8c"):
    return {
        "status": status, "vc": vc, "jobid": f"application_150_{number}", "attempts": attempts,
        "submitted_time": submitted, "user": "ce2f4c",
    }  # fmt: skip


PHILLY_JOBS = [
    philly_job(1, [attempt("2017-10-07 01:00:10", "2017-10-07 01:01:10", 8)]),
    philly_job(
        2, [attempt("2017-10-07 01:02:00", "2017-10-07 01:02:30", 3, 1), attempt("2017-10-07 02:00:00", "2017-10-07 02:10:00", 4)],
        "Failed", "2017-10-07 01:01:30",
    ),
    philly_job(3, [], "Killed", "2017-10-07 01:01:31"),
    philly_job(4, [attempt("None", "None", 1)], "Killed", "2017-10-07 01:01:32"),
    philly_job(5, [attempt("2017-10-07 01:30:00", None, 1), attempt("2017-10-07 01:40:00", None, 2)], "Killed", "2017-10-07 01:01:33"),
    philly_job(6, [attempt("2017-10-07 01:30:00", "2017-10-07 01:40:00")], "Pass", "2017-10-07 01:01:34", None),
]  # fmt: skip

HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
1425511,uXBbc,vcJkd,1,6,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:11,2020-06-09 18:42:11,60,10
1425512,uVMrF,vchbv,12,32,2,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0
1425513,uzqls,vcpDC,"5",3,2,CANCELLED,2020-06-09 18:41:28,2020-06-09 18:41:28,None,7,0
1425514,uzqls,vcpDC,0,2,1,CANCELLED,2020-06-09 18:41:29,Unknown,2020-06-09 18:41:40,,
1425515,uzqls,vcpDC,1,1,1,RUNNING,2020-06-09 18:41:30,2020-06-09 18:41:36,,,
1425516,uzqls,vcpDC,1,1,1,PENDING,2020-06-09 18:41:31,,,,
1425517,uzqls,vcpDC,1,1,1,NODE_FAIL,2020-06-09 18:41:32,2020-06-09 18:41:36,,,
"""

PAI_TASKS = """\
aaa,tensorflow,1.0,Terminated,1000.0,1060.0,600.0,29.296875,50.0,MISC
bbb,ps,1.0,Terminated,1010.0,1100.0,600.0,10.0,,
bbb,worker,2.0,Terminated,1015.0,1115.0,400.0,20.0,150.0,T4
ccc,worker,1.0,Waiting,,,600.0,29.296875,100.0,V100
ddd,worker,1.0,Running,1050.0,,600.0,29.296875,100.0,V100
eee,worker,1.0,Failed,1050.0,,600.0,29.296875,100.0,V100
"""
PAI_JOBS = """\
aaa,i1,u1,Terminated,990.0,1060.0
bbb,i2,u2,Terminated,1000.0,1115.0
"""
PAI_INSTANCES = """\
aaa,tensorflow,x,y,i1,Terminated,1020.0,1050.0,m1
aaa,tensorflow,x,z,i1,Terminated,1030.0,1055.0,m2
"""
PAI_NAMES = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n"

SACCT = """\
JobID|JobName|User|Account|Partition|QOS|State|Submit|Start|End|Elapsed|Timelimit|ReqTRES|AllocTRES
101|train "a"|ann|vision|gpu|normal|COMPLETED|2024-01-05T10:00:00|2024-01-05T10:01:00|2024-01-05T12:01:00|02:00:00|1-00:00:00|billing=16,cpu=16,gres/gpu:a100=4,gres/gpu=4,mem=128G,node=2|cpu=32,node=2
101.batch|batch||vision|||COMPLETED|2024-01-05T10:01:00|2024-01-05T10:01:00|2024-01-05T12:01:00|02:00:00|||cpu=8,mem=64G,node=1
101.extern|extern||vision|||COMPLETED|2024-01-05T10:01:00|2024-01-05T10:01:00|2024-01-05T12:01:00|02:00:00|||
101.0|python||vision|||COMPLETED|2024-01-05T10:01:00|2024-01-05T10:01:00|2024-01-05T12:01:00|02:00:00|||cpu=8
102_1|array|bob|speech|cpu|normal|CANCELLED by 123|2024-01-05T10:02:00|2024-01-05T10:03:00|2024-01-05T10:04:00|00:01:00|UNLIMITED|cpu=3,mem=4000M,node=2|
102_2|array|bob|speech|cpu|normal|CANCELLED by 123|2024-01-05T10:02:00|None|2024-01-05T10:04:00|00:00:00|UNLIMITED|cpu=3,mem=4000M,node=2|
102_[3-9%2]|array|bob|speech|cpu|normal|PENDING|2024-01-05T10:02:00|Unknown|Unknown|00:00:00|UNLIMITED|cpu=3,mem=4000M,node=2|
103+0|het|bob|speech|cpu|normal|COMPLETED|2024-01-05T10:05:00|2024-01-05T10:06:00|2024-01-05T10:07:00|00:01:00|10:00|cpu=2,mem=1.50G,node=1|
103+1|het|bob|speech|gpu|normal|COMPLETED|2024-01-05T10:05:00|2024-01-05T10:06:00|2024-01-05T10:08:00|00:02:00|10:00|cpu=1,mem=512M,node=1,gres/gpu:a100=1,gres/gpu:v100=2|
104|again|ann|vision|gpu|high|NODE_FAIL|2024-01-05T10:10:00|2024-01-05T10:11:00|2024-01-05T10:12:00|00:01:00|01:00|cpu=1,node=1|
104|again|ann|vision|gpu|high|COMPLETED|2024-01-05T10:12:00|2024-01-05T10:20:00|2024-01-05T10:22:00|00:02:00|01:00|cpu=1,node=1|
105|now|ann|vision|gpu|high|RUNNING|2024-01-05T11:00:00|2024-01-05T11:01:00|Unknown|01:00:00|Partition_Limit|cpu=1,node=1|
106|gone|ann|vision|gpu|high|FAILED|2024-01-05T11:00:00|2024-01-05T11:01:00|Unknown|00:05:00|01:00|cpu=1,node=1|
107|moved|ann|vision|gpu|high|REVOKED|2024-01-05T11:00:00|2024-01-05T11:01:00|2024-01-05T11:01:00|00:00:00|01:00|cpu=1,node=1|
"""


def slurm_number(value):
    return {"set": value is not None, "infinite": False, "number": value or 0}


def slurm_job(number, start, end, *, state="COMPLETED", task=None, het=None, gpus=0):
    tres = [{"type": "cpu", "name": "", "id": 1, "count": 8}, {"type": "mem", "name": "", "id": 2, "count": 4000},
            {"type": "node", "name": "", "id": 4, "count": 2}, {"type": "gres", "name": "gpu", "id": 1001, "count": gpus},
            {"type": "gres", "name": "gpu:a100", "id": 1002, "count": gpus}]  # fmt: skip
    return {
        "job_id": number, "account": "vision", "user": "ann", "partition": "gpu", "qos": "normal", "cluster": "main",
        "array": {"job_id": 7 if task is not None else 0, "task_id": slurm_number(task), "task": ""},
        "het": {"job_id": 9 if het is not None else 0, "job_offset": slurm_number(het)},
        "state": {"current": [state], "reason": "None"},
        "time": {"submission": 1704448800, "start": start, "end": end, "elapsed": 0, "limit": slurm_number(90)},
        "tres": {"requested": tres, "allocated": []}, "steps": [{"step": {"id": f"{number}.batch"}}],
    }  # fmt: skip


SACCT_JSON = json.dumps({
    "meta": {"plugin": {"type": "openapi/slurmdbd"}},
    "jobs": [slurm_job(5, 1704448860, 1704448920, gpus=2), slurm_job(8, 1704448860, 1704448890, task=3),
             slurm_job(9, 1704448860, 1704448890, het=0), slurm_job(10, 1704448860, 1704448900, het=1),
             slurm_job(11, 0, 0, state="PENDING"), slurm_job(12, 1704448860, 0, state="RUNNING")],
    "warnings": [],
}, indent=1)  # fmt: skip

INSTANCE_EVENTS = """\
time,type,collection_id,scheduling_class,missing_type,collection_type,priority,alloc_collection_id,instance_index,machine_id,resource_request.cpus,resource_request.memory
0,0,11,2,,0,103,0,0,,0.02,0.01
0,0,11,2,,0,103,0,1,,0.04,0.01
1000000,3,11,2,,0,103,0,0,5,0.02,0.01
1000000,3,11,2,,0,103,0,1,6,0.04,0.01
4000000,4,11,2,,0,103,0,0,5,0.02,0.01
6000000,3,11,2,,0,103,0,0,7,0.02,0.01
9000000,6,11,2,,0,103,0,0,7,0.02,0.01
5000000,6,11,2,,0,103,0,1,6,0.04,0.01
2000000,0,12,0,,0,25,0,0,,0.1,0.2
8000000,7,12,0,,0,25,0,0,,0.1,0.2
2000000,0,13,0,,1,25,0,0,,0.1,0.2
3000000,0,14,0,,0,0,0,0,,0.1,0.2
4000000,3,14,0,,0,0,0,0,8,0.1,0.2
9223372036854775807,6,14,0,,0,0,0,0,8,0.1,0.2
"""
COLLECTION_EVENTS = """\
time,type,collection_id,scheduling_class,priority,user,collection_name,collection_logical_name
0,0,11,2,103,alice,n1,l1
1500000,0,12,0,25,bob,n2,l2
"""
TASK_EVENTS = """\
0,2,31,0,,0,u1,0,9,0.025,0.0159,0.0004,0
600000000,,31,0,7,1,u1,0,9,0.025,0.0159,0.0004,0
700000000,,31,0,7,4,u1,0,9,0.025,0.0159,0.0004,0
610000000,,32,0,,0,u2,3,0,0.5,0.25,0.0004,1
620000000,,32,0,9,1,u2,3,0,0.5,0.25,0.0004,1
640000000,,32,0,9,2,u2,3,0,0.5,0.25,0.0004,1
650000000,,32,0,9,1,u2,3,0,0.5,0.25,0.0004,1
"""
JOB_EVENTS = """\
0,2,31,0,u1,0,n1,l1
605000000,,32,0,u2,3,n2,l2
"""

AZURE = """\
vm1,s1,d1,0,2591700,99.1,3.4,10.2,Delay-insensitive,8,32
vm2,s1,d2,300,900,99.1,3.4,10.2,Interactive,>24,>64
vm3,s2,d3,600,600,99.1,3.4,10.2,Unknown,2,1.75
"""


def json_lines(text):
    """Write a table of events as BigQuery exports it: one object a line, whole numbers as text, requests nested."""
    head, *rows = [line.split(",") for line in text.splitlines()]
    lines = []
    for row in rows:
        values = {name: value for name, value in zip(head, row, strict=True) if value and "." not in name}
        if "resource_request.cpus" in head:
            amounts = {name: float(row[head.index(f"resource_request.{name}")]) for name in ("cpus", "memory")}
            values["resource_request"] = amounts
        lines.append(json.dumps(values))
    return "\n".join(lines) + "\n"


SAMPLES = {
    "philly-json": Sample("philly-json", "cluster_job_log", json.dumps(PHILLY_JOBS, indent=1)),
    "helios": Sample("helios", "cluster_log.csv", HELIOS),
    "pai": Sample("pai", "pai_task_table.csv", PAI_TASKS,
                  {"pai_job_table.csv": PAI_JOBS, "pai_instance_table.csv": PAI_INSTANCES}),
    "pai with names": Sample("pai", "tasks.csv", PAI_NAMES + PAI_TASKS),
    "sacct": Sample("sacct", "jobs.txt", SACCT),
    "sacct json": Sample("sacct", "jobs.json", SACCT_JSON),
    "google 2019": Sample("google", "instance_events.csv", INSTANCE_EVENTS, {"collection_events.csv": COLLECTION_EVENTS}),
    "google 2019 json": Sample("google", "instance_events.json", json_lines(INSTANCE_EVENTS),
                               {"collection_events.json": json_lines(COLLECTION_EVENTS)}),
    "google 2011": Sample("google", "part-00000-of-00500.csv", TASK_EVENTS, {"job_events.csv": JOB_EVENTS}, found=False),
    "azure": Sample("azure", "vmtable.csv", AZURE),
    "azure with names": Sample("azure", "machines.csv", "vmid,subscriptionid,deploymentid,vmcreated,vmdeleted,maxcpu,"
                               "avgcpu,p95maxcpu,vmcategory,vmcorecountbucket,vmmemorybucket\n" + AZURE),
}  # fmt: skip
