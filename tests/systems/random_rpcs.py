#!/usr/bin/env python3
"""random_rpcs.py BIN --seed N --count M: RPCs over networks that lose and reorder packets.

Draws programs, options and networks: racks of a copy of cx4 whose flows take two paths, and which lose a share of 1e-2 to 1e-7 of the
packets. A program fails by itself if a byte is wrong, a request is handled twice or has no answer, or a credit does not come back. Prints
each that fails. Exits with 1 if one fails, or if no packet was lost or none was overtaken in all runs together.
"""

import argparse
import concurrent.futures
import json
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/records"))
from command_lines import add_arguments  # noqa: E402

NO_RATE = ("no rate within --longest", "was not steady within --longest", "completed no operation in the measured interval")


def network(draw, folder, number):
    """The path of a profile."""
    profile = json.loads((ROOT / "configs/clusters/cx4.json").read_text())
    loss = 10 ** draw.uniform(-7, -2)
    uplinks = draw.randint(2, 4)
    for key, value in (("loss_probability", loss), ("rack_nodes", draw.randint(1, 3)), ("uplinks", uplinks), ("flow_paths", draw.randint(1, 2)),
                       ("uplink_gbit_per_s", draw.choice((10, 25, 100))), ("buffer_bytes", draw.choice((100_000, 12_582_912)))):
        profile["fabric"][key] = {"value": value, "source": "assumed", "cite": "drawn"}
    path = folder / f"{number}.json"
    path.write_text(json.dumps(profile))
    return path


def options(draw):
    """A command line without its fabric."""
    program = draw.choice(("rpc_rate", "rpc_rate", "rpc_large", "rpc_incast", "ordered_kv"))
    machines = draw.randint(2, 6)
    words = [program, *(["--clients", machines - 1] if program == "ordered_kv" else ["--machines", machines]), "--cc", draw.choice(("none", "timely", "dcqcn")), "--credits", draw.choice((1, 2, 8, 32)),
             "--rto", draw.choice(("50us", "200us", "1ms")), "--packet_size", draw.choice((100, 300, 1024)), "--seed", draw.randint(1, 1 << 30)]
    for option in ("--batched_stamps", "--bypass_timely", "--bypass_limiter", "--preallocate", "--zero_copy", "--multi_packet_rq"):
        if draw.random() < 0.3:
            words += [option, "off"]
    if program == "rpc_rate":
        batch = draw.choice((1, 3))
        words += ["-s", draw.choice((8, 32, 900, 5000)), "--response_size", draw.choice((8, 32, 5000)), "--threads", draw.choice((1, 2)),
                  "--batch", batch, "--outstanding", batch * draw.choice((1, 8))]
        if draw.random() < 0.3:
            words += ["--handler", "worker", "--workers", 2, "--slow_percent", 20, "--handler_ns", draw.choice((0, 2000))]
    elif program == "ordered_kv":
        threads = draw.randint(1, 4)
        words += ["--threads", threads, "--workers", draw.randrange(threads), "--client_threads", draw.choice((1, 2)), "--keys",
                  draw.choice((100, 3000)), "--scans", draw.choice((0, 5, 50)), "--puts", draw.choice((0, 5, 50)), "--scan_length",
                  draw.choice((1, 20, 500)), "--outstanding", draw.choice((1, 2, 8))]
    else:
        words += ["-s", draw.choice((1000, 30_000)), "--response_size", draw.choice((32, 20_000))]
    return [str(word) for word in words + ["--warmup", "100us", "-D", "300us", "--longest", "20ms"]]


def counts_of(record):
    """(packets sent again, packets dropped as stale) of all machines"""
    nodes = [record["result"], *(client["result"] for client in record["result"].get("clients", []))]
    return sum(node["rpc"]["retransmitted"] for node in nodes), sum(node["rpc"]["stale"] for node in nodes)


def run(binaries, folder, words, profile, number):
    """(the error, or an empty text; the record, or None)"""
    out = folder / f"{number}.jsonl"
    command = [binaries / words[0], *words[1:], "--fabric", f"sim:{profile}", "--sim_threads", "1", "--out_json_file", out]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if ran.returncode == 0:
        return "", json.loads(out.read_text())
    # After a time-out there may be too few answers for a rate.
    if any(reason in ran.stderr for reason in NO_RATE):
        return "", None
    return f"exit status {ran.returncode}: {ran.stderr.strip()}", None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser, count=500, jobs=2)
    asked = parser.parse_args()
    draw = random.Random(asked.seed)
    wrong, rated, again, stale = 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        lines = [(options(draw), network(draw, folder, number)) for number in range(asked.count)]
        with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
            runs = [pool.submit(run, asked.bin.resolve(), folder, words, profile, i) for i, (words, profile) in enumerate(lines)]
        for (words, profile), ran in zip(lines, runs):
            fault, record = ran.result()
            if fault:
                wrong += 1
                fabric = {key: field["value"] for key, field in json.loads(profile.read_text())["fabric"].items()}
                print(f"WRONG {' '.join(words)}\n      {fabric}\n      {fault}")
            elif record is not None:
                rated += 1
                counts = counts_of(record)
                again, stale = again + counts[0], stale + counts[1]
    print(f"{asked.count} runs, {wrong} wrong, {rated} with a rate; {again} packets sent again, {stale} dropped as repeated or overtaken (seed {asked.seed})")
    return 0 if wrong == 0 and again > 0 and stale > 0 and rated > asked.count / 2 else 1


if __name__ == "__main__":
    sys.exit(main())
