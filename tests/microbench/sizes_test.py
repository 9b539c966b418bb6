#!/usr/bin/env python3
"""Rates and latencies of one QP by size, on every simulated cluster.

sizes_test.py BIN rates|latencies [--long]

rates: SENDs, WRITEs and READs of long messages reach the smallest bound of the closed-form model, of either machine, within 3 %.

latencies: on copies of the profiles without random times, so that each latency is one number,
- sizes that are multiples of a completion take longer the longer they are;
- one byte more or less changes the time by no more than one more packet and the completions of a payload that does not begin at
  the boundary of a completion: the benchmark places the end of each payload there. The end of inlining is excepted;
- with --long, the time of 8 MB is the time at the smallest bound, within 5 %.

--long: more sizes.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

PROFILES = pathlib.Path(__file__).resolve().parents[2] / "configs/clusters"
VERBS = ("send", "write", "read")
# Of flow control, gaps between packets and link-layer packets, which the model leaves out.
RATE_WITHIN, LATENCY_WITHIN = 0.03, 0.05
LONGEST = 8 << 20
RANDOM = ("host.memory_read_jitter_ns", "host.slow_read_probability", "nic.read_response_ns")


def value(profile, name):
    section, key = name.split(".")
    return profile[section][key]["value"]


class Sizes:
    def __init__(self, binaries, folder):
        self.binaries, self.folder = binaries, folder

    def _json(self, program, *options):
        ran = subprocess.run([self.binaries / program, *map(str, options)], capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            raise RuntimeError(f"{program} {' '.join(map(str, options))}: {ran.stderr.strip()}")
        return json.loads(ran.stdout)

    def record(self, program, profile, *options):
        return self._json(program, "--fabric", f"sim:{profile}", "--sim_threads", 1, *options, "--out_json_file", "-")

    def bound_mops(self, cluster, verb, size):
        """The smallest bound of both machines for one QP, which uses one port."""
        bounds = []
        for role in ([], ["--receiver"] if verb == "send" else ["--responder"]):
            predicted = self._json("verbscope", "predict", "--cluster", cluster, "-c", "RC", "--verb", verb, "-s", size, *role, "--json")
            ports = predicted["wire"]["ports"]
            bounds += [mops / (ports if name.startswith("wire") else 1) for name, mops in predicted["bounds_mops"].items()]
        return min(bounds)

    def constant(self, cluster, verb):
        """A copy of the profile for this verb, in which no time is random."""
        profile = json.loads((PROFILES / f"{cluster}.json").read_text())
        for name in RANDOM:
            section, key = name.split(".")
            profile[section][key]["value"] = 0
        path = self.folder / f"{cluster}_{verb}.json"
        path.write_text(json.dumps(profile))
        return path, profile


def rate_failures(lab, cluster, verb, size):
    bound = lab.bound_mops(cluster, verb, size)
    # With 128 of 64 KB outstanding an adapter that queued more than it can write to its host would not become steady.
    depth, time = max(16, (8 << 20) // size), f"{20 / bound:.0f}us"
    record = lab.record(f"{verb}_rate", cluster, "-c", "RC", "-s", size, "-t", depth, "-Q", 1, "-D", time, "--warmup", time)
    used = record["prediction"]["shape"]["ports_used"]
    reached = record["result"]["rate_mops"] / bound
    print(f"{cluster} {verb} of {size} B: {record['result']['bandwidth_gbit_per_s']:.2f} Gb/s, {reached:.3f} of the bound", flush=True)
    return [] if used == 1 and 1 - RATE_WITHIN <= reached <= 1.001 else \
        [f"{cluster} {verb} of {size} B: {reached:.3f} of the bound, predicted for {used} ports"]


class Latencies:
    """The latencies of one verb on one cluster."""

    def __init__(self, lab, cluster, verb, long):
        self.lab, self.cluster, self.verb = lab, cluster, verb
        self.path, self.profile = lab.constant(cluster, verb)
        self.mtu, self.long = value(self.profile, "wire.mtu_bytes"), long
        aligned = [2, 8, 32, 64] + [1 << power for power in range(7, 24 if long else 21, 1 if long else 2)] + [self.mtu, 4096]
        self.aligned = sorted(set(aligned))
        # 220: default of --inline_size.
        self.edges = {220, 256, 4096, self.mtu} | ({2 * self.mtu, 16 * self.mtu, 65536} if long else set())
        self.times, self.inlined = {}, {}

    def run(self):
        for size in sorted({*self.aligned, *(size + step for size in self.edges for step in (-1, 0, 1))}):
            record = self.lab.record("verb_latency", self.path, "--verb", self.verb, "-s", size, "-n", 2 if size > 1 << 20 else 8,
                                     "--warmup", 0)
            self.times[size] = record["result"]["lat_p50_ns"]
            self.inlined[size] = record["config"].get("inlined", False)

    def _ns(self, *names):
        return sum(value(self.profile, name) for name in names)

    def polling(self):
        """A completion is seen at the end of a polling pass."""
        return self._ns("host.poll_call_ns", "host.poll_cqe_ns")

    def completions(self, size):
        """Each request of a payload that does not begin at the boundary needs one completion more."""
        wire = self.profile["wire"]
        rate = wire["pcie_lane_mb_per_s"]["value"] * wire["pcie_lanes"]["value"] / 1e3 * value(self.profile, "link.tlp_share")
        return -(-size // wire["pcie_mrrs_bytes"]["value"]) * wire["pcie_completion_header_bytes"]["value"] / rate

    def packet(self):
        """What units do for one packet more."""
        receive = self._ns("nic.receive_packet_ns", "nic.receive_dma_ns")
        return self._ns("nic.next_packet_ns") + max(receive, value(self.profile, "nic.handle_response_ns"))

    def failures(self):
        self.run()
        of = f"{self.cluster} {self.verb}"
        failures = [f"{of}: {self.times[longer]:.0f} ns of {longer} B after {self.times[size]:.0f} ns of {size} B"
                    for size, longer in zip(self.aligned, self.aligned[1:]) if self.times[longer] < self.times[size] - self.polling()]
        for size in sorted({size + step for size in self.edges for step in (-1, 0)}):
            step = self.times[size + 1] - self.times[size]
            other = self.completions(size + 1) + self.polling()
            ends_inlining = self.inlined[size] != self.inlined[size + 1]
            if step < -other or (step > other + self.packet() and not ends_inlining):
                failures.append(f"{of}: {size + 1} B take {step:+.0f} ns more than {size} B")
        if not self.long:
            print(f"{of}: {self.times[2]:.0f} ns of 2 B, {self.times[4096]:.0f} of 4 KB", flush=True)
            return failures
        least = LONGEST / (self.lab.bound_mops(self.cluster, self.verb, LONGEST) * LONGEST) * 1e3
        share = least / self.times[LONGEST]
        print(f"{of}: {self.times[2]:.0f} ns of 2 B, {self.times[4096]:.0f} of 4 KB; 8 MB at {share:.3f} of the bound", flush=True)
        return failures + ([] if 1 - LATENCY_WITHIN <= share <= 1.001 else [f"{of}: 8 MB at {share:.3f} of the bound"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("figure", choices=("rates", "latencies"))
    parser.add_argument("--long", action="store_true")
    asked = parser.parse_args()
    cases = [(path.stem, verb) for path in sorted(PROFILES.glob("*.json")) for verb in VERBS]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        lab = Sizes(asked.bin.resolve(), pathlib.Path(folder))
        if asked.figure == "latencies":
            judged = pool.map(lambda case: Latencies(lab, *case, asked.long).failures(), cases)
        else:
            sizes = (65536, 1 << 20, LONGEST) if asked.long else (65536, 1 << 20)
            judged = pool.map(lambda case: rate_failures(lab, *case), [(*case, size) for case in cases for size in sizes])
        failures = [failure for failures in judged for failure in failures]
    for failure in failures:
        print(f"FAILED {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
