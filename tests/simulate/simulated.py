"""Runs programs by `verbscope simulate`, for the tests of this folder."""

import dataclasses
import os
import re
import shutil
import subprocess

LIMIT_S = 120


@dataclasses.dataclass
class Ran:
    returncode: int
    stdout: str  # what the programs print, without the names of their nodes
    stderr: str  # what they print there, and the summary


def without_names(text):
    return re.sub(r"^node\d+: ", "", text, flags=re.MULTILINE)


def simulate(verbscope, *programs, cluster="cib", options=()):
    """Each program is a list of words, on a node of its own."""
    command = [verbscope, "simulate", "--cluster", cluster, *options, "--"]
    for number, program in enumerate(programs):
        command += ["::"] if number else []
        command += program
    done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S)
    return Ran(done.returncode, without_names(done.stdout), without_names(done.stderr))


def require(test, program, package, *arguments):
    """Skips the test if the program is not installed, or fails with these arguments; in CI that is an error."""
    if shutil.which(program) is not None and \
            (not arguments or subprocess.run([program, *arguments], capture_output=True).returncode == 0):
        return
    if os.environ.get("CI") == "true":
        test.fail(f"{program} is not installed (package {package})")
    test.skipTest(f"{program} is not installed (package {package})")
