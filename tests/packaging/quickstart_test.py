#!/usr/bin/env python3
"""`make quickstart` builds the programs that it runs and no others, in the build folder that `programs` goes on with."""
import json
import pathlib
import re
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MAKEFILE = (SOURCE / "Makefile.cluster").read_text()


def rule(target):
    """The prerequisites of a target and its recipe."""
    found = re.search(rf"^{target}:([^#\n]*).*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    return found.group(1).split(), [line.strip().lstrip("@") for line in found.group(2).splitlines()]


class Quickstart(unittest.TestCase):
    def test_builds_what_it_runs(self):
        prerequisites, recipe = rule("quickstart")
        self.assertEqual(prerequisites, ["deps"])
        (build,) = [line for line in recipe if line.startswith("cmake --build")]
        run = [line.split() for line in recipe if line.startswith("build/bin/verbscope run")]
        sweep = json.loads((SOURCE / f"configs/sweeps/{run[0][2]}.json").read_text())
        self.assertEqual({words[2] for words in run}, {run[0][2]})
        self.assertEqual(set(build.split("--target ")[1].split()), {"verbscope", sweep["benchmark"]})

    def test_other_programs_are_built_beside_them_with_the_same_options(self):
        def configure(target):
            return [line for line in rule(target)[1] if line.startswith("cmake --preset")]
        self.assertEqual(len(configure("quickstart")), 1)
        self.assertEqual(configure("quickstart"), configure("programs"))


if __name__ == "__main__":
    unittest.main()
