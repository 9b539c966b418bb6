#!/usr/bin/env python3
"""shrink.py BIN: whether less of a resource ever makes a simulated rate higher.

Draws configurations by --seed, runs each on its cluster and on a copy of it in which one resource is half as large or one time
twice as long, and prints each whose rate has risen by more than 3 %. Exits with 1 when there is one. Not counted are those
whose WQEs miss their cache: there less that is under way at once means fewer misses, as on ConnectX-6, whose rate rises when
the requests outstanding are throttled (configs/measured, work-req-throt; docs/simulator.md).
"""

import argparse
import concurrent.futures
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from command_lines import add_arguments

ROOT = pathlib.Path(__file__).resolve().parents[2]
WITHIN = 1.03
MISSES = 0.01  # share of the WQEs that some adapter looks for in its cache
HALVED = ("host.wc_buffers_lines", "link.tlp_share", "link.host_share", "link.read_tags", "link.posted_credits_bytes",
          "nic.requester_units", "nic.responder_units", "nic.wqe_cache_bytes", "nic.sent_wqe_cache_bytes",
          "nic.wqe_fetch_ahead_bytes", "nic.qp_context_cache_bytes",
          "nic.qp_context_reads", "nic.translation_cache_bytes", "nic.input_buffer_bytes", "nic.atomic_slots", "fabric.port_share",
          "wire.pcie_lanes", "wire.port_gbit_per_s")
DOUBLED = ("host.post_call_ns", "host.post_wqe_ns", "host.wc_line_ns", "host.poll_cqe_ns", "host.memory_read_ns",
           "link.propagation_ns", "nic.front_end_ns", "nic.doorbell_wqe_ns", "nic.blueflame_wqe_ns", "nic.wqe_block_ns",
           "nic.handle_ack_ns", "nic.handle_response_ns", "nic.receive_packet_ns", "nic.receive_dma_ns", "nic.read_response_ns",
           "nic.transmit_ns", "nic.qp_context_miss_ns", "fabric.switch_ns")
LEAST = {"host.wc_buffers_lines": 8, "nic.wqe_fetch_ahead_bytes": 1024}  # what one operation needs


def draw(dice):
    """A cluster and a command line."""
    cluster = dice.choice(("cib", "cx3", "cx", "cx6"))
    benchmark, connection = dice.choice((("send_rate", "UD"), ("send_rate", "RC"), ("recv_rate", "UD"), ("write_rate", "RC"),
                                         ("write_rate", "UC"), ("read_rate", "RC")))
    size = dice.choice((8, 32, 60, 256, 1000))
    threads, qps = dice.choice((1, 2, 4)), dice.choice((1, 2, 8, 32))
    words = [benchmark, "-c", connection, "-s", str(size), "--threads", str(threads), "-q", str(qps)]
    if benchmark in ("write_rate", "read_rate"):
        words += ["--direction", dice.choice(("in", "out")), "--region_size", "65536"]
    if benchmark == "read_rate":
        words += ["--window", str(dice.choice((1, 4, 16)))]
    else:
        words += ["-l", str(dice.choice((1, 4, 16))), *(["-I", str(size)] if size <= 60 else [])]
    return cluster, words + ["--clients", str(3 if connection == "UD" else min(3, threads * qps))]


def shrunk(profile, key):
    section, name = key.split(".")
    value = profile[section][name]["value"]
    smaller = 2 * value if key in DOUBLED else value / 2 if isinstance(value, float) else max(LEAST.get(key, 1), value // 2)
    profile[section][name]["value"] = smaller
    return smaller != value


def rate_of(record):
    return record["result"]["rate_mops"]


def most_misses(record):
    """The largest share of WQEs that an adapter did not find in its cache: where clients post, it is one of theirs."""
    looks = [(counts["extra"]["wqe_cache_misses"], counts["extra"]["wqe_cache_hits"]) for counts in record["counters"]
             if counts["source"] == "sim"]
    return max(misses / (misses + hits) if misses > 0 else 0 for misses, hits in looks)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser, count=20, jobs=2)
    parser.add_argument("--reasons", action="store_true", help="print why there is no rate")
    options = parser.parse_args()
    dice = random.Random(options.seed)
    cases = [(*draw(dice), dice.choice(HALVED + DOUBLED)) for _ in range(options.count)]
    with tempfile.TemporaryDirectory() as folder:

        def record_of(fabric, words, time="100us"):
            command = [options.bin.resolve() / words[0], "--fabric", f"sim:{fabric}", "--duration", time, "--warmup", time,
                       "--out_json_file", "-", *words[1:]]
            run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
            record = json.loads(run.stdout.splitlines()[-1]) if run.stdout else {"status": "failed", "reason": run.stderr}
            if record["status"] != "ok" and options.reasons:
                print(" ".join(map(str, command)), record["reason"])
            return record if record["status"] == "ok" else None

        def check(job):
            number, (cluster, words, key) = job
            profile = json.loads((ROOT / "configs/clusters" / f"{cluster}.json").read_text())
            if not shrunk(profile, key):
                return "as small as it can be", 0
            place = pathlib.Path(folder) / f"{number}.json"
            place.write_text(json.dumps(profile))
            before, after = record_of(cluster, words), record_of(place, words)
            if before is None or after is None:
                return "no rate", 0
            if most_misses(before) > MISSES:
                return "WQEs miss their cache", 0
            ratio = rate_of(after) / rate_of(before)
            if ratio > WITHIN:  # perhaps by chance in so short a time
                ratio = rate_of(record_of(place, words, "1ms")) / rate_of(record_of(cluster, words, "1ms"))
            return ("RAISED" if ratio > WITHIN else "compared"), ratio

        came, most = {}, 0
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for (cluster, words, key), (what, ratio) in zip(cases, pool.map(check, enumerate(cases))):
                came[what] = came.get(what, 0) + 1
                most = max(most, ratio)
                if what == "RAISED":
                    print(f"RAISED x{ratio:.3f} by a worse {key}: {cluster} {' '.join(words)}")
    print(f"{options.count} configurations of seed {options.seed}, largest ratio {most:.3f}: "
          + ", ".join(f"{count} {what}" for what, count in sorted(came.items())))
    return 1 if "RAISED" in came or "compared" not in came else 0


if __name__ == "__main__":
    sys.exit(main())
