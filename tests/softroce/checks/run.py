"""Runs the checks of a folder inside the machine and leaves what came of each in /run/verbscope/checks.json.

VERBSCOPE_CHECKS names those to run, with blanks between; without it all are run. VERBSCOPE_CHECK_FOLDER is the folder, this
one without it; support.py is of this one for all.
"""

import contextlib
import io
import json
import os
import pathlib
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = os.environ.get("VERBSCOPE_CHECK_FOLDER", str(HERE))
RESULTS = pathlib.Path("/run/verbscope/checks.json")


def tests_of(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from tests_of(item)
        else:
            yield item


def short_name(test):
    """rates_test.Rates.test_send_rate_RC is rates.send_rate_RC."""
    module, _, method = test.id().split(".")[-3:]  # a module that does not load has one more
    return f"{module.removesuffix('_test')}.{method.removeprefix('test_')}"


def run_one(test):
    said = io.StringIO()
    start = time.monotonic()
    with contextlib.redirect_stdout(said):
        outcome = test.run()
    problems = [text for _, text in outcome.failures + outcome.errors]
    return {"passed": not problems, "seconds": round(time.monotonic() - start, 1), "text": said.getvalue() + "\n".join(problems)}


def main():
    results = {}
    wanted = os.environ.get("VERBSCOPE_CHECKS", "").split()
    for test in tests_of(unittest.defaultTestLoader.discover(FOLDER, pattern="*_test.py")):
        name = short_name(test)
        if wanted and name not in wanted:
            continue
        results[name] = run_one(test)
        print(f"{'passed' if results[name]['passed'] else 'FAILED'} {results[name]['seconds']:6.1f} s  {name}", flush=True)
        part = RESULTS.with_suffix(".part")
        part.write_text(json.dumps(results, indent=1))
        part.rename(RESULTS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
