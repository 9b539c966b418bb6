#!/usr/bin/env python3
"""same_records.py BEFORE AFTER: whether two builds write the same records.

Runs points drawn by --seed (every benchmark, the simulated clusters, lossy ones, the null device, several simulating
threads) with the programs of the folders BEFORE and AFTER. Simulated records must be the same byte for byte but for the
environment. On the null device everything but what was timed must be: the keys, the options and the prediction.
--allow KEY (a regular expression on a path such as counters.0.events.tlps_to_host) lets values under it differ; what
did is printed at the end. Exits with 1 when a record differs otherwise.
"""

import argparse
import collections
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import command_lines


def record_of(folder, command, out):
    """(exit status, what was said on standard error when it failed, the record without its environment)."""
    run = subprocess.run([folder / command[0], *command[1:], "--out_json_file", out], capture_output=True, text=True, timeout=300)
    said = run.stderr.strip() if run.returncode else ""
    lines = out.read_text().splitlines() if out.exists() else []
    out.unlink(missing_ok=True)
    record = json.loads(lines[-1]) if lines else {}
    record.pop("environment", None)
    return run.returncode, said, record


def leaves(value, path=""):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, f"{path}.{index}")
    else:
        yield path, value


def compared(record, null):
    """path -> value of what must be the same, in the order of the record."""
    timed = null and record.get("status") == "ok"
    return {path: "..." if timed and not path.startswith(("config.", "prediction.", "benchmark", "status")) else value
            for path, value in leaves(record)}


def differences(before, after, null, allowed):
    """(path, before, after) of what differs, and of what differs and may."""
    a, b = compared(before[2], null), compared(after[2], null)
    found = [(path, a.get(path, "absent"), b.get(path, "absent")) for path in {**a, **b} if a.get(path, "absent") != b.get(path, "absent")]
    if not found and list(a) != list(b):
        found = [("the order of the keys", "", "")]
    found += [(what, x, y) for what, x, y in (("exit status", before[0], after[0]), ("standard error", before[1], after[1])) if x != y]
    may = [d for d in found if any(re.search(pattern, d[0]) for pattern in allowed)]
    return [d for d in found if d not in may], may


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", help="benchmarks whose name matches this expression")
    parser.add_argument("--allow", action="append", default=[])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        draw = command_lines.Draw(options.seed, command_lines.lossy_profiles(folder))
        commands = [next(draw) for _ in range(options.count)]
        if options.only:
            commands = [c for c in commands if re.search(options.only, c[0])]

        def both(job):
            index, command = job
            out = folder / f"{index}.jsonl"
            return [record_of(side.resolve(), command, out) for side in (options.before, options.after)]

        different, ok, fabrics, changed = 0, 0, collections.Counter(), collections.defaultdict(list)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for command, (before, after) in zip(commands, pool.map(both, enumerate(commands))):
                null = "null" in command
                fabrics["null" if null else pathlib.Path(command[2].removeprefix("sim:")).stem] += 1
                ok += before[2].get("status") == "ok"
                wrong, may = differences(before, after, null, options.allow)
                for path, x, y in may:
                    change = abs(y - x) / x if isinstance(x, (int, float)) and isinstance(y, (int, float)) and x else 1
                    changed[re.sub(r"\.\d+\.", ".N.", path)].append(change)
                if wrong:
                    different += 1
                    print(f"DIFFERS: {' '.join(command)}")
                    for path, x, y in wrong[:8]:
                        print(f"    {path}: {x} -> {y}")
                    sys.stdout.flush()
    for path, values in sorted(changed.items()):
        print(f"allowed: {path} in {len(values)} places, by up to {100 * max(values):.3f} %")
    print(f"{len(commands)} points ({', '.join(f'{n} {f}' for f, n in sorted(fabrics.items()))}), {ok} of them ok: "
          f"{len(commands) - different} the same, {different} not")
    return 1 if different or not commands else 0


if __name__ == "__main__":
    sys.exit(main())
