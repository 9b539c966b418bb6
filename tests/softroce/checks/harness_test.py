"""`verbscope run --hosts` starts server and client of a small sweep on rxe0 and keeps one good record a point."""

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


class Harness(BenchmarkTest):
    def test_run_with_a_hosts_file(self):
        self.folder.mkdir(parents=True)
        sweep, hosts, results = self.folder / "sweep.json", self.folder / "hosts.txt", self.folder / "results.jsonl"
        sweep.write_text(json.dumps(SWEEP))
        hosts.write_text(f"localhost device={DEVICE}\n")
        program = Program(self.folder, "verbscope", [BIN / "verbscope", "run", sweep, "--hosts", hosts, "--out", results])
        self.programs.append(program)
        self.assertEqual(program.finish(), 0, program.describe())
        records = [json.loads(line) for line in results.read_text().splitlines()]
        self.assertEqual([record["config"]["post_list"] for record in records], [1, 4], program.describe())
        for record in records:
            RECORD_VALIDATOR.validate(record)
            self.assertEqual(record["status"], "ok", record)
            self.assertGreater(record["result"]["rate_mops"], 0)
