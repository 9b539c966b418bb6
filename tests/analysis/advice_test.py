#!/usr/bin/env python3
"""The advice of `verbscope explain` holds: each configuration runs again with the options of each advice that has
some, and the rate must rise by about what was foretold.

advice_test.py BIN PROFILES CONFIGURATIONS: as for attribution_test.py. Exits with 1 when fewer than 90 % of the advice holds.
"""

import math
import sys

from attribution_test import of_each_configuration, with_clients

NEEDED = 0.9
FORETOLD = 0.2  # the model has the sizes of what is moved, not the times between them
LONG_NAMES = {"-c": "--connection", "-s": "--size", "-I": "--inline_size", "-l": "--post_list", "-q": "--qp"}


def as_table(options):
    """Options and their values; flags have none."""
    table = {}
    for word in options:
        if word.startswith("-"):
            name = LONG_NAMES.get(word, word)
            table[name] = []
        else:
            table[name].append(word)
    return table


def with_advice(options, advice):
    table = as_table(options)
    for key, value in advice["options"].items():
        table.pop(f"--{key}", None)
        if value is True:
            table[f"--{key}"] = []
        elif not (key == "size" and advice["options"].get("header_only")):
            table[f"--{key}"] = [f"{value:g}" if isinstance(value, float) else str(value)]
    return [word for name, values in table.items() for word in [name, *values]]


def check(lab, line):
    """A pair for each advice: whether it held, and a line that tells what came of it."""
    cluster, benchmark, *options = line.split()
    results = lab.run(cluster, benchmark, options)
    options = with_clients(options, results)
    said = lab.explain(results)
    outcomes = []
    for advice in said["advice"]:
        if not advice["options"]:
            continue
        text = f"{line}: {advice['change']}, foretold x{advice['factor']:.2f}"
        try:
            gain = lab.rate(cluster, benchmark, with_advice(options, advice)) / said["rate_mops"]
        except RuntimeError as error:
            outcomes.append((False, f"{text}: {error}"))
            continue
        beyond = math.log(gain / advice["factor"])
        held = beyond >= -FORETOLD if advice["at_least"] else abs(beyond) <= FORETOLD
        outcomes.append((held, f"{text}{' or more' if advice['at_least'] else ''}, came x{gain:.2f}"))
    return outcomes


def main():
    outcomes = [outcome for each in of_each_configuration(check) for outcome in each]
    for held, text in outcomes:
        print("held " if held else "WRONG", text)
    held = sum(held for held, _ in outcomes)
    print(f"{held} of {len(outcomes)} pieces of advice held")
    return 0 if outcomes and held >= NEEDED * len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
