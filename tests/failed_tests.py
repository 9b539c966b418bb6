#!/usr/bin/env python3
"""Prints what failed in a run of ctest: each test's name and the end of what it printed.

The end of a long log is the part that is read, and on a continuous-integration server often the only part that is kept.
A test that is a whole GoogleTest binary is named case by case, with the case that it ended in, if it did.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree

LINES = 6  # of each test's output
WIDTH = 200
CASE = re.compile(r"^\[ (RUN     | {6}OK| SKIPPED| FAILED ) \] (\S+)")


def last_lines(lines: list[str]) -> list[str]:
    return [line.rstrip() for line in lines if line.strip()][-LINES:]


def failed_cases(lines: list[str]) -> list[tuple[str, list[str]]]:
    """Each case of a GoogleTest binary that failed or never ended, with the end of what it printed."""
    found = []
    running, begin = None, 0
    for index, line in enumerate(lines):
        mark = CASE.match(line)
        if not mark:
            continue
        if mark[1].strip() == "RUN":
            running, begin = mark[2], index + 1
        elif mark[2].rstrip(",") == running:
            if mark[1].strip() == "FAILED":
                found.append((running, last_lines(lines[begin:index])))
            running = None
    if running is not None:
        found.append((f"{running} (did not end)", last_lines(lines[begin:])))
    return found


def failed(junit: str) -> list[tuple[str, list[str]]]:
    """Name and last lines of each test of the JUnit file that failed, or that was not run and says why."""
    found = []
    for test in ElementTree.parse(junit).getroot().iter("testcase"):
        if test.get("status") in ("run", "disabled"):
            continue
        name = test.get("name")
        why = [test.find(tag).get("message") for tag in ("failure", "skipped") if test.find(tag) is not None]
        lines = (test.findtext("system-out") or "").splitlines()
        why = list(filter(None, why))
        cases = failed_cases(lines)
        found += [(case if case.startswith(name) else f"{name}: {case}", why + end) for case, end in cases]
        if not cases:
            found.append((name, why + last_lines(lines)))
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
