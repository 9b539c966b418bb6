#!/usr/bin/env python3
"""Histories of raft_kv on simulated clusters with faults, each checked by `verbscope linearizable`.

    random_raft.py BIN --count 2000 --seed 1

BIN: the folder of the programs. Each seed has another cluster: replicas, clients, faults, losses, reads, snapshots. raft_kv
fails if there is no leader ten election time-outs after a fault. With --planted, replicas make errors, and each must be found.
"""

import argparse
import concurrent.futures
import os
import random
import subprocess
import sys
import tempfile

PLANTED = ["lost_put", "stale_read", "double_put"]


def options_of(seed, planted):
    draw = random.Random(seed)
    options = {
        "--seed": seed,
        "--replicas": draw.choice([3, 3, 5]),
        "--clients": draw.choice([1, 2, 3]),
        "--outstanding": draw.choice([1, 2, 4]),
        "--keys": draw.choice([1, 3, 10]),
        "--puts": draw.choice([20, 50, 80]),
        "--election": "2ms",
        "--rto": "500us",
        "--timeout": "200ms",
        "--duration": draw.choice(["20ms", "40ms", "60ms"]),
        "--reads": draw.choice(["leader", "lease"]),
        "--snapshot": draw.choice([100, 2000, 100000]),
    }
    if planted:
        options.update({"--plant": planted, "--duration": "8ms", "--puts": 50, "--clients": 3, "--keys": 3})
    else:
        options["--faults"] = "random"
        if draw.random() < 0.3:
            options["--loss"] = draw.choice(["0.0001", "0.001", "0.01"])
    return options


def run_one(bin_dir, seed, planted):
    """What is wrong with this seed; empty: nothing."""
    options = options_of(seed, planted)
    with tempfile.TemporaryDirectory() as folder:
        history = os.path.join(folder, "history.jsonl")
        command = [os.path.join(bin_dir, "raft_kv"), "--fabric", "sim:cx5", "--history", history]
        for name, value in options.items():
            command += [name, str(value)]
        shown = " ".join(command[:1] + command[1:3] + command[5:])
        run = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if run.returncode != 0:
            return f"{shown}: exit {run.returncode}: {run.stderr.strip()[-500:]}"
        check = subprocess.run([os.path.join(bin_dir, "verbscope"), "linearizable", history], capture_output=True,
                               text=True, timeout=300)
        said = (check.stdout + check.stderr).strip()[-700:]
        if planted:
            return "" if check.returncode == 1 and "not linearizable" in said else f"{shown}: not found: {said}"
        return "" if check.returncode == 0 else f"{shown}: {said}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--planted", action="store_true", help="one planted error per seed, which must be found")
    arguments = parser.parse_args()
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        seeds = range(arguments.seed, arguments.seed + arguments.count)
        planted = [PLANTED[seed % len(PLANTED)] if arguments.planted else None for seed in seeds]
        for wrong in pool.map(run_one, [arguments.bin] * len(seeds), seeds, planted):
            if wrong:
                failures += 1
                print(wrong)
    print(f"{arguments.count} histories, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
