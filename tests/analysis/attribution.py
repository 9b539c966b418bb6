#!/usr/bin/env python3
"""`verbscope explain` names the right limit, and what it advises helps as it says: found out by experiment on simulated
clusters.

attribution.py BIN --seed N --count M

Configurations are drawn by --seed (command_lines.LimitingDraw: every benchmark and cluster, with options that limit the rate) and run for the
default time; one that its program calls failed, there or on a copy of the profile that is tried below, cannot be judged: another
is drawn. Of each, explain is asked for the limit: a resource, a pair of which neither alone helps, or none.

- A resource is right when the rate rises by about what explain says on a copy of the profile in which it has twice the capacity
  (an option such as the window: with twice its value), and twice of no other resource brings more.
- A pair is right when twice of both brings about what explain says, twice of either alone nothing, and twice of no other resource
  anything.
- None is right when twice of no resource, and of no pair, brings anything.
- A gain is right when the command of one change that explain advises gains what it says.

The names come from the records alone; this script alone knows what is changed in a profile. Prints what was said and what
came, a line each, and at the end the shares and the failures by kind. Exits with 1 when fewer of the limits or of the gains are right
than --limits and --gains say: 95 % and 90 %.
"""

import argparse
import collections
import hashlib
import itertools
import json
import math
import sys
import threading

from lab import PROFILES, Failed, Lab, arguments, folder_of, of_command, outcomes
from neighbours import MOST_OUTS
from command_lines import LimitingDraw, as_table, with_options

# A gain is as foretold when the rates agree within this share: service times are not the only thing that a unit waits for.
FORETOLD = 0.2
# The gain that another resource may bring: queues that are a little shorter everywhere.
NOTHING = 0.05

# A thread works while it waits for its own memory.
HALF_TIMES = {
    "cpu": [f"host.{name}_ns" for name in ("post_call", "post_wqe", "wc_line", "doorbell", "poll_call", "poll_cqe", "poll_memory",
                                           "post_recv_call", "post_recv_wqe", "atomic_add", "dram", "register_call", "register_page")],
    "driver_lock": ["host.line_transfer_ns", "host.post_call_ns", "host.post_wqe_ns", "host.doorbell_ns", "host.wc_line_ns"],
    "shared_line": ["host.atomic_add_ns", "host.line_transfer_ns"],
    "requester": [f"nic.{name}_ns" for name in ("doorbell_wqe", "blueflame_wqe", "wqe_block", "gather", "next_packet",
                                                "reread_wqe")],
    "responder": [f"nic.{name}_ns" for name in ("receive_packet", "receive_dma", "receive_line", "receive_inline", "read_request", "atomic_packet", "next_packet",
                                                "handle_ack", "handle_response", "reread_wqe")],
    "round_trip": ["host.memory_read_ns", "host.memory_read_jitter_ns", "link.propagation_ns", "nic.atomic_operation_ns"],
    "pcie": ["link.mmio_gap_ns"],
}
DOUBLE = {"pcie": ["wire.pcie_lanes"], "wire": ["wire.port_gbit_per_s"], "tags": ["link.read_tags"],
          "wqe_fetch": ["nic.wqe_fetch_ahead_bytes"], "wqe_cache": ["nic.wqe_cache_bytes", "nic.sent_wqe_cache_bytes"],
          "qp_context_cache": ["nic.qp_context_cache_bytes", "nic.qp_responder_context_cache_bytes"], "translation_cache": ["nic.translation_cache_bytes"]}

# What is doubled in the profile for each resource that explain can name; more outstanding: in the options.
PART_OF = {"mmio": "pcie", "pcie_to_nic": "pcie", "pcie_to_host": "pcie", "wire_out": "wire", "wire_in": "wire",
           "requester_units": "requester", "requester_unit": "requester", "responder_units": "responder",
           "responder_unit": "responder", "cpu": "cpu", "driver_lock": "driver_lock", "shared_line": "shared_line", "atomic_slot": "round_trip",
           "dma_reads": "tags", "wqe_fetch": "wqe_fetch", "wqe_cache": "wqe_cache", "qp_context_cache": "qp_context_cache",
           "translation_cache": "translation_cache", "outstanding": "more_outstanding", "reads_outstanding": "more_reads",
           "recv_queue": "more_recvs"}
