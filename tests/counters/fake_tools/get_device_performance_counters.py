#!/usr/bin/env python3
"""Stands in for NVIDIA NEO-Host's program: its arguments, and its table, which it prints ten times a second."""

import sys
import time

RULE = "=" * 100
LEFT = [("Level 0 MTT Cache Miss", "12"), ("ICM Cache Miss", "38000"), ("Chip Frequency", "429.9913"), ("Receive WQE Cache Miss", "7"),
        ("Line Transmitted Port 1", "0")]
RIGHT = ["||                 PCIe Bandwidth                 ||", "--------------------------------------------------",
         "|| PCIe Inbound Used BW  || 12.5       [Gb/s]   ||", "|| PCIe Avg Latency      || 403        [NS]     ||"]

if "--run-loop" not in sys.argv or "--get-analysis" not in sys.argv:
    sys.exit(f"unexpected arguments: {sys.argv}")
while True:
    print(RULE)
    print("|| Counter Name              || Counter Value   ||| Performance Analysis  || Analysis Value [Units]  ||")
    print(RULE)
    for at, (name, value) in enumerate(LEFT):
        print(f"|| {name:25} || {value:15} |" + (RIGHT[at] if at < len(RIGHT) else "|"))
    print("=" * 50, flush=True)
    time.sleep(0.1)
