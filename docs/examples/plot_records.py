#!/usr/bin/python3
"""Plots a results file: plot_records.py RESULTS OPTION OUT.png draws rate against an option, a curve for each fabric.

For example: plot_records.py results/local/send_grid.jsonl post_list rate.png   (needs python3-matplotlib)
"""

import collections
import json
import sys

import matplotlib

matplotlib.use("Agg")  # no display
import matplotlib.pyplot as plt  # noqa: E402

results, option, out = sys.argv[1:4]
curves = collections.defaultdict(dict)
with open(results, encoding="utf-8") as lines:
    for line in lines:
        record = json.loads(line)
        if record["schema"] == "verbscope.record/1" and record["status"] == "ok":
            name = record["environment"]["fabric"] + (" (SIMULATED)" if record["environment"]["simulated"] else "")
            curves[name].setdefault(record["config"][option], []).append(record["result"]["rate_mops"])

for name, points in sorted(curves.items()):
    xs = sorted(points)
    # Points that differ in other options too: the fastest of each.
    plt.plot(xs, [max(points[x]) for x in xs], marker="o", label=name)
plt.xlabel(option)
plt.ylabel("Mops")
plt.ylim(bottom=0)
plt.legend()
plt.savefig(out)
