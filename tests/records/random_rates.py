#!/usr/bin/env python3
"""random_rates.py BIN: whether the rates that the programs of the folder BIN give for simulated clusters can be.

Runs points drawn by --seed (command_lines.ExtremeDraw: every benchmark and cluster, extreme sizes, lists, numbers of QPs). Of a
point with status ok the rate must not be above the bound of its model, nor the bytes that it needs on the wire above what the
ports carry, and it must be what the adapters counted, each within 1 %. A point that is not ok must say that its rate is not
known. Prints each that is wrong, and how the points came out. Exits with 1 when one is wrong.
"""

import argparse
import collections
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import command_lines

WITHIN = 0.01
# What a point may fail of: there is no rate that could be told. By the reason, in short.
NO_RATE = {"no rate within --longest": "QPs complete too seldom", "was not steady within --longest": "not steady",
           "they differ by more than": "adapters counted another rate", "messages did not arrive, on a reliable": "lost on RC",
           "Mops is above the": "above the model's bound"}
# The counters that count each operation once: (side, names) by benchmark, else by who posts.
COUNTED = {"write_visibility": ("server", ["writes_received"]), "recv_rate": ("server", ["messages_received"]),
           "atomic_rate": ("server", ["atomics_served"]), "verb_latency": ("server", ["messages_sent"]),
           "echo_rate": ("client", ["writes_received", "messages_received"]),
           "sequencer": ("either", ["messages_received", "atomics_served"])}


def adapter_mops(record):
    """The operations a second that the adapters counted; None where no counter counts them."""
    name, config = record["benchmark"], record["config"]
    if name == "kv_atomic" or name in command_lines.RPCS:
        return None
    inbound = config.get("direction") == "in"
    if name == "qp_scaling" and inbound and config["verb"] == "send":
        side, names = "server", ["messages_received"]
    elif name == "sequencer":
        side, names = ("server", ["atomics_served"]) if config["design"] == "atomic" else ("client", ["messages_received"])
    else:
        side, names = COUNTED.get(name, ("client" if inbound else "server", ["messages_sent"]))
    counters = [c for c in record["counters"] if (c["node"] == "server") == (side == "server")]
    return sum(c["extra"][n] / c["window_s"] for c in counters for n in names) / 1e6


def wire_mops(record):
    """What the ports of the server carry of the payload alone."""
    if record["benchmark"] not in ("send_rate", "recv_rate", "write_rate", "read_rate", "wqe_cache", "qp_scaling") or not record["config"]["size"]:
        return float("inf")
    wire = record["prediction"]["wire"] if record["prediction"] else None
    return wire["port_gbit_per_s"] * 1e3 / 8 * record["config"]["ports"] / record["config"]["size"] if wire else float("inf")


def faults_of(record, run):
    """What is wrong with the point, a line each."""
    if record.get("status") != "ok":
        reason = record.get("reason", f"exit status {run.returncode}, no record: {run.stderr.strip()}")
        return [] if any(part in reason for part in NO_RATE) else [f"failed: {reason}"]
    rate = record["result"]["rate_mops"]
    faults = []
    for what, bound in (("the model's bound", (record["prediction"] or {}).get("bound_mops", float("inf"))), ("the wire's", wire_mops(record))):
        if rate > (1 + WITHIN) * bound:
            faults.append(f"{rate:.4f} Mops, {what} {bound:.4f}")
    counted = adapter_mops(record)
    if counted is not None and abs(rate - counted) > WITHIN * counted:
        faults.append(f"{rate:.4f} Mops, the adapters counted {counted:.4f}")
    if record["benchmark"] in command_lines.RPCS:
        result = record["result"]
        if (result["unanswered"], result["handled_twice"], result["rpc"]["unknown"]) != (0, 0, 0):
            faults.append("requests without an answer, handled twice, or unknown packets")
    elif record["result"]["lost"] != record["result"]["messages_expected"] - record["result"]["messages_received"]:
        faults.append("lost is not what was not received")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command_lines.add_arguments(parser, count=200, jobs=1)
    parser.add_argument("--only", help="benchmarks whose name matches this expression")
    parser.add_argument("--slow", action="store_true", help="print the slowest ten")
    options = parser.parse_args()
    came, over_bound, off, times = collections.Counter(), 0.0, 0.0, []
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        draw = command_lines.ExtremeDraw(options.seed, command_lines.lossy_profiles(folder))
        commands = [next(draw) for _ in range(options.count)]
        commands = [c for c in commands if not options.only or re.search(options.only, c[0])]

        def point(job):
            index, command = job
            out = folder / f"{index}.jsonl"
            began = time.monotonic()
            run = subprocess.run([options.bin.resolve() / command[0], *command[1:], "--out_json_file", out], capture_output=True,
                                 text=True, timeout=600)
            text = out.read_text() if out.exists() else ""
            record = json.loads(text) if text else {}
            out.unlink(missing_ok=True)
            return run, record, time.monotonic() - began

        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for command, (run, record, seconds) in zip(commands, pool.map(point, enumerate(commands))):
                times.append((seconds, command))
                faults = faults_of(record, run)
                if faults:
                    wrong += 1
                    print(f"WRONG: {' '.join(command)}")
                    for fault in faults:
                        print(f"    {fault}")
                    sys.stdout.flush()
                if record.get("status") == "ok":
                    came["ok, in the first window" if record["result"].get("steadiness", {"windows": 1})["windows"] == 1 else
                         "ok, in a later window"] += 1
                    rate, counted = record["result"]["rate_mops"], adapter_mops(record)
                    off = max(off, abs(rate / counted - 1) if counted else 0)
                    over_bound = max(over_bound, rate / (record["prediction"] or {}).get("bound_mops", float("inf")))
                else:
                    reason = record.get("reason", "no record")
                    came["failed: " + next((short for part, short in NO_RATE.items() if part in reason), reason)] += 1
    if options.slow:
        for seconds, command in sorted(times, reverse=True)[:10]:
            print(f"{seconds:.1f} s: {' '.join(command)}")
    print(f"{len(commands)} points of seed {options.seed}, {wrong} wrong; of those that are ok, the largest rate is {100 * over_bound:.1f} % of "
          f"its bound, the largest difference from the adapters' count {100 * off:.2f} %")
    for what, count in came.most_common():
        print(f"    {count} {what}")
    return 1 if wrong or not commands else 0


if __name__ == "__main__":
    sys.exit(main())
