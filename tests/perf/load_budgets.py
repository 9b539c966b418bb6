#!/usr/bin/env -S python3 -B
"""load_budgets.py BENCH [LOAD ...]: whether the simulator's loads cost no more instructions than BUDGETS allows.

BENCH is bench_simulator, beside which the benchmarks stand. Without LOAD: every one. Counted by callgrind over one whole run,
set-up included. Who makes the simulator faster lowers the budgets, who makes it slower pays it back or says in the commit why
not. Exit 77: there is no valgrind (1 when CI=true).
"""

import os
import pathlib
import shutil
import sys

from compare_loads import ONE_RUN, instructions_of

# Millions of instructions: 3 % above what a load took when its budget was set.
BUDGETS = {
    "send/ud_post_list_16": 3251,
    "send/ud_header_only": 4597,
    "send/ud_post_list_1": 3221,
    "send/rc_post_list_16": 4082,
    "receive/ud": 1611,
    "one_sided/read_out": 4895,
    "one_sided/read_in": 7318,
    "one_sided/uc_write_out": 2873,
    "one_sided/rc_write_out": 3581,
    "fetch_and_add/on_65536_counters": 1698,
    # A point of 150 us: what a sweep or `explain` runs by hundreds.
    "short_point": 150,
}
SHORT_POINT = "--fabric sim:cib -c UD -s 60 -I 60 -l 16 --threads 8 -q 4 -D 150us --warmup 100us".split()


def command_of(bench, load):
    if load == "short_point":
        return [bench.with_name("send_rate"), *SHORT_POINT]
    return [bench, f"--benchmark_filter=^{load}$", ONE_RUN]


def main():
    if shutil.which("valgrind") is None:
        print("skipped: no valgrind (make -f Makefile.cluster deps-test installs it)")
        return 1 if os.environ.get("CI") == "true" else 77
    bench, loads = pathlib.Path(sys.argv[1]), sys.argv[2:] or list(BUDGETS)
    over = 0
    for load in loads:
        spent = instructions_of(command_of(bench, load)) / 1e6
        over += spent > BUDGETS[load]
        print(f"{load:32} {spent:7.0f} million instructions, at most {BUDGETS[load]} allowed", flush=True)
    print(f"{len(loads)} loads, {over} over their budgets")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
