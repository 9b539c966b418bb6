#!/usr/bin/env python3
"""`verbscope explain` names the right limit: found out by experiment on simulated clusters.

Each configuration runs on its cluster, on a copy of the profile in which the resource that explain named has twice the
capacity, and on copies in which others have. The first must raise the rate by about what explain foretold, the others must
not. The names come from the records alone; this script alone knows what is changed.

attribution_test.py BIN PROFILES CONFIGURATIONS: the folder of the programs, that of the profiles, and the list: a line with
cluster, benchmark and options each. Exits with 1 when fewer than 95 % are attributed rightly.
"""

import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

NEEDED = 0.95
# A gain is as foretold when the rates agree within this share: service times are not the only thing that a unit waits for.
FORETOLD = 0.15
# The gain that another resource may bring: rates of short runs, and queues that are a little shorter everywhere.
NOTHING = 0.05
TIMES = ["--duration", "200us", "--warmup", "200us"]

HALF_TIMES = {
    "cpu": [f"host.{name}_ns" for name in ("post_call", "post_wqe", "wc_line", "doorbell", "poll_call", "poll_cqe",
                                           "poll_memory", "post_recv_call", "post_recv_wqe")],
    "requester": [f"nic.{name}_ns" for name in ("doorbell_wqe", "blueflame_wqe", "wqe_block", "gather", "next_packet")],
    "responder": [f"nic.{name}_ns" for name in ("handle_ack", "handle_response", "receive_packet", "receive_dma",
                                                "read_request", "atomic_packet")],
    "round_trip": ["host.memory_read_ns", "host.memory_read_jitter_ns", "link.propagation_ns",
                   "nic.atomic_operation_ns", "nic.qp_context_miss_ns"],
    "pcie": ["link.mmio_gap_ns"],
}
DOUBLE = {"pcie": ["wire.pcie_lanes"], "wire": ["wire.port_gbit_per_s"], "tags": ["link.read_tags"],
          "contexts": ["nic.qp_context_reads"]}

# The parameters that are doubled for each resource that explain can name. `state`: units that wait for QP contexts wait for reads.
PART_OF = {"mmio": "pcie", "pcie_to_nic": "pcie", "pcie_to_host": "pcie", "wire_out": "wire", "wire_in": "wire",
           "requester_units": "requester", "requester_unit": "requester", "responder_units": "responder",
           "responder_unit": "responder", "cpu": "cpu", "atomic_slot": "round_trip", "dma_reads": "tags",
           "qp_contexts": "contexts", "outstanding": "outstanding"}
OTHERS = ["pcie", "wire", "requester", "responder", "cpu"]


def changed_profile(profiles, cluster, parts, folder):
    profile = json.loads((profiles / f"{cluster}.json").read_text())
    for part in parts:
        for keys, factor in ((HALF_TIMES.get(part, []), 0.5), (DOUBLE.get(part, []), 2)):
            for key in keys:
                section, name = key.split(".")
                profile[section][name]["value"] *= factor
    place = pathlib.Path(tempfile.mkdtemp(dir=folder)) / f"{cluster}.json"
    place.write_text(json.dumps(profile))
    return place


class Lab:
    def __init__(self, binaries, profiles, folder):
        self.binaries, self.profiles, self.folder = binaries, profiles, folder

    def run(self, cluster, benchmark, options, parts=()):
        """The results file of one run, with these parts of the cluster at twice the capacity."""
        fabric = "sim:" + (str(changed_profile(self.profiles, cluster, parts, self.folder)) if parts else cluster)
        handle, out = tempfile.mkstemp(dir=self.folder, suffix=".jsonl")
        os.close(handle)
        command = [self.binaries / benchmark, "--fabric", fabric, "--out_json_file", out, *TIMES, *options]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if ran.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: {ran.stderr.strip()}")
        return out

    def rate(self, *run):
        return json.loads(pathlib.Path(self.run(*run)).read_text().splitlines()[-1])["result"]["rate_mops"]

    def explain(self, results):
        ran = subprocess.run([self.binaries / "verbscope", "explain", "--json", results], capture_output=True, text=True,
                             check=True)
        return json.loads(ran.stdout)[0]


