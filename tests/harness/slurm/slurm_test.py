#!/usr/bin/env -S python3 -B
"""slurm_test.py BIN: sweeps of the simulator through a real Slurm give the records of a local run, whatever the way.

Exit 77: Slurm is not installed (1 when CI=true)."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import slurm

BIN = CLUSTER = None
SWEEP = {
    "schema": "verbscope.sweep/1",
    "benchmark": ["send_rate", "recv_rate"],
    "fixed": {"connection": "UD", "size": 32, "duration": "50us", "warmup": "20us"},
    "vary": {"post_list": [1, 4, 16]},
    "seed": 7,
}
LIMIT_S = 180


class Slurm(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=CLUSTER.folder)
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.sweep = self.folder / "a sweep's file.json"  # quoted for the shell of a task
        self.sweep.write_text(json.dumps(SWEEP))

    def start(self, name, *words, before=()):
        command = [*before, BIN / "verbscope", "run", self.sweep, "--hosts", "sim:cib", "--out", self.folder / name, *words]
        return subprocess.Popen([str(word) for word in command], env=CLUSTER.environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.folder)

    def run_sweep(self, name, *words, before=()):
        """The records, each without its environment, of a sweep that must end well."""
        process = self.start(name, *words, before=before)
        said, _ = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0, said)
        return self.records(name)

    def records(self, name):
        path = self.folder / name
        lines = path.read_text().splitlines() if path.exists() else []
        return [{key: value for key, value in json.loads(line).items() if key != "environment"} for line in lines]

    def jobs(self):
        return CLUSTER.ask("squeue", "--noheader")

    def test_a_job_array_gives_the_records_of_a_local_run(self):
        local = self.run_sweep("local")
        self.assertEqual(len(local), 6)
        self.assertEqual(self.run_sweep("array", "--array", "4"), local)
        self.assertFalse((self.folder / "array.parts").exists())
        environment = json.loads((self.folder / "array").read_text().splitlines()[0])["environment"]
        self.assertIn("--share", environment["harness"]["command_line"])

    def test_steps_of_an_allocation_give_the_records_of_a_local_run(self):
        local = self.run_sweep("local")
        salloc = ["salloc", "--quiet", "--nodes=1"]
        self.assertEqual(self.run_sweep("steps", "--launcher", "slurm", before=salloc), local)
        self.assertEqual(self.run_sweep("at_once", "--launcher", "slurm", "--jobs", "2", before=salloc), local)

    def test_an_allocation_names_its_hosts(self):
        said = subprocess.run(["salloc", "--quiet", "--nodes=1", BIN / "verbscope", "hosts", "slurm"], env=CLUSTER.environment,
                              capture_output=True, text=True, timeout=LIMIT_S, check=True).stdout
        self.assertIn(f"server   {slurm.socket.gethostname().split('.')[0]} ", said)

    def test_without_an_allocation_slurm_is_refused_in_one_line(self):
        process = self.start("none", "--launcher", "slurm")
        said, _ = process.communicate(timeout=LIMIT_S)
        self.assertEqual((process.returncode, len(said.splitlines())), (1, 1), said)
        self.assertIn("not inside a Slurm allocation", said)

    def test_what_sbatch_refuses_is_told(self):
        process = self.start("refused", "--array", "2", "--sbatch=--partition=nowhere")
        said, _ = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 1, said)
        self.assertIn("--array: sbatch: error: Batch job submission failed: Invalid partition name", said)
        self.assertFalse((self.folder / "refused.parts").exists())

    def test_an_interrupt_cancels_the_job_and_keeps_what_had_ended(self):
        self.sweep.write_text(json.dumps({**SWEEP, "benchmark": "send_rate", "vary": {},
                                          "points": [{"duration": "50us"}, {"duration": "10s"}]}))
        process = self.start("cut", "--array", "1")
        part = self.folder / "cut.parts/0.jsonl"
        deadline = time.monotonic() + LIMIT_S
        while not (part.exists() and part.read_text().endswith("\n")):
            self.assertLess(time.monotonic(), deadline, "waited for the first point")
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 130, said)
        self.assertEqual(len(self.records("cut")), 1, said)
        while self.jobs():
            self.assertLess(time.monotonic(), deadline, "waited for the end of the job")
            time.sleep(0.1)


def main():
    global BIN, CLUSTER
    BIN = pathlib.Path(sys.argv.pop(1)).resolve()
    missing = slurm.missing_tools()
    if missing:
        ci = os.environ.get("CI") == "true"
        print(f"{'cannot run' if ci else 'skipped'}: missing {' '.join(missing)} (packages slurmctld slurmd slurm-client munge)")
        return 1 if ci else 77
    with tempfile.TemporaryDirectory(prefix="verbscope-slurm-") as folder:
        CLUSTER = slurm.Slurm(folder)
        try:
            return 0 if unittest.main(exit=False).result.wasSuccessful() else 1
        finally:
            CLUSTER.end()


if __name__ == "__main__":
    sys.exit(main())
