#!/usr/bin/env -S python3 -B
"""check.py RESULTS NAME: what the check NAME said inside the machine. Exit 0: passed; 77: the machine could not run."""

import json
import os
import pathlib
import sys


def main(folder, name):
    skipped = pathlib.Path(folder, "skipped")
    if skipped.exists():
        print(f"skipped: {skipped.read_text().strip()}")
        return 1 if os.environ.get("CI") == "true" else 77
    result = json.loads(pathlib.Path(folder, "checks.json").read_text()).get(name)
    if result is None:
        print(f"the machine did not run {name}")
        return 1
    print(f"{result['seconds']} s in the machine\n{result['text']}")
    return 0 if result["passed"] else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
