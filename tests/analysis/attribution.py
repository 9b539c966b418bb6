#!/usr/bin/env python3
"""`verbscope explain` names the right limit, and what it advises helps as it says: found out by experiment on simulated
clusters.

Configurations are drawn by --seed (command_lines.OrdinaryDraw: every benchmark and cluster) and run for the default time; one
that its program calls failed, there or on a copy of the profile that is tried below, cannot be judged: another is drawn. Of each,
explain is asked for the limit, or for two that are near each other.

- The limit is right when the rate rises by about what explain foretold on a copy of the profile in which the resource
  that it named has twice the capacity (of two: each alone, and both), and no other resource brings more than half of that.
- A gain is right when the configuration, run again with the options of one change that explain advises, gains what it
  foretold.

The names come from the records alone; this script alone knows what is changed in a profile. Prints what was said and what
came, a line each, and at the end the shares and the failures by kind. Exits with 1 when fewer of the limits or of the gains are right
than --limits and --gains say: 95 % and 90 %.
"""

import argparse
import collections
import hashlib
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/records"))
import command_lines  # noqa: E402

# A gain is as foretold when the rates agree within this share: service times are not the only thing that a unit waits for.
FORETOLD = 0.2
# The gain that another resource may bring: queues that are a little shorter everywhere.
NOTHING = 0.05

HALF_TIMES = {
    "cpu": [f"host.{name}_ns" for name in ("post_call", "post_wqe", "wc_line", "doorbell", "poll_call", "poll_cqe", "poll_memory",
                                           "post_recv_call", "post_recv_wqe", "atomic_add")],
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
           "translation_cache": "translation_cache", "outstanding": "more_outstanding"}
REREADING = ("nic.reread_wqe_ns",)
BOTH_UNITS = tuple(sorted({*HALF_TIMES["requester"]} & {*HALF_TIMES["responder"]}))
# One operation is under way at a time in these, whatever the options: latency is tried by making everything twice as fast.
ONE_AT_A_TIME = ("verb_latency", "write_visibility")
# Those that are tried beside what was named. A cache is no rate: what it costs is felt as a longer way or a busier unit.
OTHERS = ["pcie", "wire", "requester", "responder", "cpu"]
LONG_NAMES = {"-c": "--connection", "-s": "--size", "-I": "--inline_size", "-l": "--post_list", "-q": "--qp", "-t": "--tx_depth",
              "-Q": "--cq_mod", "-Z": "--counters"}


class Failed(Exception):
    """A program calls its point failed."""


def as_table(options):
    """Options by their long names, and their values; flags have none."""
    table = {}
    for word in options:
        if word.startswith("-"):
            name = LONG_NAMES.get(word, word)
            table[name] = []
        else:
            table[name].append(word)
    return table


def with_options(options, changes):
    """The command line with options set as `changes` says: a table of names without dashes."""
    table = as_table(options)
    for key, value in changes.items():
        table.pop(f"--{key}", None)
        if value is True:
            table[f"--{key}"] = []
        elif not (key == "size" and changes.get("header_only")):
            table[f"--{key}"] = [f"{value:g}" if isinstance(value, float) else str(value)]
    return [word for name, values in table.items() for word in [name, *values]]


