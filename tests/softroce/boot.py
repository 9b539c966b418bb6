#!/usr/bin/env -S python3 -B
"""Boots the emulated machine and runs the checks in it (softroce.machine in ctest); check.py tells what came of each.

    boot.py --bin FOLDER --tests FOLDER --out FOLDER --cache FOLDER [--folder NAME] [--timed] [--only] --expect NAME...

Exit 0: the machine ran every check of the list, and no other (without --only it runs all that there are); 1: it did not; 77: this host cannot run it (1 when CI=true).
"""

import argparse
import json
import pathlib
import sys

import machine
import without_pause

HERE = pathlib.Path(__file__).resolve().parent
BOOT_LIMIT_S = 240
# For --timed. The kernel does not trust QEMU's TSC, which is the host's, and reads the emulated HPET instead: 6.3 us where the
# TSC takes 0.4. perftest reads the TSC in any case, verbscope the clock that the kernel trusts.
CHEAP_CLOCK = "clocksource=tsc tsc=reliable"
TIMED = ["read_rate", "send_rate", "verb_latency", "write_rate"]  # their `pause` is left out (without_pause.py)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, help="the benchmarks")
    parser.add_argument("--tests", required=True, help="the test programs")
    parser.add_argument("--out", required=True, help="where results go; emptied first")
    parser.add_argument("--cache", required=True, help="where the initramfs is kept")
    parser.add_argument("--limit", type=int, default=2000, help="seconds for all")
    parser.add_argument("--folder", default="checks", help="the folder of the checks, beside this file")
    parser.add_argument("--timed", action="store_true", help="make reads of the clock and pauses cheap, as on hardware")
    parser.add_argument("--only", action="store_true", help="run no other checks than those expected")
    parser.add_argument("--expect", nargs="+", required=True, help="the names of the checks")
    options = parser.parse_args()
    variables = {"VERBSCOPE_SOFTROCE": HERE, "VERBSCOPE_SOURCE": HERE.parents[1], "VERBSCOPE_BIN": options.bin,
                 "VERBSCOPE_TESTS": options.tests, "VERBSCOPE_CHECK_FOLDER": HERE / options.folder}
    if options.timed:
        variables["VERBSCOPE_BIN"] = pathlib.Path(options.cache, "without_pause").resolve()
        for program in TIMED:
            without_pause.copy_without_pause(pathlib.Path(options.bin, program), variables["VERBSCOPE_BIN"])
    if options.only:
        variables["VERBSCOPE_CHECKS"] = " ".join(options.expect)
    out = pathlib.Path(options.out)

    def run_checks():
        words = CHEAP_CLOCK if options.timed else ""
        machine.run(HERE / "guest.sh", out, options.cache, variables, BOOT_LIMIT_S, options.limit, words)
        return json.loads((out / "checks.json").read_text())

    return machine.tell(out, options.expect, run_checks)


if __name__ == "__main__":
    sys.exit(main())
