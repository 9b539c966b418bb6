#!/usr/bin/env -S python3 -B
"""`verbscope learn` on a simulated cluster that differs from a known one in a few parameters: what it finds, writes,
continues and refuses."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = pathlib.Path(sys.argv.pop(1)).resolve()
# Parameters that the cluster has changed, and by how much. Each limits some point alone: acknowledgements limit WRITEs of
# one QP, PCIe limits WRITEs of many threads.
CHANGED = {"nic.handle_ack_ns": 1.4, "link.tlp_share": 0.9}


def run(*words):
    return subprocess.run([PROGRAMS / "verbscope", *map(str, words)], capture_output=True, text=True)


def value(profile, name):
    section, key = name.split(".")
    return profile[section][key]["value"]


class Learn(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        cls.hidden = json.loads((ROOT / "configs/clusters/cib.json").read_text())
        for name, factor in CHANGED.items():
            section, key = name.split(".")
            cls.hidden[section][key]["value"] = round(value(cls.hidden, name) * factor, 4)
        cls.hidden_file = cls.folder / "hidden.json"
        cls.hidden_file.write_text(json.dumps(cls.hidden))
        cls.out = cls.folder / "mine.json"
        cls.command = ["learn", "--fabric", f"sim:{cls.hidden_file}", "--like", "cib", "--out", cls.out, "--points", 40]
        cls.first = run(*cls.command)
        cls.profile = json.loads(cls.out.read_text()) if cls.out.exists() else None

    def test_it_finds_what_was_changed(self):
        self.assertEqual(self.first.returncode, 0, self.first.stderr)
        for name in CHANGED:
            with self.subTest(name=name):
                self.assertAlmostEqual(value(self.profile, name) / value(self.hidden, name), 1, delta=0.1)

    def test_learned_parameters_name_their_records_and_interval(self):
        learned = [each for section in ("host", "link", "nic", "fabric") for each in self.profile[section].values()
                   if each["source"] == "learned"]
        self.assertGreater(len(learned), 3)
        for each in learned:
            self.assertEqual(each["row"], str(self.out.with_suffix(".jsonl")))
            low, high = each["interval"]
            self.assertLessEqual(low, each["value"] * 1.001)
            self.assertGreaterEqual(high, each["value"] * 0.999)

    def test_parameters_that_are_not_identified_have_a_wide_interval(self):
        unknown = [each for section in ("host", "link", "nic", "fabric") for each in self.profile[section].values()
                   if each["source"] == "assumed" and "interval" in each]
        self.assertGreater(len(unknown), 3)
        for each in unknown:
            self.assertLessEqual(each["interval"][0], each["value"] * 1.001)
            self.assertGreaterEqual(each["interval"][1], each["value"] * 0.999)

    def test_it_says_what_it_does_not_know(self):
        self.assertIn("not identified by these points", self.first.stdout)
        self.assertIn("points that judge the fit", self.first.stdout)
        self.assertIn("all", self.profile["learned"]["held_out"])
        self.assertEqual(self.profile["learned"]["start"], "cib")

    def test_the_profile_is_a_cluster(self):
        done = subprocess.run([PROGRAMS / "write_rate", "--fabric", f"sim:{self.out}", "--output", "message_rate"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_points_that_are_in_the_file_are_not_measured_again(self):
        other = self.folder / "other.json"
        records = other.with_suffix(".jsonl")
        records.write_text(self.out.with_suffix(".jsonl").read_text())
        before = records.read_text()
        # The survey alone: this many points are in the file.
        again = run("learn", "--fabric", f"sim:{self.hidden_file}", "--like", "cib", "--out", other, "--points", 40, "--budget", "1ms")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertRegex(again.stdout, r"\d+ points are in .*other.jsonl already")
        self.assertEqual(records.read_text(), before)

    def test_records_that_exist_are_enough(self):
        other, records = self.folder / "records.json", self.folder / "twice.jsonl"
        some = self.out.with_suffix(".jsonl").read_text().splitlines(keepends=True)[:15]
        records.write_text("".join(some + some))
        done = run("learn", "--records", records, "--like", "cib", "--out", other)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("30 measurements", done.stdout)  # a repeated measurement counts
        self.assertEqual(json.loads(other.read_text())["learned"]["records"], str(records))


class Refusals(unittest.TestCase):
    def check(self, words, *parts):
        with tempfile.TemporaryDirectory() as folder:
            done = run("learn", "--out", pathlib.Path(folder) / "x.json", *words)
        self.assertNotEqual(done.returncode, 0)
        for part in parts:
            self.assertIn(part, done.stderr)
        self.assertLessEqual(len(done.stderr.strip().splitlines()), 2, done.stderr)

    def test_nothing_to_learn_from(self):
        self.check([], "--hosts", "--records")

    def test_a_budget_without_time(self):
        self.check(["--fabric", "sim:cib", "--budget", "0s"], "--budget", "0s")

    def test_a_profile_of_another_family(self):
        self.check(["--fabric", "sim:cib", "--like", "cx3"], "--like", "mlx5")

    def test_an_unknown_cluster(self):
        self.check(["--fabric", "sim:cibb"], "cibb")

    def test_a_fabric_without_adapter(self):
        self.check(["--fabric", "null"], "null", "RDMA")


if __name__ == "__main__":
    unittest.main()
