#!/usr/bin/env -S python3 -B
"""Learns simulated clusters whose profiles are drawn at random and disturbed like hardware, and compares what was learned
with the hidden profiles: parameters, their intervals, and the rates of configurations that nobody measured."""

import argparse
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from hidden_cluster import draw_profile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What the learner must reach (share of identified parameters, of intervals, errors of configurations in percent).
WITHIN, WITHIN_GOAL, COVERAGE_GOAL = 0.10, 0.90, (0.90, 0.98)
MEDIAN_GOAL, PERCENTILE_90_GOAL, POINTS_GOAL = 5, 12, 300


def draw_configuration(dice, cores):
    """A benchmark with options that a user may choose."""
    benchmark = dice.choice(["write_rate", "read_rate", "send_rate", "recv_rate", "atomic_rate", "verb_latency"])
    if benchmark == "verb_latency":
        return [benchmark, "--verb", dice.choice(["read", "write", "send", "fetch_add"]), "--size", "8"] if dice.random() < 0.3 else [
            benchmark, "--verb", dice.choice(["read", "write", "send"]), "--size", str(dice.choice([16, 48, 200, 800, 3000, 9000]))]
    size = dice.choice([8, 24, 48, 100, 200, 400, 900, 3000, 8000])
    threads, qps, post_list, depth = (dice.randint(1, min(16, cores)), dice.choice([1, 1, 2, 4, 12]),
                                      dice.choice([1, 1, 2, 8, 16]), dice.choice([32, 64, 128]))
    if benchmark == "atomic_rate":
        post_list = 1  # atomics are posted one at a time
    words = [benchmark, "--threads", str(threads), "--qp", str(qps), "--post_list", str(post_list), "--tx_depth", str(depth)]
    if benchmark == "atomic_rate":
        return words + ["--counters", str(dice.choice([1, 64, 5000]))]
    words += ["--size", str(size)]
    if benchmark == "read_rate":
        return words + ["--direction", dice.choice(["in", "out"])]
    transports = {"write_rate": ["RC", "UC"], "send_rate": ["RC", "UC", "UD"], "recv_rate": ["RC", "UC", "UD"]}[benchmark]
    connection = dice.choice(transports)
    if connection == "UD":
        words[words.index("--size") + 1] = str(min(size, 900))
    return words + ["--connection", connection, "--inline_size", str(dice.choice([0, min(size, 200)]))]


def figure(programs, profile, words):
    """Rate in Mops, or latency in ns, in the benchmark's default interval; None if the run failed."""
    done = subprocess.run([programs / words[0], "--fabric", f"sim:{profile}", *words[1:], "--sim_threads", "1", "--out_json_file", "-"],
                          capture_output=True, text=True)
    for line in done.stdout.splitlines():
        if line.startswith('{"schema"'):
            record = json.loads(line)
            key = "lat_mean_ns" if words[0] == "verb_latency" else "rate_mops"
            return record["result"].get(key) if record["status"] == "ok" else None
    raise SystemExit(f"{' '.join(map(str, words))}: {done.stderr}")  # no measurement, but a wrong command line


def error_percent(theirs, ours):
    """Of our figure; 100 if only one of the two runs failed."""
    return abs(ours / theirs - 1) * 100 if theirs and ours else 100


def configuration_errors(programs, hidden, learned, cores, seed, count):
    dice = random.Random(seed * 1000 + 7)
    drawn = [draw_configuration(dice, cores) for _ in range(count)]
    with ThreadPoolExecutor(2) as pool:
        theirs = list(pool.map(lambda words: figure(programs, hidden, words), drawn))
        ours = list(pool.map(lambda words: figure(programs, learned, words), drawn))
    errors = [(error_percent(a, b), words) for a, b, words in zip(theirs, ours, drawn) if a or b]
    if not errors:
        raise SystemExit(f"seed {seed}: no configuration ran on both clusters")
    return sorted(errors, key=lambda error: error[0])


def compare_parameters(hidden, learned):
    """(name, true value, learned value, interval) of each identified parameter."""
    rows = []
    for section in ("host", "link", "nic", "fabric"):
        for key, parameter in learned[section].items():
            if parameter["source"] == "learned":
                rows.append((f"{section}.{key}", hidden[section][key]["value"], parameter["value"], parameter["interval"]))
    return rows


