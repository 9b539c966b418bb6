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
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOSSY = 1e-3


def lossy_profiles(folder):
    """Copies of the profiles whose switch loses packets, by the name of the cluster."""
    profiles = {}
    for source in sorted((ROOT / "configs/clusters").glob("*.json")):
        profile = json.loads(source.read_text())
        parameter = profile["fabric"]["loss_probability"]
        parameter["value"] = LOSSY
        target = folder / f"{source.stem}_lossy.json"
        target.write_text(json.dumps(profile))
        profiles[source.stem] = target
    return profiles


class Draw:
    """One random command line after another, the benchmarks in turn."""

    def __init__(self, seed, profiles):
        self.random = random.Random(seed)
        self.profiles = profiles
        self.turn = 0

    def pick(self, *choices):
        return self.random.choice(choices)

    def common(self, transports):
        words = ["-c", self.pick(*transports)] if transports else []
        for option, values in {"--threads": (1, 2, 4), "--seed": (1, 2, 3), "-r": (64, 512), "--client_threads": (1, 3)}.items():
            if self.random.random() < 0.4:
                words += [option, str(self.pick(*values))]
        return words

    def size(self, most=5000):
        return str(min(most, self.pick(1, 8, 16, 32, 60, 64, 100, 256, 700, 2048, 4096, 5000)))

    def posting(self):
        words = ["-s", self.size(2048), "-l", str(self.pick(1, 1, 2, 7, 16, 32)), "-q", str(self.pick(1, 1, 2, 8))]
        if self.random.random() < 0.4:
            words += ["-I", str(self.pick(16, 60, 128))]
        if self.random.random() < 0.3:
            words += ["-Q", str(self.pick(1, 4, 16))]
        if self.random.random() < 0.2:
            words += ["--wr_api"]
        return words

    def optional(self, probability, *words):
        return list(words) if self.random.random() < probability else []

    def options_of(self, benchmark):
        if benchmark in ("send_rate", "recv_rate"):
            words = self.common(("RC", "UC", "UD")) + self.posting() + self.optional(0.2, "--validate") + self.optional(0.2, "-e")
            return words + (self.optional(0.3, "--srq") if benchmark == "recv_rate" else self.optional(0.2, "-n", "500"))
        if benchmark == "write_rate":
            return self.common(("RC", "UC")) + self.posting() + self.optional(0.4, "--direction", "in")
        if benchmark == "read_rate":
            return self.common(()) + ["-s", self.size(), "-q", str(self.pick(1, 4, 16))] + self.optional(0.4, "--direction", "in")
        if benchmark == "wqe_cache":
            return self.common(()) + ["--window", str(self.pick(1, 8, 32, 128)), "--verb", self.pick("read", "write")]
        if benchmark == "qp_scaling":
            return ["--verb", self.pick("read", "write", "send"), "--direction", self.pick("in", "out"), "--connections",
                    str(self.pick(4, 32, 400)), "--threads", "4"]
        if benchmark == "atomic_rate":
            return self.common(()) + ["--verb", self.pick("fetch_add", "compare_swap"), "-Z", str(self.pick(1, 64, 10000)),
                                      "--window", str(self.pick(1, 8))]
        if benchmark == "echo_rate":
            return ["--mode", self.pick("write_write", "write_send", "send_send"), "--optimise",
                    self.pick("none", "unreliable", "unsignaled", "inline"), "-s", self.size(256)]
        if benchmark == "verb_latency":
            verb = self.pick("read", "write", "send", "fetch_add", "compare_swap", "echo")
            return ["--verb", verb, "-n", "300", "-s", "8" if verb in ("fetch_add", "compare_swap") else self.size(64)]
        if benchmark == "write_visibility":
            return ["-s", self.pick("128", "256", "1024")]
        if benchmark == "sequencer":
            return ["--design", self.pick("herd", "spec", "atomic"), "--threads", str(self.pick(1, 4))] + \
                self.optional(0.5, "--batching") + ["--outstanding", str(self.pick(1, 8))]
        return ["--put_percent", str(self.pick(0, 5, 50, 100)), "--keys", str(self.pick(64, 10000)), "--client_threads", "2"]

    def __next__(self):
        names = ("send_rate", "recv_rate", "write_rate", "read_rate", "wqe_cache", "qp_scaling", "atomic_rate", "echo_rate",
                 "verb_latency", "write_visibility", "sequencer", "kv_atomic")
        benchmark = names[self.turn % len(names)]
        self.turn += 1
        options = self.options_of(benchmark)
        cluster = self.pick(*sorted(self.profiles))
        fabric = f"sim:{cluster}"
        if benchmark in ("send_rate", "write_rate", "read_rate", "qp_scaling") and self.random.random() < 0.15:
            fabric = "null"
        elif benchmark not in ("sequencer", "kv_atomic", "echo_rate") and self.random.random() < 0.2:
            fabric = f"sim:{self.profiles[cluster]}"
        if fabric != "null":
            options += self.optional(0.3, "--sim_threads", "2")
        if "-n" not in options:
            options += ["-D", "20ms" if fabric == "null" else self.pick("100us", "300us")]
            options += ["--warmup", "5ms" if fabric == "null" else "100us"]
        return [benchmark, "--fabric", fabric, *options]

    def __iter__(self):
        return self


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
        draw = Draw(options.seed, lossy_profiles(folder))
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
