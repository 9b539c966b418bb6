"""Hostile inputs drawn by a seed: cluster profiles, hosts files, options, sweeps, records, tables of other tools.

Of a drawn case nobody knows whether it is right; what hostile_test.py holds of every case must hold of it, and it must not
take memory that it does not announce."""

import json
import random

import cases

BIDI = "\u202e\u2066\u200b"
TEXTS = ("", " ", "-1", "0", "1e300", "-1e300", "nan", "inf", "0x10", "1,2", "18446744073709551616", "9" * 40, "x" * 5000, BIDI + "x",
         "a\nb", "\x1b[31m", "caf\u00e9", "\ufeff8", "2147483648", "4096", "1k", "1e-9", "--", "=", "'", '"', "$(id)", "yes", "no", "2")
NUMBERS = (0, 1e-9, 1e-3, 0.5, 1, 2, 3, 7, 64, 1000, 65536, 1e6, 1e9, 1e12, 1e300, -1, -1e-9, 2**31, 2**63, 2**64)
STATUSES = (0, 1, 2)


class Draw:
    def __init__(self, seed, record, profiles, options, root):
        self.random = random.Random(seed)
        self.record, self.profiles, self.options, self.root = record, profiles, options, root
        self.examples = [path for path in sorted((root / "docs/examples").glob("*")) if path.is_file()]
        self.hosts = sorted((root / "tests/harness/hosts_files").glob("*.txt"))

    def one(self, number):
        kind = self.random.choices((self.profile, self.hosts_file, self.option, self.sweep, self.results, self.table), (6, 3, 5, 3, 3, 1))[0]
        case = kind()
        return cases.Case(name=f"drawn_{number}_{kind.__name__}", status=STATUSES, **case)

    def benchmark(self):
        return self.random.choice(cases.BENCHMARKS)

    def number(self, value):
        """Another value of a parameter: mostly near the true one, so that most of a profile stays plausible."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return self.random.choice((value, "x", None, 1))
        if self.random.random() < 0.3:
            return self.random.choice(NUMBERS)
        factor = self.random.choice((0, 0.001, 0.01, 0.1, 0.5, 2, 10, 100, 1000, 1e6))
        return type(value)(value * factor)

    def profile(self):
        profile = json.loads(json.dumps(self.random.choice(self.profiles)))
        # What is wrong with the section `wire` is mostly refused at once.
        sections = [part for name, part in profile.items() if isinstance(part, dict) and (name != "wire" or self.random.random() < 0.2)]
        parameters = [part[key] for part in sections for key in part]
        for parameter in self.random.sample(parameters, self.random.choice((1, 1, 2, 3, 8))):
            parameter["value"] = self.number(parameter["value"])
        if self.random.random() < 0.05:
            section = self.random.choice([key for key in profile if isinstance(profile[key], dict)])
            profile[section][self.random.choice(("x", "cores", ""))] = self.random.choice((1, {}, {"value": 1}, None))
        files = {"drawn.json": json.dumps(profile).encode()}
        if self.random.random() < 0.15:
            return {"argv": ("verbscope", "predict", "--cluster", "./drawn.json", "-s", "64"), "files": files}
        argv = (self.benchmark(), "--fabric", "sim:./drawn.json", "-D", "50us", "--warmup", "20us", "--longest", "5ms", "--out_json_file", "drawn.jsonl")
        return {"argv": argv, "files": files, "makes": ("drawn.jsonl",), "judge": judge_record}

    def word(self, letters="abn019[]{},-:@%./# =\t\r", most=24):
        return "".join(self.random.choice(letters) for _ in range(self.random.randint(0, most)))

    def hosts_file(self):
        lines = []
        for _ in range(self.random.randint(1, 4)):
            if self.random.random() < 0.5:
                text = self.random.choice(self.hosts).read_text(errors="replace")
                at = self.random.randint(0, len(text))
                lines.append(text[:at] + self.word() + text[at:])
            else:
                lines.append(self.word() + self.random.choice(("", " device=mlx5_0", " role=server", " cores=", " slots=8", "[1]" * 3000)))
        text = self.random.choice(("\n", "\r\n", "\r")).join(lines)
        if self.random.random() < 0.5:
            return {"argv": ("verbscope", "hosts", "drawn.txt"), "files": {"drawn.txt": self.mark() + text.encode()}}
        return {"argv": ("verbscope", "hosts", "slurm"), "environment": {"SLURM_JOB_NODELIST": text.replace("\0", "")[:100_000]}}

    def mark(self):
        return self.random.choice((b"", b"\xef\xbb\xbf"))

    def option(self):
        benchmark = self.benchmark()
        words = []
        for name in self.random.sample(self.options[benchmark], self.random.choice((1, 1, 2, 3))):
            value = self.random.choice(TEXTS)
            words += self.random.choice(([f"--{name}={value}"], [f"--{name}", value]))
        argv = (benchmark, *self.random.choice((cases.SIM, ("--fabric", "null", *cases.SHORT))), "--longest", "2ms", "--timeout", "1s", *words)
        return {"argv": argv, "loose": True}

    def mutated(self, text):
        """A text with a part doubled, left out, cut or replaced."""
        a, b = sorted(self.random.randint(0, len(text)) for _ in range(2))
        b = min(b, a + 40)
        return self.random.choice((text[:a], text[:a] + text[b:], text[:b] + text[a:], text[:a] + self.random.choice(TEXTS) + text[b:],
                                   text.replace(self.random.choice("0123456789"), self.random.choice(("-", "9" * 30, "e9")), 2)))

    def sweep(self):
        benchmark = self.benchmark()
        sweep = {"schema": "verbscope.sweep/1", "benchmark": benchmark,
                 "fixed": {"duration": "20us", "warmup": "20us", "longest": "1ms"},
                 "vary": {self.random.choice(self.options[benchmark]): [self.random.choice((*TEXTS, *NUMBERS, None, True)) for _ in range(2)]}}
        text = json.dumps(sweep)
        if self.random.random() < 0.6:
            text = self.mutated(text)
        files = {"drawn.json": self.mark() + text.encode("utf-8", "replace").replace(b"\n", b"\r\n")}
        return {"argv": ("verbscope", "run", "drawn.json", "--hosts", "sim:cib", "--out", "drawn.jsonl"), "files": files,
                "makes": ("drawn.jsonl",), "loose": True}

    def results(self):
        text = "".join(json.dumps(self.record) + "\n" for _ in range(2))
        for _ in range(self.random.choice((0, 1, 1, 3))):
            text = self.mutated(text)
        files = {"drawn.jsonl": self.mark() + text.encode("utf-8", "replace")}
        name, argv, _ = self.random.choice(cases.readers("drawn.jsonl"))
        return {"argv": argv, "files": files, "loose": True}

    def table(self):
        text = self.random.choice(self.examples).read_text(errors="replace")
        for _ in range(self.random.choice((0, 1, 1, 3))):
            text = self.mutated(text)
        return {"argv": ("verbscope", "import", "drawn.txt", "-o", "drawn.jsonl"), "files": {"drawn.txt": self.mark() + text.encode("utf-8", "replace")},
                "makes": ("drawn.jsonl",), "loose": True}


def judge_record(after):
    """What cannot be in a record that a profile gave: negative or endless times and rates."""
    for line in after.get("drawn.jsonl", b"").decode().splitlines():
        record = json.loads(line)
        if record["status"] != "ok":
            continue
        rate = record["result"].get("rate_mops", 0)
        if not 0 <= rate < 1e6:
            yield f"a rate of {rate} Mops"
        for report in record.get("counters", []):
            for key, value in report.get("extra", {}).items():
                if isinstance(value, (int, float)) and value < 0:
                    yield f"{key} is {value}"
        for key, value in record["result"].get("cpu", {}).items() if isinstance(record["result"].get("cpu"), dict) else ():
            if isinstance(value, (int, float)) and value < 0:
                yield f"cpu.{key} is {value}"


def options_of(binaries, run):
    """The options of each benchmark, by its own description."""
    return {name: [option["name"] for option in json.loads(run([binaries / name, "--describe"]))["options"]] for name in cases.BENCHMARKS}


def drawn_cases(seed, count, record, binaries, root, run):
    profiles = [json.loads(path.read_text()) for path in sorted((root / "configs/clusters").glob("*.json"))]
    draw = Draw(seed, record, profiles, options_of(binaries, run), root)
    return [draw.one(number) for number in range(count)]
