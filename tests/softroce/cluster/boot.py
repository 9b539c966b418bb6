#!/usr/bin/env -S python3 -B
"""Boots two emulated machines and runs the checks of cluster_test.py against them (softroce.cluster in ctest).

    boot.py --bin FOLDER --out FOLDER --cache FOLDER --expect NAME...

Exit 0: every check of the list ran, and no other; 1: not so; 77: this host cannot run the machines (1 when CI=true).
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "checks")]
import machine  # noqa: E402
import machines  # noqa: E402
import run as checks  # noqa: E402

BOOT_LIMIT_S = 240


def stripped_programs(source, folder):
    """The programs without debug information: a tenth to copy and to hash under emulation."""
    folder.mkdir()
    for name in ["verbscope", "send_rate", "recv_rate", "write_rate", "raft_kv"]:
        subprocess.run(["strip", "--strip-debug", "-o", folder / name, pathlib.Path(source) / name], check=True, timeout=60)
    return folder


def run_checks(options, out):
    missing = [tool for tool in ["ssh", "ssh-keygen", "sshd"] if shutil.which(tool, path=machine.PATH) is None]
    if missing:
        raise machine.Unavailable("missing: " + " ".join(missing) + " (packages openssh-client and openssh-server)")
    cluster = machines.Cluster(out / "cluster", options.cache, BOOT_LIMIT_S)
    try:
        import cluster_test  # noqa: PLC0415: not before the machines are known to be possible
        cluster_test.CLUSTER, cluster_test.OUT = cluster, out
        cluster_test.BIN = stripped_programs(options.bin, out / "bin")
        results = {}
        for test in checks.tests_of(unittest.defaultTestLoader.loadTestsFromModule(cluster_test)):
            name = checks.short_name(test)
            results[name] = checks.run_one(test)
            print(f"{'passed' if results[name]['passed'] else 'FAILED'} {results[name]['seconds']:6.1f} s  {name}", flush=True)
            (out / "checks.json").write_text(json.dumps(results, indent=1))
        return results
    finally:
        cluster.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, help="the programs")
    parser.add_argument("--out", required=True, help="where results go; emptied first")
    parser.add_argument("--cache", required=True, help="where the initramfs is kept")
    parser.add_argument("--expect", nargs="+", required=True, help="the names of the checks")
    options = parser.parse_args()
    out = pathlib.Path(options.out).resolve()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    return machine.tell(out, options.expect, lambda: run_checks(options, out))


if __name__ == "__main__":
    sys.exit(main())