class Lab:
    def __init__(self, binaries, profiles, folder):
        self.binaries, self.profiles, self.folder = binaries, profiles, folder
        self.lock = threading.Lock()

    def profile(self, cluster, parts, kept):
        """The cluster's profile with these parts at twice the capacity, but for the parameters `kept`."""
        profile = json.loads((self.profiles / f"{cluster}.json").read_text())
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

    def run(self, cluster, benchmark, options, parts=(), kept=()):
        """The results file of one run, with these parts of the cluster at twice the capacity, but for the parameters
        `kept`. One that is there is taken."""
        program = self.binaries / benchmark
        command = [str(program), "--fabric", f"sim:{self.profile(cluster, parts, kept)}", "--sim_threads", "1", *options]
        key = hashlib.sha1(f"{command} {program.stat().st_mtime}".encode()).hexdigest()
        out = self.folder / f"{key}.jsonl"
        if not out.exists():
            part = out.with_suffix(f".{threading.get_ident()}")  # of a run that is interrupted nothing stays under its name
            ran = subprocess.run([*command, "--out_json_file", part], capture_output=True, text=True, timeout=900, check=False)
            if ran.returncode != 0 and not part.exists():
                part.write_text(json.dumps({"status": "failed", "reason": ran.stderr.strip().replace("\n", " ")}) + "\n")
            part.rename(out)
        record = self.record(out)
        if record["status"] != "ok":
            raise Failed(record["reason"])
        return out

    @staticmethod
    def record(results):
        return json.loads(pathlib.Path(results).read_text().splitlines()[-1])

    def rate(self, *run):
        return self.record(self.run(*run))["result"]["rate_mops"]

    def explain(self, results, *options):
        ran = subprocess.run([self.binaries / "verbscope", "explain", "--json", *options, results], capture_output=True, text=True, check=True)
        return json.loads(ran.stdout)[0]


def kept(options, config):
    """The options with as many machines and threads as there were, where they follow from others that may be changed."""
    own = [] if config.get("machines") else ["client_threads"]  # machines that all ask have as many threads
    names = [name for name in ("clients", *own, "threads", "tx_depth", "rx_depth", "cq_mod") if config.get(name)]
    return with_options(options, {name: config[name] for name in names if f"--{name}" not in as_table(options) and name != "cq_mod"})


def twice_outstanding(options, config):
    """The options with twice as many operations under way: by a window, a queue's depth, or more who work one at a time."""
    if config.get("window"):
        return with_options(options, {"window": 2 * config["window"]})
    if config.get("outstanding"):
        return with_options(options, {"outstanding": 2 * config["outstanding"]})
    return with_options(options, {"tx_depth": 2 * config["tx_depth"]})


class Examination:
    """What came of one configuration."""

    def __init__(self, lab, line):
        self.lab, self.line = lab, line
        self.cluster, self.benchmark, *options = line
        self.told, self.complaints = [], []
        self.gains = []  # (whether it held, the kind of change, what was said and came)
        results = lab.run(self.cluster, self.benchmark, options)
        self.config = lab.record(results)["config"]
        self.said = lab.explain(results)
        self.rate = self.said["rate_mops"]
        self.options = kept(options, self.config)
        if self.rate > 0:
            self.limits()
            self.advice()

    def gain(self, parts, kept=()):
        options = self.options
        if "more_outstanding" in parts and self.benchmark in ONE_AT_A_TIME:
            parts = ["everything"]
        if "more_outstanding" in parts:
            options = twice_outstanding(options, self.config)
        doubled = [part for part in parts if not part.startswith("more_")]
        return self.lab.rate(self.cluster, self.benchmark, options, doubled, kept) / self.rate

    def foretold(self, what, parts, foretold):
        came = self.gain(parts)
        self.told.append(f"{what} x{foretold:.2f}, came x{came:.2f}")
        if abs(math.log(came / foretold)) > FORETOLD:
            self.complaints.append((f"{what}: {'less' if came < foretold else 'more'} than foretold", f"x{foretold:.2f}, came x{came:.2f}"))
        return came

    def limits(self):
        limits = self.said["limits"]
        if not limits:
            return self.complaints.append(("no limit named", self.said["sentence"]))
        parts = [PART_OF[limit["resource"]] for limit in limits]
        for limit, part in zip(limits, parts):
            most = self.foretold(limit["resource"], [part], limit["gain"])
        if len(limits) > 1:
            most = self.foretold("both", parts, self.said["gain_of_all"])
        allowed = 1 + max(NOTHING, (most - 1) / 2)
        others = [part for part in OTHERS if part not in parts]
        # What a unit takes to read WQEs again is the cache's, where that was named, and what units of requesters and of
        # responders both take is that of those which were named.
        kept = REREADING if "wqe_cache" in parts else BOTH_UNITS if {"requester", "responder"} & set(parts) else ()
        if self.gain(others, kept) > allowed:  # none alone brings more than all of them
            for part in others:
                came = self.gain([part], kept)
                if came > allowed:
                    self.complaints.append((f"{limits[0]['resource']}, but {part} lifts it", f"{part} gives x{came:.2f}"))

    def advice(self):
        for advice in self.said["advice"]:
            if not advice["options"]:
                continue
            kind = "+".join(advice["options"])
            text = f"{advice['change']}, foretold x{advice['factor']:.2f}{' or more' if advice['at_least'] else ''}"
            try:
                came = self.lab.rate(self.cluster, self.benchmark, with_options(self.options, advice["options"])) / self.rate
            except Failed as failed:
                self.gains.append((False, f"{kind}: refused", f"{text}: {failed}"))
                continue
            beyond = math.log(came / advice["factor"])
            held = beyond >= -FORETOLD if advice["at_least"] else abs(beyond) <= FORETOLD
            self.gains.append((held, f"{kind}: {'less' if beyond < 0 else 'more'} than foretold", f"{text}, came x{came:.2f}"))

    def text(self):
        lines = [f"{'WRONG' if self.complaints else 'right'}  {' '.join(self.line)}: {self.rate:.3f} Mops, {'; '.join(self.told)}"]
        lines += [f"       {kind}: {text}" for kind, text in self.complaints]
        lines += [f"       {'held ' if held else 'WRONG'} {text}" for held, _, text in self.gains]
        return "\n".join(lines)


