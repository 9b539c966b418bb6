#!/usr/bin/env -S python3 -B
"""Learns clusters from rows that others measured on hardware, each from the nearest other profile, and compares the errors
with those of the shipped profile on the same rows: they may be larger by a fifth."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# cluster: the file of its rows, and the profiles of the same kind from which the fit may start
CLUSTERS = {
    "cib": ("rc-swarm.csv", ["cx5ib"]),
    "cx6": ("connectx6.csv", ["cib", "cx5ib"]),
    "cx5-100g": ("perftest.csv", ["cx4", "cx5"]),
}
LARGER = 1.2


def config_root(folder, cluster, profile):
    """A folder of configurations in which the cluster has this profile."""
    root = folder / f"configs-{cluster}"
    (root / "clusters").mkdir(parents=True)
    for path in (ROOT / "configs").iterdir():
        if path.name != "clusters":
            (root / path.name).symlink_to(path)
    for path in (ROOT / "configs/clusters").iterdir():
        if path.stem != cluster:
            (root / "clusters" / path.name).symlink_to(path)
    named = json.loads(profile.read_text())
    named["name"] = cluster
    (root / "clusters" / f"{cluster}.json").write_text(json.dumps(named))
    return root


def row_errors(programs, rows, cluster, root=None):
    """Absolute errors in percent of the rows of the cluster, from the page of `verbscope validate`."""
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "rows.md"
        environment = dict(os.environ, **({"VERBSCOPE_CONFIGS": str(root)} if root else {}))
        subprocess.run([programs / "verbscope", "validate", cluster, "--rows", rows, "--out", page], env=environment,
                       capture_output=True, text=True)
        rows = [line.split("|") for line in page.read_text().split("## Every row")[1].splitlines() if "=" in line]
        last = [cells[1].split()[-1] for cells in rows if len(cells) == 4 and len(cells[1].split()) == 3]
        return sorted(abs(float(error)) for error in last)


def figures(errors):
    """Mean, median and 90th percentile."""
    return statistics.fmean(errors), errors[len(errors) // 2], errors[min(len(errors) - 1, int(len(errors) * 0.9))]


def text(errors):
    return ", ".join(f"{error:.1f}" for error in errors)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", type=pathlib.Path, help="folder of the programs")
    parser.add_argument("clusters", nargs="*", default=list(CLUSTERS), help="clusters to learn")
    parser.add_argument("--points", type=int, default=400, help="rows to learn from, drawn at random")
    parser.add_argument("--keep", type=pathlib.Path, help="keep the files in this folder")
    options = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or pathlib.Path(scratch)
        folder.mkdir(exist_ok=True)
        for cluster in options.clusters:
            file, like = CLUSTERS[cluster]
            rows, learned = ROOT / "configs/measured" / file, folder / f"{cluster}.json"
            log = folder / f"{cluster}.txt"
            with log.open("w") as out:
                done = subprocess.run([options.programs / "verbscope", "learn", "--rows", rows, "--cluster", cluster, "--like",
                                       ",".join(like), "--points", str(options.points), "--out", learned], stdout=out, stderr=out)
            if done.returncode:
                raise SystemExit(f"{cluster}: {log.read_text()}")
            theirs = figures(row_errors(options.programs, rows, cluster))
            ours = figures(row_errors(options.programs, rows, cluster, config_root(folder, cluster, learned)))
            good = all(b <= LARGER * a for a, b in zip(theirs, ours))
            missed += not good
            start = json.loads(learned.read_text())["learned"]["start"]
            print(f"{'reached' if good else 'MISSED '}  {cluster} from {start}: errors (mean, median, 90 %) of {text(ours)} %, "
                  f"of the shipped profile {text(theirs)} %", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
