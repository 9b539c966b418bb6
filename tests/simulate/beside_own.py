#!/usr/bin/env -S python3 -B
"""beside_own.py BIN [--only TEXT]: perftest's programs, run by `verbscope simulate`, beside verbscope's own benchmarks.

BIN: the folder of the programs. Typical latencies must agree within 0.02 us, rates within 2 %. A row that does not is printed
with OFF, and the exit status is 1. Takes minutes: `make -f Makefile.cluster test-long` runs it. Exit 77: perftest is not
installed (1 when CI=true)."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

CLUSTERS = ("cx", "cx3", "cib", "cx6")
WITHIN_US, WITHIN = 0.02, 0.02
LATENCIES = [
    ("ib_read_lat", ["-s", "8"], ["--verb", "read", "-s", "8"]),
    ("ib_send_lat", ["-s", "8", "-I", "60"], ["--verb", "send", "-s", "8", "-I", "60"]),
    ("ib_send_lat", ["-s", "8", "-I", "0"], ["--verb", "send", "-s", "8", "-I", "0"]),
    ("ib_send_lat", ["-c", "UC", "-s", "8", "-I", "60"], ["--verb", "send", "-c", "UC", "-s", "8", "-I", "60"]),
    ("ib_send_lat", ["-c", "UD", "-s", "8", "-I", "60"], ["--verb", "send", "-c", "UD", "-s", "8", "-I", "60"]),
    ("ib_write_lat", ["-s", "8", "-I", "60"], ["--verb", "write", "-s", "8", "-I", "60"]),
    ("ib_atomic_lat", ["-A", "FETCH_AND_ADD"], ["--verb", "fetch_add", "-s", "8"]),
]
RATES = [(f"ib_{verb}_bw", f"{verb}_rate", size, qps, post_list)
         for verb in ("write", "read", "send") for size in (8, 64, 4096, 65536) for qps in (1, 4) for post_list in (1, 16)]


def run_perftest(binaries, cluster, program, options):
    """The last row of what the client prints, as numbers, and the rate of the busiest interval."""
    command = [program, "-d", "sim0", "-F", *options]
    with tempfile.TemporaryDirectory() as folder:
        record = pathlib.Path(folder) / "record"
        done = subprocess.run([binaries / "verbscope", "simulate", "--cluster", cluster, "--json", record, "--", *command, "::",
                               *command, "node0"], capture_output=True, text=True, timeout=600)
        rows = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("node1:") and line.split()[1:2] and
                line.split()[1].isdigit()]
        if done.returncode != 0 or not rows:
            raise RuntimeError(f"{program}: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
        return [float(word) for word in rows[-1]], json.loads(record.read_text())["result"]["rate_mops"]


def run_own(binaries, cluster, benchmark, options):
    """The record."""
    with tempfile.TemporaryDirectory() as folder:
        record = pathlib.Path(folder) / "record"
        subprocess.run([binaries / benchmark, "--fabric", f"sim:{cluster}", *options, "--out_json_file", record], check=True,
                       capture_output=True, timeout=600)
        return json.loads(record.read_text().splitlines()[-1])


def latency_row(binaries, cluster, program, options, own_options):
    # Latencies of READs and atomics are random: the median of a few is not sharp.
    count = "10000" if program in ("ib_read_lat", "ib_atomic_lat") else "1000"
    # With fewer RECVs than messages perftest posts RECVs within the trip.
    more = ["-r", count] if program == "ib_send_lat" else []
    theirs = run_perftest(binaries, cluster, program, ["-n", count, *options, *more])[0][4]
    ours = run_own(binaries, cluster, "verb_latency", ["-n", count, *own_options])["result"]["lat_p50_ns"] / 1e3
    return theirs, ours, abs(theirs - ours) <= WITHIN_US, "us"


def rate_row(binaries, cluster, program, benchmark, size, qps, post_list):
    options = ["-s", str(size), "-q", str(qps), "-l", str(post_list)]
    if program != "ib_read_bw":
        options += ["-I", "0"]
    # perftest uses one port, and one machine as the target. In lists it signals the last request of each.
    # On cx3 SENDs of 4 KB take 3 ms to fill the queues on the way.
    own_options = ["--ib_port", "1", "--clients", "1", "--warmup", "4ms", *(["--cq_mod", str(post_list)] if post_list > 1 else [])]
    record = run_own(binaries, cluster, benchmark, [*own_options, *options])
    # perftest's interval includes its beginning and its end, when its queues are not full: many messages make that share small.
    # The counts are multiples of 100, because perftest signals every 100th message, and may never end with other counts.
    count = "9600" if size <= 64 else "2400" if size <= 4096 else "800"
    # Without -N perftest reads the time stamp counter at each post. On mlx4 it prefers an MTU of 2048 bytes.
    more = ["-N", "-n", count, "-m", str(record["config"]["mtu"])]
    if program == "ib_send_bw":
        more += ["--recv_post_list", "32"]  # as our receivers
    row, steady = run_perftest(binaries, cluster, program, [*more, *options])
    # Each of perftest's QPs sends the same number. The first is served first, so that the last works alone at the end.
    theirs = steady if qps > 1 and size <= 64 else row[-1]
    ours = record["result"]["rate_mops"]
    return theirs, ours, abs(theirs / ours - 1) <= WITHIN, "Mops"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--only", default="", help="rows whose name has this text")
    arguments = parser.parse_args()
    if shutil.which("ib_write_lat") is None:
        print("skipped: no perftest (make -f Makefile.cluster deps-test installs it)")
        return 1 if os.environ.get("CI") == "true" else 77
    off = rows = 0
    for cluster in CLUSTERS:
        todo = [(f"{cluster} {program} {' '.join(options)}", latency_row, (program, options, own))
                for program, options, own in LATENCIES]
        todo += [(f"{cluster} {program} -s {size} -q {qps} -l {post_list}", rate_row, (program, benchmark, size, qps, post_list))
                 for program, benchmark, size, qps, post_list in RATES]
        for name, row, values in todo:
            if arguments.only not in name:
                continue
            rows += 1
            try:
                theirs, ours, agrees, unit = row(arguments.bin, cluster, *values)
                print(f"{name:50} {theirs:9.3f} {ours:9.3f} {unit:5}{'' if agrees else 'OFF'}", flush=True)
            except (RuntimeError, subprocess.SubprocessError) as error:
                agrees = False
                print(f"{name:50} OFF: {error}", flush=True)
            off += not agrees
    print(f"{rows} rows, {off} off")
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main())