REREADING = ("nic.reread_wqe_ns",)
# One operation is under way at a time in these, whatever the options: latency is tried by making everything twice as fast.
ONE_AT_A_TIME = ("verb_latency", "write_visibility")
# Those that are tried beside what was named. A cache is no rate: what it costs is felt as a longer way or a busier unit.
OTHERS = ["pcie", "wire", "requester", "responder", "cpu"]


class Profiles:
    """Copies of the profiles of the clusters, with more capacity."""

    def __init__(self, folder):
        self.folder, self.lock = folder, threading.Lock()

    def twice(self, cluster, parts, kept):
        """The cluster's profile with these parts at twice the capacity, but for the parameters `kept`."""
        profile = json.loads((PROFILES / f"{cluster}.json").read_text())
        changes = {(key, factor) for part in parts for table, factor in ((HALF_TIMES, 0.5), (DOUBLE, 2)) for key in table.get(part, []) if key not in kept}
        if "everything" in parts:
            changes |= {(f"{section}.{name}", 0.5) for section in ("host", "link", "nic", "fabric") for name in profile[section] if name.endswith("_ns")}
            changes |= {(key, 2) for part in ("pcie", "wire") for key in DOUBLE[part]}
        for key, factor in changes:
            section, name = key.split(".")
            profile[section][name]["value"] *= factor
        text = json.dumps(profile)
        place = self.folder / hashlib.sha1(text.encode()).hexdigest() / f"{cluster}.json"
        with self.lock:
            if not place.exists():
                place.parent.mkdir()
                place.write_text(text)
        return place


def kept(options, config):
    """The options with as many machines and threads as there were, where they follow from others that may be changed."""
    own = [] if config.get("machines") else ["client_threads"]  # machines that all ask have as many threads
    names = [name for name in ("clients", *own, "threads", "tx_depth", "rx_depth", "cq_mod") if config.get(name)]
    return with_options(options, {name: config[name] for name in names if f"--{name}" not in as_table(options) and name != "cq_mod"})


def twice_outstanding(config):
    """Twice as many operations under way: by a window, with a queue that holds it, or a queue's depth."""
    for name in ("window", "outstanding"):
        if config.get(name):
            twice = 2 * config[name]
            return {name: twice, "tx_depth": max(twice, config["tx_depth"])} if name == "window" else {name: twice}
    return {"tx_depth": 2 * config["tx_depth"]}


def twice_reads(config):
    """Twice as many READs and atomics outstanding on a QP, where the simulated adapters allow them."""
    return {"outs": 2 * config["outs"]} if config.get("outs") and 2 * config["outs"] <= MOST_OUTS else {}


# Resources that are options, and what twice of them is.
MORE = {"more_outstanding": twice_outstanding, "more_reads": twice_reads, "more_recvs": lambda config: {"rx_depth": 2 * config["rx_depth"]}}


