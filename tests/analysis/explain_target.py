#!/usr/bin/env python3
"""`verbscope explain --target` reaches what can be reached, with the fewest changes: found out on exhaustive grids.

explain_target.py BIN --seed N --count M

Configurations are drawn by --seed (command_lines.LimitingDraw). Of each, a grid of up to three options that neighbours.py lists, with up to four values each, is
run whole. The target is what one of its better points has, in Mops, Gb/s or, of benchmarks with latencies, us (the median). A configuration whose
grid has nothing 10 % better is drawn again. The command that explain prints is run.

- *Reached*: its run reaches the target, which explain says as well.
- *Fewest*: it changes no more options than the grid point that reaches the target with the fewest.

Prints a line for each configuration. Exits with 1 when less than --reached percent are reached, or less than --fewest percent of those
with the fewest changes.
"""

import argparse
import itertools
import json
import random
import subprocess
import sys

from lab import PROFILES, Failed, Lab, arguments, folder_of, of_command, outcomes
from neighbours import neighbours
from command_lines import LimitingDraw, with_options

WORTH = 1.1  # of the best of a grid over the configuration
WITHIN = 1.005  # of a target, which has the digits of a command line
LOSSES = 0.01


def figure(record, unit):
    """What a target of this unit is held against; None where the benchmark has no such figure. Latencies as trips per us, so
    that more is better."""
    result = record["result"]
    if unit == "us":
        latency = (result.get("latency") or [result])[0].get("lat_p50_ns")
        return 1e3 / latency if latency else None
    return result["rate_mops"] if unit == "Mops" else result.get("bandwidth_gbit_per_s")


def shown(value, unit):
    return f"{1 / value if unit == 'us' else value:.4g} {unit}"


class Case:
    """What came of one configuration."""

    def __init__(self, lab, line, profiles, budget):
        self.lab, self.line = lab, line
        self.cluster, self.benchmark, *self.options = line
        # Of its own, so that a case is the same whichever were drawn or failed before.
        self.random = random.Random(" ".join(line))
        results = lab.run(self.cluster, self.benchmark, self.options)
        self.record = lab.record(results)
        units = [unit for unit in ("Mops", "Mops", "Gb/s", "us") if figure(self.record, unit)]
        self.unit = self.random.choice(["us"] if self.benchmark == "verb_latency" else units)
        self.base = figure(self.record, self.unit)
        grid = self.grid(profiles[self.cluster])
        better = sorted(value for value, _ in grid if value >= WORTH * self.base)
        if not better:
            raise Failed("no point of its grid is better")
        target, best = self.random.choice(better) / WITHIN, better[-1]
        self.text = shown(target, self.unit)
        self.fewest = min((changes for value, changes in grid if value >= target), key=len)
        self.best = best
        self.ask(results, target, budget)

    def grid(self, profile):
        """(figure, changes) of the configuration and of all points of its grid that run and lose nothing."""
        values = {}
        for change in neighbours(self.benchmark, self.record["config"], profile):
            for name, value in change.items():
                values.setdefault(name, []).append(value)
        names = self.random.sample(sorted(values), min(3, len(values)))
        axes = [[{}, *({name: value} for value in self.random.sample(values[name], min(3, len(values[name]))))] for name in names]
        points = []
        for combination in itertools.product(*axes):
            changes = {name: value for change in combination for name, value in change.items()}
            try:
                record = self.lab.record(self.lab.run(self.cluster, self.benchmark, with_options(self.options, changes)))
            except Failed:
                continue
            if not changes or record["result"]["lost"] <= LOSSES * (record["result"]["messages_expected"] or 0):
                points.append((figure(record, self.unit), changes))
        return points

    def ask(self, results, target, budget):
        self.reached, self.changes = False, {}
        try:
            said = self.lab.explain(results, "--target", self.text, *budget)["target"]
        except subprocess.CalledProcessError as error:
            self.came = f"explain ends with an error: {error.stderr.strip()}"
            return
        self.changes = said["options"]
        try:
            value = figure(self.lab.record(self.lab.run(*of_command(said["command"]))), self.unit)
        except Failed as failed:
            self.came = f"{said['command']} fails: {failed}"
            return
        self.reached = said["reached"] and value * WITHIN >= target
        self.came = f"explain: {self.changes} {shown(value, self.unit)}"
        if not said["reached"]:
            self.came += f", in the way: {said['in_the_way']}"
        elif not self.reached:
            self.came += ", called reached"

    def with_fewest(self):
        return len(self.changes) <= len(self.fewest)

    def __str__(self):
        verdict = "MISSED" if not self.reached else "right " if self.with_fewest() else "LONG  "
        return f"{verdict} {' '.join(self.line)}: {shown(self.base, self.unit)}, target {self.text}; grid: {self.fewest}, best {shown(self.best, self.unit)}; " + \
            self.came


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser, count=50)
    parser.add_argument("--reached", type=float, default=90, help="percent of the targets that must be reached")
    parser.add_argument("--fewest", type=float, default=90, help="percent of those that must have the fewest changes")
    asked = parser.parse_args()
    paths = {path.stem: path for path in PROFILES.glob("*.json")}
    profiles = {name: json.loads(path.read_text()) for name, path in paths.items()}
    cases = []
    with folder_of(asked) as folder:
        lab = Lab(asked.bin.resolve(), folder)
        for case in outcomes(LimitingDraw(asked.seed, paths), lambda line: Case(lab, line, profiles, asked.budget), asked.count, asked.jobs):
            cases.append(case)
            print(case, flush=True)
    reached = [case for case in cases if case.reached]
    fewest = [case for case in reached if case.with_fewest()]
    print(f"{len(reached)} of {len(cases)} targets were reached ({100 * len(reached) / len(cases):.1f} %, seed {asked.seed})")
    print(f"{len(fewest)} of these with no more changes than in the grid ({100 * len(fewest) / max(1, len(reached)):.1f} %)")
    return 0 if 100 * len(reached) >= asked.reached * len(cases) and 100 * len(fewest) >= asked.fewest * len(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
