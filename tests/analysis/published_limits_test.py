#!/usr/bin/env python3
"""`verbscope explain --closed_form` names the limits that the paper names: from short simulated runs of its figures.

published_limits_test.py BIN CONFIGS: the folder of the programs and that of the configuration. The limits of the figures are those
of configs/published.json; explain does not read that file, and reads no more of a record than what was measured.
"""

import json
import os
import pathlib
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from lab import Lab

LIMITS = {"MMIO bandwidth": {"mmio"}, "DMA bandwidth": {"pcie_to_nic"}, "InfiniBand bandwidth": {"wire_out", "wire_in"},
          "NIC": {"requester_units", "responder_units"}, "PCIe round trip": {"atomic_slot"}, "CPU": {"cpu"}, "CPU (copies)": {"cpu"},
          "processing units of two QPs": {"requester_unit"}}

# Kalia et al., ATC 2016, section 4.2: one core that posts one by one is the limit, whatever the number of QPs.
ONE_CORE = {"id": "atc16-s42-one-core", "cluster": "cib", "bottleneck": "CPU",
            "match": {"benchmark": "send_rate", "config": {"connection": "UD", "size": 60, "inline_size": 60, "qp": 4}}}

# Rows where ours is another: cores that wait for the line of a counter that they share, which the paper counts as CPU; six UD
# QPs, two of which share one of the simulated units, with MMIO close behind.
OURS = {"atc16-t3-herd-cib": {"shared_line"}, "herd14-f10-knee-apt": {"requester_unit", "requester_units", "mmio"}}


def options_of(config):
    for key, value in config.items():
        value = value["run"] if isinstance(value, dict) else value
        if value is True:
            yield f"--{key}"
        elif value is not False:
            yield from (f"--{key}", str(value))


def config_of(match):
    """That of a row's run; of one whose figure is how far a rate holds, that behind the place, where the limit bites."""
    along = match.get("along")
    if along is None:
        return match["config"]
    behind = along["values"].index(match["value"]) + 1
    return {**match["config"], along["option"]: along["values"][behind]}


def check(lab, row):
    options = list(options_of(config_of({**row["match"], "value": row.get("value")})))
    limits = lab.explain(lab.run(row["cluster"], row["match"]["benchmark"], options), "--closed_form")["limits"]
    allowed = OURS.get(row["id"], LIMITS[row["bottleneck"]])
    return any(limit["node"] == "server" and limit["resource"] in allowed for limit in limits), limits


def main():
    binaries, configs = map(pathlib.Path, sys.argv[1:3])
    rows = [row for row in json.loads((configs / "published.json").read_text())["points"]
            if "bottleneck" in row and "benchmark" in row.get("match", {})] + [ONE_CORE]
    missing = set(LIMITS) - {row["bottleneck"] for row in rows}
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(binaries, pathlib.Path(folder))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            outcomes = list(pool.map(lambda row: check(lab, row), rows))
    for row, (right, limits) in zip(rows, outcomes):
        print(f"{'right' if right else 'WRONG'}  {row['id']}: the paper says {row['bottleneck']}, explain says "
              f"{' and '.join(limit['resource'] + ' of ' + limit['node'] for limit in limits)}")
    for name in missing:
        print(f"WRONG  no run shows {name}")
    return 0 if not missing and all(right for right, _ in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
