#!/usr/bin/env python3
"""compare_loads.py BEFORE AFTER: what bench_simulator's loads cost in two builds.

BEFORE and AFTER are the bench_simulator of each. Instructions are counted by callgrind over one run of a load, set-up
included; the same on every machine. With --wall N the wall clock is measured too, N times each, the builds in turn, and
the medians are compared: told, not judged. Exits with 1 when a load takes more than --most times the instructions.
"""

import argparse
import pathlib
import re
import statistics
import subprocess
import sys

ONE_RUN = "--benchmark_min_time=0.000001"  # a run takes longer, so there is just one


def loads_of(program):
    listed = subprocess.run([program, "--benchmark_list_tests"], capture_output=True, text=True, check=True).stdout.split()
    return [name for name in listed if "64_nodes" not in name]  # these have a budget of their own


def instructions_of(command):
    run = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command],
                         capture_output=True, text=True, timeout=1800, check=True)
    return int(re.search(r"Collected : (\d+)", run.stderr).group(1))


def instructions(program, load):
    return instructions_of([program, f"--benchmark_filter=^{load}$", ONE_RUN])


def seconds(program, load):
    """The wall clock of one run: bench_simulator prints it in milliseconds, as the first figure of the line."""
    run = subprocess.run([program, f"--benchmark_filter=^{load}$", ONE_RUN], capture_output=True, text=True, timeout=600, check=True)
    line = next(line for line in run.stdout.splitlines() if line.startswith(load + " "))
    return float(line.split()[1]) / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--most", type=float, default=1.03, help="times the instructions of before (1.03)")
    parser.add_argument("--wall", type=int, default=0, help="runs of each build for the wall clock (0)")
    parser.add_argument("--only", default="", help="loads whose name matches this expression")
    options = parser.parse_args()
    loads = [load for load in loads_of(options.before) if re.search(options.only, load)]
    too_many = 0
    for load in loads:
        before, after = instructions(options.before, load), instructions(options.after, load)
        too_many += after > options.most * before
        line = f"{load:32} {before:14} {after:14} instructions {after / before:6.3f}"
        if options.wall:
            times = [(seconds(options.before, load), seconds(options.after, load)) for _ in range(options.wall)]
            medians = [statistics.median(side) for side in zip(*times)]
            line += f"   {medians[0]:7.3f} {medians[1]:7.3f} s {medians[1] / medians[0]:6.3f}"
        print(line, flush=True)
    print(f"{len(loads)} loads, {too_many} of them with more than {options.most} times the instructions")
    return 1 if too_many or not loads else 0


if __name__ == "__main__":
    sys.exit(main())
