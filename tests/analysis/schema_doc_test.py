#!/usr/bin/env python3
"""docs/records.md against a record that a benchmark writes: schema_doc_test.py BIN DOCUMENT. Every key that is in the one must
be in the other."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile


def documented(text):
    """section -> the keys that its table has in its first column."""
    sections = {}
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        name, _, body = section.partition("\n")
        cells = re.findall(r"^\| (`.*?) \|", body, re.MULTILINE)
        sections[name.strip()] = [key for cell in cells for key in re.findall(r"`(\w+)`", cell)]
    return sections


def main():
    binaries, document = map(pathlib.Path, sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "r.jsonl"
        subprocess.run([binaries / "send_rate", "--fabric", "sim:cx4", "-c", "UD", "--duration", "50us", "--warmup", "50us",
                        "--out_json_file", out], check=True, stdout=subprocess.DEVNULL, timeout=120)
        record = json.loads(out.read_text().splitlines()[-1])
    written = {"events": record["counters"][0]["events"], "extra": record["counters"][0]["extra"],
               "prediction": record["prediction"], "environment": record["environment"]}
    told = documented(document.read_text())
    wrong = 0
    for section, keys in written.items():
        for key in sorted(set(keys) ^ set(told[section])):
            print(f"{section}: {key} is only {'in records' if key in keys else 'in the document'}")
            wrong += 1
        if len(told[section]) != len(set(told[section])):
            print(f"{section}: a key is there twice")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
