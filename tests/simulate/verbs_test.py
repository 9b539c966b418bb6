"""Programs that use one part of verbs each, run by `verbscope simulate`. Arguments: path of verbscope."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from simulated import require, simulate

HERE = pathlib.Path(__file__).resolve().parent
VERBSCOPE = sys.argv.pop(1)


class Verbs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)

    def build(self, name):
        program = pathlib.Path(self.folder.name) / name
        libraries = ["-libverbs", "-lpthread", "-ldl"]
        subprocess.run(["cc", "-O1", "-o", program, HERE / f"{name}.c", *libraries], check=True, timeout=60)
        return program

    def expect_ok(self, *program, cluster="cib"):
        done = simulate(VERBSCOPE, program, cluster=cluster)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("ok\n", done.stdout, done.stderr)

    def test_builders_post_what_they_collect(self):
        self.expect_ok(self.build("builder"))

    def test_datagrams_reach_groups_and_are_answered(self):
        self.expect_ok(self.build("datagrams"))

    def test_shared_queues_of_domains(self):
        self.expect_ok(self.build("shared_queues"))

    def test_destroying_waits_for_acknowledgements(self):
        self.expect_ok(self.build("acknowledgements"))

    def test_what_is_not_there_says_so(self):
        self.expect_ok(self.build("refusals"))

    def test_on_ethernet(self):
        for name in ("builder", "shared_queues"):
            self.expect_ok(self.build(name), cluster="cx5")

    def test_pyverbs_with_extended_and_shared_queues(self):
        require(self, "/usr/bin/python3", "python3-pyverbs", "-c", "import pyverbs")
        self.expect_ok("/usr/bin/python3", HERE / "pyverbs_queues.py")

    def test_ucx_uses_the_adapter_between_nodes(self):
        require(self, "ucx_perftest", "ucx-utils")
        for cluster in ("cib", "cx6"):
            command = ["UCX_LOG_LEVEL=info", "ucx_perftest", "-t", "tag_lat", "-n", "200", "-w", "10"]
            done = simulate(VERBSCOPE, command, [*command, "node0"], cluster=cluster)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertRegex(done.stdout, r"ep_cfg\[0\]: tag\([a-z]+_verbs/sim0:1")
            latency_us = float(re.search(r"Final: +200 +([0-9.]+)", done.stdout)[1])
            self.assertLess(latency_us, 5, "a message of 8 bytes by the simulated network")

    def test_adapters_are_known_by_their_ids(self):
        require(self, "ibv_devinfo", "ibverbs-utils")
        for cluster, device in (("cib", 4113), ("cx3", 4099), ("cx6", 4123)):
            told = simulate(VERBSCOPE, ["ibv_devinfo", "-v"], cluster=cluster).stdout
            self.assertRegex(told, rf"vendor_id:\s+0x02c9[\s\S]*vendor_part_id:\s+{device}\n")

    def test_the_tracer_counts_on_the_simulated_device(self):
        done = subprocess.run([VERBSCOPE, "trace", "--", VERBSCOPE, "simulate", "--cluster", "cib", "--",
                               self.build("builder")], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("ok\n", done.stdout)
        self.assertIn("2 RDMA_WRITE, 1 ATOMIC_FETCH_AND_ADD", done.stderr)
        self.assertRegex(done.stderr, r"1 lists of 3 on average, 2 refused[\s\S]*as mlx5[\s\S]*sim0 +2 QPs and 1 CQs")


if __name__ == "__main__":
    unittest.main()
