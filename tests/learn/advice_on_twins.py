#!/usr/bin/env -S python3 -B
"""Follows the advice that `verbscope explain` gives on a learned cluster, and compares the gain on the hidden cluster with
the foretold one. The files are those that hidden_profiles.py --keep leaves."""

import argparse
import json
import pathlib
import random
import shlex
import subprocess
import sys
import tempfile

from hidden_profiles import draw_configuration, figure

WITHIN, GOAL = 0.20, 0.90


def without_option(words, name):
    """The command line without this option and its value."""
    return [word for i, word in enumerate(words) if word != name and words[i - 1] != name]


def advice(programs, learned, words, budget):
    """The best change that explain recommends: (factor, command words, what). None without advice."""
    with tempfile.TemporaryDirectory() as folder:
        record = pathlib.Path(folder) / "record.jsonl"
        subprocess.run([programs / words[0], "--fabric", f"sim:{learned}", *words[1:], "--out_json_file", record], capture_output=True)
        done = subprocess.run([programs / "verbscope", "explain", record, "--json", "--budget", str(budget)],
                              capture_output=True, text=True)
    if done.returncode:
        return None
    given = [each for each in json.loads(done.stdout)[0].get("advice", []) if each["by"] == "run" and not each["other_payload"]]
    if not given:
        return None
    best = max(given, key=lambda each: each["factor"])
    return best["factor"], without_option(shlex.split(best["command"]), "--fabric"), best["change"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", type=pathlib.Path, help="folder of the programs")
    parser.add_argument("hidden", type=pathlib.Path, help="the hidden profile")
    parser.add_argument("learned", type=pathlib.Path, help="the profile that was learned from it")
    parser.add_argument("--count", type=int, default=100, help="number of random configurations")
    parser.add_argument("--seed", type=int, default=1, help="seed of the configurations")
    parser.add_argument("--budget", type=int, default=20, help="simulations per explanation")
    options = parser.parse_args()
    programs = options.programs.resolve()
    dice = random.Random(options.seed)
    cores = json.loads(options.hidden.read_text())["host"]["cores"]["value"]
    good = total = 0
    for _ in range(options.count):
        words = draw_configuration(dice, cores)
        if words[0] == "verb_latency":
            continue
        found = advice(programs, options.learned, words, options.budget)
        if found is None:
            continue
        foretold, command, change = found
        before, after = figure(programs, options.hidden, words), figure(programs, options.hidden, command)
        if not before or not after:
            continue
        total += 1
        within = abs(after / before / foretold - 1) <= WITHIN
        good += within
        print(f"{'     ' if within else 'OFF  '} foretold x{foretold:.2f}, gained x{after / before:.2f}: {' '.join(map(str, words))}: {change}",
              flush=True)
    if not total:
        raise SystemExit("no configuration with advice")
    print(f"{good} of {total} recommendations gain what they foretell within 20 % (goal: {GOAL:.0%})")
    return 0 if good >= GOAL * total else 1


if __name__ == "__main__":
    sys.exit(main())
