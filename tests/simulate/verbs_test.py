"""Programs that use one part of verbs each, run by `verbscope simulate`. Arguments: path of verbscope."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
VERBSCOPE = sys.argv.pop(1)


def simulate(*program, cluster="cib"):
    return subprocess.run([VERBSCOPE, "simulate", "--cluster", cluster, "--", *map(str, program)],
                          capture_output=True, text=True, timeout=60)


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
        done = simulate(*program, cluster=cluster)
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
        if subprocess.run(["/usr/bin/python3", "-c", "import pyverbs"], capture_output=True).returncode != 0:
            self.skipTest("python3-pyverbs is not installed")
        self.expect_ok("/usr/bin/python3", HERE / "pyverbs_queues.py")

    def test_adapters_are_known_by_their_ids(self):
        if shutil.which("ibv_devinfo") is None:
            self.skipTest("ibverbs-utils is not installed")
        for cluster, device in (("cib", 4113), ("cx3", 4099), ("cx6", 4123)):
            told = simulate("ibv_devinfo", "-v", cluster=cluster).stdout
            self.assertRegex(told, rf"vendor_id:(\s|\\x09)+0x02c9[\s\S]*vendor_part_id:(\s|\\x09)+{device}\n")

    def test_the_tracer_counts_on_the_simulated_device(self):
        done = subprocess.run([VERBSCOPE, "trace", "--", VERBSCOPE, "simulate", "--cluster", "cib", "--",
                               self.build("builder")], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("ok\n", done.stdout)
        self.assertIn("2 RDMA_WRITE, 1 ATOMIC_FETCH_AND_ADD", done.stderr)
        self.assertRegex(done.stderr, r"1 lists of 3 on average, 2 refused[\s\S]*as mlx5[\s\S]*sim0 +2 QPs and 1 CQs")


if __name__ == "__main__":
    unittest.main()
