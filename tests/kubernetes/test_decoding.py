"""Threads decode into a class that no thread has decoded into before."""

import re
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "src" / "tenure"

AT_ONCE = """
import json, sys, threading, types
from tenure.clusters.kubernetes.decoding import decode

sys.setswitchinterval(1e-6)
part = "class Part{0}(msgspec.Struct):\\n    x: int = 0\\n    y: 'dict[str, str] | None' = None\\n"
whole = "class Whole(msgspec.Struct):\\n" + "\\n".join(f"    f{i}: 'Part{i} | None' = None" for i in range(20))
text = json.dumps({f"f{i}": {"x": 1} for i in range(20)}).encode()
for turn in range(100):
    made = sys.modules[f"made{turn}"] = types.ModuleType(f"made{turn}")
    exec("import msgspec\\n" + "".join(part.format(i) for i in range(20)) + whole, made.__dict__)
    begin = threading.Barrier(6)

    def run(kind=made.Whole):
        begin.wait()
        for _ in range(3):
            assert decode(text, kind).f19.x == 1

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_threads_that_need_the_same_decoder_first_do_not_end_the_process():
    """With msgspec's own function in its place the process ends by a segmentation fault within a few turns."""
    done = subprocess.run([sys.executable, "-c", AT_ONCE], capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


def test_all_known_shapes_are_decoded_that_way():
    others = [
        f"{path.relative_to(SOURCES)}: {line.strip()}"
        for path in sorted(SOURCES.rglob("*.py"))
        if path.name != "decoding.py"
        for line in path.read_text().splitlines()
        if re.search(r"msgspec\.(json\.)?(Decoder\(|convert\()|msgspec\.json\.decode\(.*type=", line)
    ]
    assert others == []