def twice_outstanding(options, results):
    """The options with a window, or a queue, of twice the operations."""
    config = json.loads(pathlib.Path(results).read_text().splitlines()[-1])["config"]
    name = "window" if "window" in config else "tx_depth"
    kept = list(options)
    if f"--{name}" in kept:
        at = kept.index(f"--{name}")
        del kept[at:at + 2]
    return [*kept, f"--{name}", str(2 * config[name])]


def with_clients(options, results):
    """The options with as many clients as there were: by default a simulated cluster has what its receivers need."""
    config = json.loads(pathlib.Path(results).read_text().splitlines()[-1])["config"]
    return options if "--clients" in options else [*options, "--clients", str(config["clients"])]


def check(lab, line):
    """Complaints about one configuration, and a line that tells what came of it."""
    cluster, benchmark, *options = line.split()
    results = lab.run(cluster, benchmark, options)
    options = with_clients(options, results)
    said = lab.explain(results)
    if said["limit"] is None:
        return [f"no limit named: {said['sentence']}"], line
    rate, resource = said["rate_mops"], said["limit"]["resource"]
    part = PART_OF[resource]
    foretold = min(2, said["lifted_factor"] or 2)
    if part == "outstanding":
        gain = lab.rate(cluster, benchmark, twice_outstanding(options, results)) / rate
    else:
        waits = any(load["resource"] == resource and load["waited"] > 0.05
                    for load in said["loads"] + said["peer_loads"])
        gain = lab.rate(cluster, benchmark, options, [part, "round_trip"] if waits else [part]) / rate
    complaints = []
    if abs(math.log(gain / foretold)) > FORETOLD:
        complaints.append(f"foretold x{foretold:.2f}, came x{gain:.2f}")
    used = {}
    for load in said["loads"] + said["peer_loads"]:
        other = PART_OF[load["resource"]]
        used[other] = max(used.get(other, 0), load["load"])
    # The two others that are used most are those most easily mistaken for the limit.
    candidates = sorted((p for p in OTHERS if p != part), key=lambda p: -used.get(p, 0))[:2]
    tried = []
    for other in candidates:
        other_gain = lab.rate(cluster, benchmark, options, [other]) / rate
        tried.append(f"{other} ({used.get(other, 0):.2f}) x{other_gain:.2f}")
        if other_gain > 1 + NOTHING and other_gain > 1 + (gain - 1) / 2:
            complaints.append(f"{other} gives x{other_gain:.2f}")
    text = f"{line}: {rate:.2f} Mops, {resource} of {said['limit']['node']}, foretold x{foretold:.2f}, " \
           f"came x{gain:.2f}; {', '.join(tried)}"
    return complaints, text


def checked(lab, line):
    try:
        return check(lab, line)
    except (RuntimeError, subprocess.SubprocessError) as error:
        return [str(error)], line


def of_each_configuration(examine):
    """The results of examine(lab, line) for each line of the list that the command line names."""
    binaries, profiles, listing = map(pathlib.Path, sys.argv[1:4])
    lines = [line.strip() for line in listing.read_text().splitlines() if line.strip() and not line.startswith("#")]
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(binaries, profiles, folder)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(lambda line: examine(lab, line), lines))


def main():
    outcomes = of_each_configuration(checked)
    wrong = 0
    for complaints, text in outcomes:
        wrong += bool(complaints)
        print(f"{'WRONG' if complaints else 'right'}  {text}{''.join('; ' + c for c in complaints)}")
    right = len(outcomes) - wrong
    print(f"{right} of {len(outcomes)} attributed rightly")
    return 0 if right >= NEEDED * len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
