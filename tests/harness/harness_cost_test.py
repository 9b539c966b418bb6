#!/usr/bin/env -S python3 -B
"""harness_cost_test.py BIN: what `verbscope run` adds to each point, and whether a long sweep holds its memory.

The cost of a point is the time of the sweep, less that of its processes started one by one from here, by the number of points.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

BIN = None
COST_LIMIT_MS = 50
SHORT = {"connection": "UD", "size": 32, "duration": "50us", "warmup": "20us"}
POINTS, EARLY, LATE = 700, 200, 650
MEMORY_LIMIT_KIB = 2048  # between an early and a late point: 450 records are 4,500 KiB


def resident_kib(process):
    text = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS"))


class Cost(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def command(self, hosts, repetitions, fixed, *words):
        sweep = self.folder / "sweep.json"
        sweep.write_text(json.dumps({"schema": "verbscope.sweep/1", "benchmark": "send_rate", "fixed": fixed,
                                     "repetitions": repetitions}))
        return [BIN / "verbscope", "run", sweep, "--hosts", hosts, "--out", self.folder / "results", *words]

    def cost_ms(self, hosts, fixed, points=40):
        options = [f"--{key}={value}" for key, value in fixed.items()]
        alone = [BIN / "send_rate", "--fabric", hosts, *options, f"--out_json_file={self.folder}/alone"]
        subprocess.run(alone, check=True, stdout=subprocess.DEVNULL)  # the files are in memory from here on
        start = time.monotonic()
        for _ in range(points):
            subprocess.run(alone, check=True, stdout=subprocess.DEVNULL)
        processes_s = time.monotonic() - start
        start = time.monotonic()
        subprocess.run(self.command(hosts, points, fixed), check=True, stdout=subprocess.DEVNULL)
        sweep_s = time.monotonic() - start
        cost = (sweep_s - processes_s) / points * 1000
        print(f"{hosts}: {cost:.1f} ms a point beside the {processes_s / points * 1000:.1f} ms of the benchmark")
        return cost

    def test_a_local_point_costs_little(self):
        self.assertLess(self.cost_ms("null", {"duration": "1ms", "warmup": "1ms"}), COST_LIMIT_MS)

    def test_a_simulated_point_costs_little(self):
        self.assertLess(self.cost_ms("sim:cib", SHORT), COST_LIMIT_MS)

    def test_a_long_sweep_holds_its_memory(self):
        cpus = len(os.sched_getaffinity(0))
        results = self.folder / "results"
        start = time.monotonic()
        process = subprocess.Popen(self.command("sim:cib", POINTS, SHORT, "--jobs", str(cpus)), stdout=subprocess.DEVNULL)
        memory = {}
        with results.open("a+b") as file:
            lines = 0
            while process.poll() is None:
                lines += sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
                for mark in [EARLY, LATE]:
                    if lines >= mark and mark not in memory:
                        memory[mark] = resident_kib(process)
                time.sleep(0.02)
        self.assertEqual(process.returncode, 0)
        records = [json.loads(line) for line in results.read_text().splitlines()]
        self.assertEqual([record["config"]["point"]["repetition"] for record in records], list(range(POINTS)))
        print(f"{POINTS} points on {cpus} CPUs in {time.monotonic() - start:.0f} s; resident {memory} KiB")
        self.assertLess(memory[LATE] - memory[EARLY], MEMORY_LIMIT_KIB)


if __name__ == "__main__":
    BIN = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