class Examination:
    """What came of one configuration."""

    def __init__(self, lab, profiles, line, budget):
        self.lab, self.profiles, self.line = lab, profiles, line
        self.cluster, self.benchmark, *options = line
        self.told, self.complaints = [], []
        self.gains = []  # (whether it held, the kind of change, what was said and came)
        results = lab.run(self.cluster, self.benchmark, options)
        self.config = lab.record(results)["config"]
        self.said = lab.explain(results, *budget)
        self.rate = self.said["rate_mops"]
        self.options = kept(options, self.config)
        if self.rate > 0:
            self.limits()
            self.advice()

    def gain(self, parts, kept=()):
        """What twice of these parts brings together, the parameters `kept` left as they are."""
        options = self.options
        if "more_outstanding" in parts and self.benchmark in ONE_AT_A_TIME:
            parts = ["everything"]
        for part in parts:
            options = with_options(options, MORE[part](self.config)) if part in MORE else options
        doubled = [part for part in parts if part not in MORE]
        profile = self.profiles.twice(self.cluster, doubled, kept)
        try:
            return self.lab.rate(self.cluster, self.benchmark, options, profile=profile) / self.rate
        except Failed as failed:
            if failed.refused:  # the option cannot be doubled
                return 1.0
            raise

    def foretold(self, what, parts, foretold):
        came = self.gain(parts)
        self.told.append(f"{what} x{foretold:.2f}, came x{came:.2f}")
        if abs(math.log(came / foretold)) > FORETOLD:
            self.complaints.append((f"{what}: {'less' if came < foretold else 'more'} than foretold", f"x{foretold:.2f}, came x{came:.2f}"))
        return came

    def others(self, parts):
        """What else is tried: parts, or options that the configuration has."""
        more = [part for part, twice in MORE.items() if self.benchmark not in ONE_AT_A_TIME and twice(self.config)]
        return [part for part in [*OTHERS, *more] if part not in parts]

    def limits(self):
        said = self.said["limits"]
        parts = [PART_OF[limit["resource"]] for limit in said]
        names = " and ".join(limit["resource"] for limit in said) or "no limit"
        most = 1.0
        if len(said) == 1:
            most = self.foretold(names, parts, said[0]["gain"])
        elif said:
            for limit, part in zip(said, parts):
                self.exceeds(f"{names}, but {limit['resource']} alone lifts it", self.gain([part]), 1.0)
            most = self.foretold(names, parts, self.said["gain_of_all"])
        # A parameter that belongs to what was named and to another part is that of the former.
        kept = {key for part in parts for table in (HALF_TIMES, DOUBLE) for key in table.get(part, [])} | \
            (set(REREADING) if "wqe_cache" in parts else set())
        others = self.others(parts)
        for part in others:
            self.exceeds(f"{names}, but {part} lifts it", self.gain([part], kept), most if len(said) == 1 else 1.0)
        if len(said) != 1 and not self.complaints:
            for pair in itertools.combinations(others, 2):
                self.exceeds(f"{names}, but {' and '.join(pair)} lift it", self.gain(pair, kept), most)

    def exceeds(self, kind, came, allowed):
        """Complains of a gain that is more than what is allowed by more than NOTHING."""
        if came > allowed * (1 + NOTHING):
            self.complaints.append((kind, f"gives x{came:.2f}"))

    def advice(self):
        for advice in self.said["advice"]:
            kind = "+".join(advice["options"])
            text = f"{advice['change']}, foretold x{advice['factor']:.2f}"
            try:
                came = self.lab.rate(*of_command(advice["command"])) / self.rate
            except Failed as failed:
                self.gains.append((False, f"{kind}: refused", f"{text}: {failed}"))
                continue
            beyond = math.log(came / advice["factor"])
            self.gains.append((abs(beyond) <= FORETOLD, f"{kind}: {'less' if beyond < 0 else 'more'} than foretold", f"{text}, came x{came:.2f}"))

    def text(self):
        lines = [f"{'WRONG' if self.complaints else 'right'}  {' '.join(self.line)}: {self.rate:.3f} Mops, {'; '.join(self.told)}"]
        lines += [f"       {kind}: {text}" for kind, text in self.complaints]
        lines += [f"       {'held ' if held else 'WRONG'} {text}" for held, _, text in self.gains]
        return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser, count=60)
    parser.add_argument("--limits", type=float, default=0.95, help="the share of limits that must be right")
    parser.add_argument("--gains", type=float, default=0.9, help="the share of gains that must be right")
    asked = parser.parse_args()
    draw = LimitingDraw(asked.seed, {path.stem: path for path in PROFILES.glob("*.json")})
    done = []
    with folder_of(asked) as folder:
        lab, profiles = Lab(asked.bin.resolve(), folder), Profiles(folder)
        for examination in outcomes(draw, lambda line: Examination(lab, profiles, line, asked.budget), asked.count, asked.jobs):
            done.append(examination)
            print(examination.text(), flush=True)
    kinds = collections.Counter(kind for each in done for kind in sorted({kind for kind, _ in each.complaints}))
    gains = [gain for each in done for gain in each.gains]
    wrong_gains = collections.Counter(kind for held, kind, _ in gains if not held)
    right, held = sum(not each.complaints for each in done), sum(held for held, _, _ in gains)
    print(f"{right} of {len(done)} limits are right ({100 * right / len(done):.1f} %, seed {asked.seed})")
    for kind, count in kinds.most_common():
        print(f"    {count} {kind}")
    print(f"{held} of {len(gains)} gains came as foretold ({100 * held / max(len(gains), 1):.1f} %)")
    for kind, count in wrong_gains.most_common():
        print(f"    {count} {kind}")
    return 0 if right >= asked.limits * len(done) and held >= asked.gains * len(gains) else 1


if __name__ == "__main__":
    sys.exit(main())
