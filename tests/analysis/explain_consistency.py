#!/usr/bin/env python3
"""`verbscope explain` does not contradict itself, and what it advises can be typed.

explain_consistency.py BIN --seed N --count M

Short points are drawn by --seed (command_lines.LimitingDraw), several to a results file. Of each:

- no resource is twice among the limits; one limit brings 3 % at least; of two neither does alone, and both together do;
- the figures of the sentence are those of the JSON and of the table, which have the same limits;
- the advice is in the order of what it brings, each at least 3 %, and programs accept the commands (which are run for a moment);
- "no change helps" stands beside no advice.

Prints each contradiction, then counts by kind. Exits with 1 when there is one.
"""

import argparse
import collections
import hashlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from lab import PROFILES, Failed, Lab, arguments, folder_of, of_command, outcomes
from command_lines import LimitingDraw, with_options
from random_rates import NO_RATE

SHORT = {"duration": "200us", "warmup": "200us"}
MOMENT = {"duration": "20us", "warmup": "0", "longest": "100us"}
LEAST = 1.03
SIGNED = re.compile(r"([+-]\d+(?:\.\d+)?) %")
PLAIN = re.compile(r"(?<![-+.\d])(\d+(?:\.\d+)?) %(?! of (?:the units|it for))")  # shares of a load, which the table has not
A_FILE = 10  # points


def percent(gain):
    return f"{100 * (gain - 1):+.0f}"


def parts_of(text, ids):
    """The part of the text that each point has, which begins with its id."""
    starts = sorted((found.start(), point) for point in ids for found in [re.search(rf"^{point}\b", text, re.MULTILINE)] if found)
    ends = [start for start, _ in starts[1:]] + [len(text)]
    return {point: text[start:end] for (start, point), end in zip(starts, ends)}


def row_of(part, words):
    """The row of the table that begins with these words, but for the option or the client that they name."""
    name = re.split(r" \(--| of client", words)[0]
    return next((row for row in part.splitlines() if "|" in row and row.startswith(name)), "")


class Check:
    """The contradictions of one point: (kind, text)."""

    def __init__(self, lab, said, text):
        self.lab, self.said, self.found = lab, said, []
        self.limits = said["limits"]
        self.check_limits()
        self.check_sentence(text)
        self.check_advice()

    def wrong(self, kind, text=""):
        self.found.append((kind, text))

    def check_limits(self):
        said, limits = self.said, self.limits
        names = [limit["resource"] for limit in limits]
        gains = [limit["gain"] for limit in limits]
        if len(set(names)) < len(names):
            self.wrong("a resource is twice among the limits", str(names))
        if len(limits) == 1 and gains[0] < LEAST:
            self.wrong("a limit that brings less than 3 %", f"{names[0]} x{gains[0]:.3f}")
        if len(limits) == 2 and (max(gains) >= LEAST or said["gain_of_all"] < LEAST):
            self.wrong("a pair of which one helps alone, or both do not", f"{names} {gains} {said['gain_of_all']:.3f}")
        if (said["limit"] or {}).get("resource") != (names[0] if names else None):
            self.wrong("limit is not the first of limits", f"{said['limit']} {names}")
        if len(limits) == 1 and said["gain_of_all"] != gains[0]:
            self.wrong("the gain of the limit is not that of all", f"{gains[0]} {said['gain_of_all']}")

    def check_sentence(self, text):
        said, sentence = self.said, self.said["sentence"]
        if " ".join(sentence.split()) not in " ".join(text.split()):
            return self.wrong("the text has another sentence", sentence)
        for limit in self.limits:
            if limit["words"] not in sentence:
                self.wrong("the sentence does not name the limit", f"{limit['words']}: {sentence}")
            row = row_of(text, limit["words"])
            if limit["by"] == "run" and percent(limit["gain"]) not in SIGNED.findall(row):
                self.wrong("the table has another gain", f"{percent(limit['gain'])}: {row}")
        gains = {percent(gain) for gain in [*(limit["gain"] for limit in self.limits), said["gain_of_all"]]}
        for figure in SIGNED.findall(sentence):
            if figure not in gains:
                self.wrong("a gain in the sentence that JSON has not", f"{figure} of {sorted(gains)}: {sentence}")
        loads = {load for limit in self.limits for load in PLAIN.findall(row_of(text, limit["words"]))}
        for figure in PLAIN.findall(sentence):
            if float(figure) not in {float(load) for load in loads}:
                self.wrong("a load in the sentence that the table has not", f"{figure} of {sorted(loads)}: {sentence}")

    def check_advice(self):
        advice = self.said["advice"]
        factors = [each["factor"] for each in advice]
        if factors != sorted(factors, reverse=True):
            self.wrong("advice is not ranked by what it brings", str(factors))
        if any(factor < LEAST for factor in factors):
            self.wrong("advice that brings less than 3 %", str(factors))
        if self.said["no_change_helps"] and advice:
            self.wrong("no change helps, beside advice", advice[0]["change"])
        for each in advice:
            cluster, benchmark, options = of_command(each["command"])
            try:
                self.lab.run(cluster, benchmark, with_options(options, MOMENT))
            except Failed as failed:
                if not any(part in str(failed) for part in NO_RATE):
                    self.wrong("an advised command is not legal", f"{each['command']}: {failed}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser, count=500)
    parser.set_defaults(budget=["--budget", "12"])  # what contradicts itself needs no best advice
    asked = parser.parse_args()
    draw = LimitingDraw(asked.seed, {path.stem: path for path in PROFILES.glob("*.json")})
    kinds, checked = collections.Counter(), 0
    with folder_of(asked) as folder, ThreadPoolExecutor(asked.jobs) as pool:
        lab = Lab(asked.bin.resolve(), folder)

        def short(line):
            cluster, benchmark, *options = line
            return lab.run(cluster, benchmark, with_options(options, SHORT)).read_text()

        def check(records):
            results = folder / f"{hashlib.sha1(''.join(records).encode()).hexdigest()}.points"
            results.write_text("".join(records))
            said = lab.explain_all(results, *asked.budget)
            text = subprocess.run([lab.binaries / "verbscope", "explain", "--all", *asked.budget, results],
                                  capture_output=True, text=True, check=True).stdout
            parts = parts_of(text, [each["id"] for each in said])
            return [(f"{results} --point {each['id']}", Check(lab, each, parts.get(each["id"], "")).found) for each in said]
        records = list(outcomes(draw, short, asked.count, asked.jobs))
        for points in pool.map(check, [records[i:i + A_FILE] for i in range(0, len(records), A_FILE)]):
            for point, found in points:
                checked += 1
                kinds.update({kind for kind, _ in found})
                for kind, text in found:
                    print(f"WRONG {point}: {kind}: {text}", flush=True)
    for kind, count in kinds.most_common():
        print(f"    {count} {kind}")
    print(f"{checked} points of seed {asked.seed}, {sum(kinds.values())} contradictions")
    return 1 if kinds or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
