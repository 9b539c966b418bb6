"""`verbscope run --hosts` starts server and client of a small sweep on rxe0 and keeps one good record a point. `verbscope
learn` has nothing to learn of a software device, and says so."""

import json

from support import BIN, DEVICE, RECORD_VALIDATOR, BenchmarkTest, Program

SWEEP = {
    "schema": "verbscope.sweep/1",
    "description": "two points over soft-RoCE",
    "benchmark": "send_rate",
    "fabrics": ["verbs"],
    "fixed": {"connection": "UD", "size": 32, "iters": 640, "warmup": "100ms"},
    "vary": {"post_list": [1, 4]},
}


# A rate and a latency, whose tables the client prints.
PERFTEST = {
    "schema": "verbscope.sweep/1",
    "description": "programs of perftest over soft-RoCE",
    "benchmark": "perftest",
    "fabrics": ["verbs"],
    "fixed": {"size": 32, "iters": 640, "timeout": "60s"},
    "vary": {"tool": ["ib_write_bw", "ib_send_lat"]},
}


# perftest prints no results if its calibration of the processor's clock is disturbed, as where no core is free.
NO_FREQUENCY, PERFTEST_RUNS = "Correlation coefficient", 4
SURVEY_LIMIT_S = 240  # for seven points; each takes seconds on a busy machine


class Harness(BenchmarkTest):
    def run_sweep(self, sweep, host, name="results.jsonl"):
        """The records of the sweep on this host, all of which are good."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file, hosts, results = self.folder / "sweep.json", self.folder / "hosts.txt", self.folder / name
        file.write_text(json.dumps(sweep))
        hosts.write_text(f"{host}\n")
        program = Program(self.folder, "verbscope", [BIN / "verbscope", "run", file, "--hosts", hosts, "--out", results])
        self.programs.append(program)
        self.assertEqual(program.finish(), 0, program.describe())
        records = [json.loads(line) for line in results.read_text().splitlines()]
        for record in records:
            RECORD_VALIDATOR.validate(record)
            self.assertEqual(record["status"], "ok", record)
            self.assertGreater(record["result"]["rate_mops"], 0)
        return records

    def test_run_with_a_hosts_file(self):
        records = self.run_sweep(SWEEP, f"localhost device={DEVICE}")
        self.assertEqual([record["config"]["post_list"] for record in records], [1, 4])

    def test_perftest_as_a_benchmark(self):
        host = f"localhost device={DEVICE} gid_index=1"
        for number in range(PERFTEST_RUNS):
            try:
                records = self.run_sweep(PERFTEST, host, f"results{number}.jsonl")
                break
            except AssertionError as error:
                if NO_FREQUENCY not in str(error) or number + 1 == PERFTEST_RUNS:
                    raise
        self.assertEqual([record["config"]["tool"] for record in records], PERFTEST["vary"]["tool"])
        for record in records:
            self.assertEqual((record["config"]["size"], record["config"]["ib_dev"]), (32, DEVICE))
            self.assertEqual("lat_p50_ns" in record["result"], record["config"]["tool"].endswith("lat"), record)
            self.assertEqual(record["result"]["clients"][0]["result"]["rate_mops"], record["result"]["rate_mops"])

    def test_learn_refuses_a_software_device(self):
        self.folder.mkdir(parents=True)
        hosts, out = self.folder / "hosts.txt", self.folder / "mine.json"
        hosts.write_text(f"localhost device={DEVICE}\n")
        program = Program(self.folder, "verbscope", [BIN / "verbscope", "learn", "--hosts", hosts, "--out", out])
        self.programs.append(program)
        self.assertEqual(program.finish(SURVEY_LIMIT_S), 1, program.describe())
        said = program.describe()
        self.assertIn(f"{DEVICE} of localhost is a software device", said)
        self.assertRegex(said, r"write_rate.*: [0-9.]+ Mops")
        self.assertFalse(out.exists())
