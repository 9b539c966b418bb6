#!/usr/bin/env python3
"""Prints what failed in a run of ctest: each test's name and the end of what it printed.

The end of a long log is the part that is read, and on a continuous-integration server often the only part that is kept.
"""

import sys
import xml.etree.ElementTree as ElementTree

LINES = 6  # of each test's output
WIDTH = 200


def failed(junit: str) -> list[tuple[str, list[str]]]:
    """Name and last lines of each test of the JUnit file that failed, or that was not run and says why."""
    found = []
    for case in ElementTree.parse(junit).getroot().iter("testcase"):
        if case.get("status") in ("run", "disabled"):
            continue
        why = [case.find(tag).get("message") for tag in ("failure", "skipped") if case.find(tag) is not None]
        text = (case.findtext("system-out") or "").splitlines()
        found.append((case.get("name"), list(filter(None, why)) + [line.rstrip() for line in text if line.strip()][-LINES:]))
    return found


def main() -> int:
    if len(sys.argv) != 3:
        print("usage: failed_tests.py TIER JUNIT_FILE", file=sys.stderr)
        return 2
    for name, lines in failed(sys.argv[2]):
        print(f"{sys.argv[1]}: {name}")
        for line in lines:
            print(f"    {line[:WIDTH]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
