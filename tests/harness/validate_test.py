#!/usr/bin/env python3
"""`verbscope validate` on rows drawn with a fixed seed: each is run, none fails, and each has its line on the page.

validate_test.py BIN ROWS: the folder of the programs and the number of rows. How large the errors are is for validate to say.
"""

import pathlib
import re
import subprocess
import sys
import tempfile


def main():
    binaries, rows = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "page.md"
        ran = subprocess.run([binaries / "verbscope", "validate", "--sample", str(rows), "--seed", "1", "--jobs", "1",
                              "--out", page], capture_output=True, text=True)
        print(ran.stdout[-4000:] + ran.stderr)
        text = page.read_text() if page.exists() else ""
    lines = re.findall(r"\| (?:calibration|prediction)", text.partition("## Every row")[2])
    problems = re.findall(r".*FAILED.*", text)
    if ran.returncode not in (0, 1):
        problems.append(f"exit status {ran.returncode}")
    if len(lines) != rows:
        problems.append(f"{len(lines)} rows with a figure, expected {rows}")
    for problem in problems:
        print("WRONG", problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
