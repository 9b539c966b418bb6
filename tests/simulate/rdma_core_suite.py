#!/usr/bin/env -S python3 -B
"""rdma_core_suite.py BIN [MODULE...]: the tests of rdma-core that Debian's python3-pyverbs has in its documentation, run by
`verbscope simulate` on one node of cib.

BIN: the folder of the programs. Prints how many tests of each module passed and were skipped. Exit status 1 if a test fails,
or if a module ran fewer than AT_LEAST tests; 77: the tests are not installed (1 when CI=true)."""

import gzip
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path("/usr/share/doc/rdma-core/tests")
LIMIT_S = 300
# Tests of the others need what a simulated adapter does not have: page faults of the device, flow steering, tag matching.
AT_LEAST = {"test_addr": 2, "test_atomic": 9, "test_cq": 4, "test_cq_events": 2, "test_cqex": 5, "test_device": 12, "test_fork": 1,
            "test_flow": 0, "test_mr": 11, "test_odp": 0, "test_parent_domain": 1, "test_pd": 4, "test_qp": 16, "test_qpex": 19,
            "test_rdmacm": 0, "test_relaxed_ordering": 3, "test_rss_traffic": 0, "test_shared_pd": 0, "test_tag_matching": 0}
# As run_tests.py of the suite, with modules that the command line names.
RUNNER = """
import sys, unittest
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/tests"]
names = sys.argv[2:]
sys.argv[1:] = ["--dev", "sim0"]
from args_parser import parser
parser.parse_args()
unittest.main(module=None, argv=["suite", "-v", *names])
"""


def unpack(folder):
    for path in SOURCE.iterdir():
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        (folder / path.name.removesuffix(".gz")).write_bytes(data)


def run(verbscope, folder, module):
    """Returns the output, the exit status, the number of passed tests and the number of skipped tests."""
    done = subprocess.run([verbscope, "simulate", "--cluster", "cib", "--time_limit", f"{LIMIT_S}s", "--", "/usr/bin/python3", "-c",
                           RUNNER, folder, f"tests.{module}"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=LIMIT_S + 60)
    said = done.stdout + done.stderr
    return said, done.returncode, len(re.findall(r"\.\.\. ok$", said, re.MULTILINE)), said.count("... skipped")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if not SOURCE.is_dir():
        print(f"{SOURCE} is not there (package python3-pyverbs, with its documentation)")
        return 1 if os.environ.get("CI") == "true" else 77
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "tests").mkdir()
        unpack(folder / "tests")
        for module in sys.argv[2:] or AT_LEAST:
            said, status, passed, skipped = run(pathlib.Path(sys.argv[1]) / "verbscope", folder, module)
            good = status == 0 and passed >= AT_LEAST.get(module, 1)
            print(f"{'passed' if good else 'FAILED'} {module}: {passed} passed, {skipped} skipped", flush=True)
            if not good:
                failed = True
                print("\n".join(said.splitlines()[-40:]))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