def learn_one(programs, folder, seed, options):
    profile, base = draw_profile(ROOT, seed)
    hidden, learned = folder / f"hidden{seed}.json", folder / f"learned{seed}.json"
    hidden.write_text(json.dumps(profile))
    begin = time.time()
    command = [programs / "verbscope", "learn", "--fabric", f"sim:{hidden}", "--disturb", str(seed), "--out", learned,
               "--points", str(options.points)]
    done = subprocess.run(command, capture_output=True, text=True)
    (folder / f"learned{seed}.txt").write_text(done.stdout + done.stderr)
    if done.returncode:
        raise SystemExit(f"seed {seed}: {done.stderr}{done.stdout}")
    seconds = time.time() - begin
    result = json.loads(learned.read_text())
    points = result["learned"]["fitted_points"] + result["learned"]["held_out"]["all"]["points"]
    measured = sum(float(json.loads(line)["result"].get("window_s") or 0) for line in open(learned.with_suffix(".jsonl")))
    rows = compare_parameters(profile, result)
    errors = configuration_errors(programs, hidden, learned, profile["host"]["cores"]["value"], seed, options.configurations)
    good = sum(abs(ours - true) <= WITHIN * true for _, true, ours, _ in rows)
    inside = sum(low <= true <= high for _, true, _, (low, high) in rows)
    sizes = [error for error, _ in errors]
    median, nine = statistics.median(sizes), sizes[math.ceil(len(sizes) * 0.9) - 1]
    print(f"seed {seed}: drawn from {base}, started from {result['learned']['start']}: {len(rows)} parameters identified, "
          f"{good} within 10 %, {inside} inside their interval; {len(sizes)} configurations: median {median:.1f} %, 90 % {nine:.1f} %, "
          f"worst {sizes[-1]:.0f} % ({' '.join(map(str, errors[-1][1]))}); {points} points, {measured:.2g} s simulated, {seconds:.0f} s; "
          f"left out: {result['learned']['hosts_left_out']}", flush=True)
    if options.verbose:
        for name, true, ours, (low, high) in rows:
            mark = ("" if abs(ours - true) <= WITHIN * true else " OFF") + ("" if low <= true <= high else " OUTSIDE")
            print(f"    {name:38} {true:10.4g} {ours:10.4g} [{low:.4g}, {high:.4g}]{mark}")
        for error, words in errors[-8:]:
            print(f"    {error:5.1f} %  {' '.join(map(str, words))}", flush=True)
    return {"identified": len(rows), "good": good, "inside": inside, "median": median, "nine": nine, "points": points}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", type=pathlib.Path, help="folder of the programs")
    parser.add_argument("--seed", type=int, default=1, help="first seed")
    parser.add_argument("--count", type=int, default=40, help="number of hidden profiles")
    parser.add_argument("--points", type=int, default=300, help="largest number of measured points")
    parser.add_argument("--configurations", type=int, default=200, help="configurations to compare per profile")
    parser.add_argument("--keep", type=pathlib.Path, help="keep the files in this folder")
    parser.add_argument("--verbose", action="store_true", help="print each parameter and the worst configurations")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a goal is missed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or pathlib.Path(scratch)
        folder.mkdir(exist_ok=True)
        runs = [learn_one(options.programs.resolve(), folder, seed, options) for seed in range(options.seed, options.seed + options.count)]
    identified = sum(run["identified"] for run in runs)
    within, inside = sum(run["good"] for run in runs) / identified, sum(run["inside"] for run in runs) / identified
    goals = [
        (f"{within:.0%} of {identified} identified parameters are within 10 %", within >= WITHIN_GOAL, f"at least {WITHIN_GOAL:.0%}"),
        (f"{inside:.0%} are inside their interval", COVERAGE_GOAL[0] <= inside <= COVERAGE_GOAL[1], "90 to 98 %"),
        (f"{sum(run['median'] <= MEDIAN_GOAL for run in runs)} of {len(runs)} profiles: median error of configurations",
         all(run["median"] <= MEDIAN_GOAL for run in runs), f"at most {MEDIAN_GOAL} %"),
        (f"{sum(run['nine'] <= PERCENTILE_90_GOAL for run in runs)} of {len(runs)} profiles: 90th percentile",
         all(run["nine"] <= PERCENTILE_90_GOAL for run in runs), f"at most {PERCENTILE_90_GOAL} %"),
        (f"at most {max(run['points'] for run in runs)} points", max(run["points"] for run in runs) <= POINTS_GOAL, f"at most {POINTS_GOAL}"),
    ]
    for text, reached, goal in goals:
        print(f"{'reached' if reached else 'MISSED '}  {text} (goal: {goal})")
    return 1 if options.check and not all(reached for _, reached, _ in goals) else 0


if __name__ == "__main__":
    sys.exit(main())
