"""The conformance suite (docs/verbs-conformance.md) on the kernel's RDMA stack: the same cases as on the simulator."""

import os
import pathlib
import unittest
from xml.etree import ElementTree

from support import DEVICE, SHARED, Program

SUITE = pathlib.Path(os.environ["VERBSCOPE_TESTS"]) / "test_conformance"
LIMIT_S = 400  # all cases; one minute without sanitizers
AT_LEAST = 600  # cases: an empty filter or a list that lost its files must not look like success


class Conformance(unittest.TestCase):
    def setUp(self):
        self.folder = SHARED / self.id()
        self.report = self.folder / "cases.xml"
        command = [SUITE, f"--fabric=verbs:{DEVICE}", f"--gtest_output=xml:{self.report}", "--gtest_brief=1"]
        self.program = Program(self.folder, "suite", command)
        self.addCleanup(self.program.kill)

    def test_every_case(self):
        status = self.program.finish(LIMIT_S)
        self.assertTrue(self.report.exists(), self.program.describe())
        failed = []
        cases = list(ElementTree.parse(self.report).iter("testcase"))
        for case in cases:
            name = f"{case.get('classname')}.{case.get('name')}"
            skipped = case.find("skipped")
            outcome = "FAILED" if case.find("failure") is not None else "skipped" if skipped is not None else "passed"
            print(f"{outcome} {float(case.get('time')):6.2f} s  {name}")
            if outcome == "FAILED":
                failed.append(name)
        print(f"{len(cases)} cases on {DEVICE}, {len(failed)} failed")
        self.assertGreaterEqual(len(cases), AT_LEAST)
        self.assertEqual((status, failed), (0, []), self.program.describe())
