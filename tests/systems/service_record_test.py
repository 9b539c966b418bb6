#!/usr/bin/python3
"""Records of services: service_record_test.py BIN TESTS ROOT. The schema holds for them, and verbscope reads them.

Exits with 77 (skipped) where there is no jsonschema or no gnuplot.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile


def run(*words):
    done = subprocess.run([str(word) for word in words], check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout


def main():
    binaries, tests, root = map(pathlib.Path, sys.argv[1:4])
    verbscope = binaries / "verbscope"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        results = folder / "r.jsonl"
        for size in (32, 2048):
            for clients in (1, 3):
                shown = run(tests / "service_check", "--fabric", "sim:cx4", "-s", size, "--clients", clients, "--calls", 300, "--out_json_file", results)
                assert "Mops\nsimulated time" in shown, shown
        alone = run(tests / "service_check", "--fabric", "sim:cx4", "--out_json_file", "-")
        assert json.loads(alone.splitlines()[-1])["benchmark"] == "service_check", alone
        run(tests / "echo", "--fabric", "sim:cx4", "--out_json_file", results)  # a service without a result of its own
        valid = subprocess.run([root / "tests/common/validate_records.py", root / "results/record.schema.json", results], check=False)
        if valid.returncode != 0:
            return valid.returncode
        assert "limit" in run(verbscope, "explain", results).lower()
        run(verbscope, "compare", results)
        if shutil.which("gnuplot") is None:
            return 77
        run(verbscope, "plot", results, "--x", "size", "-o", folder / "f.svg")
        assert "SIMULATED: cx4" in (folder / "f.svg").read_text(errors="replace")
    return 0


if __name__ == "__main__":
    sys.exit(main())
