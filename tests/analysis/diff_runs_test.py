#!/usr/bin/env python3
"""`verbscope diff` on real runs: diff_runs_test.py BIN PROFILES.

Two runs of one seed are equivalent; a cluster in which everything takes 5 % longer is found at every point, and the gate closes; that
it is another profile is said first.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

SWEEP = {"schema": "verbscope.sweep/1", "benchmark": "send_rate", "repetitions": 3,
         "fixed": {"connection": "UD", "size": 60, "inline_size": 60, "duration": "100us", "warmup": "100us"},
         "vary": {"threads": [1, 8], "post_list": [1, 16]}}


def slowed(profile, factor):
    profile = json.loads(json.dumps(profile))
    for section in ("host", "link", "nic", "fabric"):
        for key, parameter in profile[section].items():
            if key.endswith("_ns"):
                parameter["value"] *= factor
    for section, key in (("link", "tlp_share"), ("link", "host_share"), ("wire", "port_gbit_per_s")):
        profile[section][key]["value"] /= factor
    return profile


def main():
    binaries, profiles = map(pathlib.Path, sys.argv[1:3])
    verbscope = str(binaries / "verbscope")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "sweep.json").write_text(json.dumps(SWEEP))
        slow = folder / "cib.json"
        slow.write_text(json.dumps(slowed(json.loads((profiles / "cib.json").read_text()), 1.05)))

        def run(out, fabric, *options):
            subprocess.run([verbscope, "run", folder / "sweep.json", "--hosts", fabric, "--out", folder / out, *options],
                           check=True, stdout=subprocess.DEVNULL, timeout=240)

        def diff(base, other, *options):
            ran = subprocess.run([verbscope, "diff", folder / base, folder / other, "--json", *options], capture_output=True,
                                 text=True, check=False)
            said = json.loads(ran.stdout)
            return ran.returncode, [row["verdict"] for row in said["points"]], [one["fact"] for one in said["environment"]]

        run("base", "sim:cib")
        run("again", "sim:cib")
        run("slow", f"sim:{slow}")
        assert diff("base", "again") == (0, ["equivalent"] * 4, []), diff("base", "again")
        code, verdicts, facts = diff("base", "slow")
        assert (code, verdicts) == (1, ["slower"] * 4) and facts[:2] == ["cluster_profile", "fabric"], (code, verdicts, facts)
        assert diff("slow", "base")[:2] == (0, ["faster"] * 4), diff("slow", "base")
        assert diff("base", "slow", "--threshold", "20")[:2] == (0, ["equivalent"] * 4)
    print("3 passed, 0 failed")


if __name__ == "__main__":
    main()
