#!/usr/bin/env python3
"""The best single change that `verbscope explain` advises is the best there is: found out by running every one.

advice_exhaustive.py BIN --seed N --count M

Configurations are drawn by --seed (command_lines.LimitingDraw: every benchmark and simulated cluster, with options that limit the
rate); one that fails is drawn again. Each single change of an option that neighbours.py lists is run, and the commands that explain
advises. The answer is right when:

- the rate of the best single change that explain advises is within 3 % of the best rate found. Two kinds of changes count only
  when explain advises them: those that lose messages which the configuration did not lose, and those that neighbours.py calls
  debatable;
- explain says that no change helps only when the best brings less than 3 %, and after it ran all neighbours that it calls legal;
- no advised command fails, changes what the benchmark does, or brings a rate 3 % below the one that explain says.

Prints a line for each configuration, with what was advised and what was best, then counts by kind of failure. Exits with 1 when less than
--right percent of the answers are right.
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys

from lab import PROFILES, Failed, Lab, arguments, folder_of, of_command, outcomes
from neighbours import changes_the_meaning, neighbours
import command_lines

WITHIN = 1.03
LOSSES = 0.01  # the share of messages that a change may lose beyond those that were lost before


def in_words(change):
    return " ".join(f"--{name}" if value is True else f"no --{name}" if value is None or value is False else f"--{name} {value}"
                    for name, value in change.items())


class Judgement:
    """What came of one configuration."""

    def __init__(self, lab, line, profiles, budget):
        self.lab, self.line = lab, line
        self.cluster, self.benchmark, *self.options = line
        self.complaints = []  # (kind, text)
        self.advised = (1.0, {})  # of the best single change: what it brings, and the change
        results = lab.run(*self.point())
        record = lab.record(results)
        self.config, self.base, self.lost = record["config"], record["result"]["rate_mops"], self.lost_share(record)
        self.tried = self.neighbours(profiles[self.cluster])
        self.best = max(self.tried, key=lambda each: each[0], default=(1.0, {}))
        try:
            self.said = lab.explain(results, *budget)
        except subprocess.CalledProcessError as error:
            return self.complain("explain ends with an error", error.stderr.strip())
        self.judge_advice()
        self.judge_best()

    def point(self, change=None):
        return self.cluster, self.benchmark, command_lines.with_options(self.options, change or {})

    def complain(self, kind, text):
        self.complaints.append((kind, text))

    @staticmethod
    def lost_share(record):
        return record["result"]["lost"] / max(1, record["result"]["messages_expected"] or 0)

    def gain(self, *point):
        """What the rate is after a change, and whether it loses more messages than before."""
        record = self.lab.record(self.lab.run(*point))
        return record["result"]["rate_mops"] / self.base, self.lost_share(record) > self.lost + LOSSES

    def neighbours(self, profile):
        """Those that run and lose nothing, with what they bring."""
        tried = []
        for change in neighbours(self.benchmark, self.config, profile):
            try:
                gain, loses = self.gain(*self.point(change))
            except Failed:
                continue
            if not loses:
                tried.append((gain, change))
        return tried

    def judge_advice(self):
        """Runs what explain advises."""
        singles = [advice for advice in self.said["advice"] if len(advice["options"]) == 1]
        for advice in singles:
            change = advice["options"]
            name, words = next(iter(change)), in_words(change)
            if changes_the_meaning(change, self.config):
                self.complain(f"advises another task: {name}", words)
                continue
            try:
                gain, _ = self.gain(*of_command(advice["command"]))
            except Failed as failed:
                self.complain(f"advised command {'is refused' if failed.refused else 'fails'}: {name}", f"{words}: {failed}")
                continue
            if gain * WITHIN < advice["factor"]:
                self.complain(f"advised change brings less: {name}", f"{words}: said x{advice['factor']:.3f}, came x{gain:.3f}")
            self.advised = max(self.advised, (gain, change), key=lambda each: each[0])

    def judge_best(self):
        gain, change = self.best
        ran, legal = self.said["neighbours"]["run"], self.said["neighbours"]["legal"]
        if self.said["no_change_helps"] and ran < legal:
            self.complain("no change helps, before all were run", f"{ran} of {legal}")
        if self.said["no_change_helps"] and gain >= WITHIN:
            self.complain(f"no change helps, but {next(iter(change))} does", f"{in_words(change)} gives x{gain:.3f}")
        elif self.advised[0] * WITHIN < gain:
            text = f"{in_words(change)} gives x{gain:.3f}, explain ran {ran} of {legal}"
            self.complain(f"advises {next(iter(self.advised[1]), 'nothing')}, but {next(iter(change))} is better", text)

    def text(self):
        def told(gain, change):
            return f"{in_words(change)} x{gain:.3f}" if change else "nothing"
        lines = [f"{'WRONG' if self.complaints else 'right'}  {' '.join(self.line)}: {self.base:.4g} Mops; best of {len(self.tried)}: "
                 f"{told(*self.best)}; advised: {told(*self.advised)}"]
        return "\n".join(lines + [f"       {kind}: {text}" for kind, text in self.complaints])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser, count=40)
    parser.add_argument("--right", type=float, default=95, help="percent of the answers that must be right")
    asked = parser.parse_args()
    paths = {path.stem: path for path in (PROFILES).glob("*.json")}
    profiles = {name: json.loads(path.read_text()) for name, path in paths.items()}
    draw = command_lines.LimitingDraw(asked.seed, paths)
    done = []
    with folder_of(asked) as folder:
        lab = Lab(asked.bin.resolve(), folder)
        for judgement in outcomes(draw, lambda line: Judgement(lab, line, profiles, asked.budget), asked.count, asked.jobs):
            done.append(judgement)
            print(judgement.text(), flush=True)
    for kind, count in collections.Counter(kind for each in done for kind in {kind for kind, _ in each.complaints}).most_common():
        print(f"    {count} {kind}")
    right = 100 * sum(not each.complaints for each in done) / len(done)
    print(f"{right:.1f} % of {len(done)} answers are right (seed {asked.seed})")
    return 0 if right >= asked.right else 1


if __name__ == "__main__":
    sys.exit(main())