def examined(lab, line):
    """An examination, or the reason for which the program calls the configuration failed, on the cluster or on a copy."""
    try:
        return Examination(lab, line)
    except Failed as failed:
        return str(failed)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path, help="the folder of the programs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limits", type=float, default=0.95, help="the share of limits that must be right")
    parser.add_argument("--gains", type=float, default=0.9, help="the share of gains that must be right")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder in which records stay, and are taken when they are there")
    parser.add_argument("--profiles", type=pathlib.Path, default=ROOT / "configs/clusters")
    asked = parser.parse_args()
    draw = command_lines.OrdinaryDraw(asked.seed, {path.stem: path for path in asked.profiles.glob("*.json")})
    done, failed = [], []
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(asked.jobs) as pool:
        folder = asked.keep.resolve() if asked.keep else pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        lab = Lab(asked.bin.resolve(), asked.profiles.resolve(), folder)
        while len(done) < asked.count:
            lines = [next(draw) for _ in range(asked.count - len(done))]
            for line, outcome in zip(lines, pool.map(lambda each: examined(lab, each), lines)):
                if isinstance(outcome, str):
                    failed.append(outcome)
                    print(f"drawn again: {' '.join(line)}: {outcome}")
                else:
                    done.append(outcome)
                    print(outcome.text())
                sys.stdout.flush()
    kinds = collections.Counter(kind for each in done for kind in sorted({kind for kind, _ in each.complaints}))
    gains = [gain for each in done for gain in each.gains]
    wrong_gains = collections.Counter(kind for held, kind, _ in gains if not held)
    right, held = sum(not each.complaints for each in done), sum(held for held, _, _ in gains)
    print(f"{len(failed)} configurations of seed {asked.seed} were called failed and drawn again")
    print(f"{right} of {len(done)} limits are right ({100 * right / len(done):.1f} %)")
    for kind, count in kinds.most_common():
        print(f"    {count} {kind}")
    print(f"{held} of {len(gains)} gains came as foretold ({100 * held / max(len(gains), 1):.1f} %)")
    for kind, count in wrong_gains.most_common():
        print(f"    {count} {kind}")
    return 0 if right >= asked.limits * len(done) and held >= asked.gains * len(gains) else 1


if __name__ == "__main__":
    sys.exit(main())
