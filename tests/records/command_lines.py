"""Command lines drawn by a seed: every benchmark, the simulated clusters, lossy ones, the null device, several simulating
threads."""

import json
import pathlib
import random

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOSSY = 1e-3
MOST_POSTED = 1 << 27  # bytes: the simulator holds what is posted in memory
BENCHMARKS = ("send_rate", "recv_rate", "write_rate", "read_rate", "wqe_cache", "qp_scaling", "atomic_rate", "echo_rate",
              "verb_latency", "write_visibility", "sequencer", "kv_atomic", "rpc_rate", "rpc_large", "rpc_incast",
              "ordered_kv")
RPCS = ("rpc_rate", "rpc_large", "rpc_incast", "ordered_kv")

LONG_NAMES = {"-c": "--connection", "-s": "--size", "-I": "--inline_size", "-l": "--post_list", "-q": "--qp", "-t": "--tx_depth",
              "-r": "--rx_depth", "-o": "--outs", "-Q": "--cq_mod", "-Z": "--counters", "-e": "--events", "-m": "--mtu",
              "-b": "--bidirectional", "-n": "--iters", "-D": "--duration", "-A": "--atomic_type", "-u": "--qp_timeout"}


def add_arguments(parser, count, jobs):
    """The arguments of every script that runs command lines drawn by a seed, with these defaults."""
    parser.add_argument("bin", type=pathlib.Path, help="the folder of the programs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--jobs", type=int, default=jobs)


def as_table(options):
    """Options by their long names, and their values; flags have none."""
    table = {}
    for word in options:
        if word.startswith("-"):
            name = LONG_NAMES.get(word, word)
            table[name] = []
        else:
            table[name].append(word)
    return table


def as_words(table):
    return [word for name, values in table.items() for word in [name, *values]]


def with_options(options, changes):
    """The command line with options set as `changes` says: a table of names without dashes. True sets a flag; None and False
    remove an option."""
    table = as_table(options)
    for key, value in changes.items():
        table.pop(f"--{key}", None)
        if value is True:
            table[f"--{key}"] = []
        elif value is not None and value is not False and not (key == "size" and changes.get("header_only")):
            table[f"--{key}"] = [f"{value:g}" if isinstance(value, float) else str(value)]
    if changes.get("header_only"):
        table.pop("--size", None)
    return as_words(table)


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

    def rpcs(self, benchmark):
        if benchmark == "ordered_kv":
            return self.ordered_store()
        words = ["--machines", str(self.pick(2, 3, 5)), "-s", str(self.pick(8, 32, 1000, 3000, 20000)), "--cc", self.pick("none", "timely"),
                 "--credits", str(self.pick(1, 4, 32)), "--rto", "200us"] + self.optional(0.3, "--response_size", str(self.pick(8, 32, 5000)))
        for option in ("--batched_stamps", "--bypass_timely", "--bypass_limiter", "--preallocate", "--zero_copy"):
            words += self.optional(0.2, option, self.pick("on", "off"))
        if benchmark == "rpc_incast":
            return words + (["--background", str(self.pick(32, 5000))] if words[1] != "2" and self.random.random() < 0.5 else [])
        words += ["--serve", self.pick("all", "server"), "--threads", str(self.pick(1, 2))]
        batch = self.pick(1, 3)
        return words + ["--batch", str(batch), "--outstanding", str(batch * self.pick(1, 4, 20))]

    def ordered_store(self):
        threads = self.pick(1, 2, 4)
        return ["--threads", str(threads), "--workers", str(self.pick(*range(threads))), "--keys", str(self.pick(64, 5000)), "--scans",
                str(self.pick(0, 1, 30)), "--puts", str(self.pick(0, 20, 60)), "--scan_length", str(self.pick(1, 10, 300)), "--clients",
                str(self.pick(1, 3)), "--client_threads", str(self.pick(1, 2)), "--outstanding", str(self.pick(1, 2, 9)), "--rto", "200us"]

    def options_of(self, benchmark):
        if benchmark in RPCS:
            return self.rpcs(benchmark)
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
        benchmark = BENCHMARKS[self.turn % len(BENCHMARKS)]
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


def bounded(words):
    """The options with a size that is reduced until what is posted at a time is at most MOST_POSTED."""
    table = as_table(words)

    def number(option, default):
        return int(table.get(f"--{option}", [default])[0])
    requests = number("connections", number("threads", 1) * number("qp", 1)) * number("window", 128)
    size = number("size", 0)
    while size * requests > MOST_POSTED:
        size //= 4
    return with_options(words, {"size": size}) if "--size" in table else words


MOST_CLIENTS = 14  # a client machine of cx6 that sends has 96 threads: with 64 of them a point takes minutes


class ExtremeDraw(Draw):
    """Sizes from nothing to a megabyte, lists up to the queue's depth, up to hundreds of QPs and every core."""

    def threads(self):
        return str(self.pick(1, 1, 2, 3, 4, self.cores))

    def common(self, transports):
        words = ["-c", self.pick(*transports)] if transports else []
        threads = self.threads()
        return words + ["--threads", threads] + self.optional(0.2, "--seed", str(self.random.randrange(100))) + \
            self.optional(0.2, "--clients", str(self.pick(*range(1, min(int(threads), MOST_CLIENTS) + 1)))) + self.optional(0.1, "--client_threads", "3")

    def size(self, most=1 << 20):
        return str(min(most, self.pick(0, 1, 8, 16, 44, 45, 60, 64, 65, 100, 128, 256, 500, 1024, 2000, 2048, 4095, 4096, 9000, 65536, 1 << 20)))

    def posting(self):
        words = ["-l", str(self.pick(1, 1, 1, 2, 3, 7, 16, 32, 64, 128)), "-q", str(self.pick(1, 1, 2, 3, 8, 17, 64))]
        words += self.optional(0.4, "-I", str(self.pick(16, 44, 60, 128, 256)))
        if self.random.random() < 0.3:
            words += ["-Q", str(self.pick(1, 1, 4, 16))] if int(words[1]) <= 64 else ["-Q", "1"]
        return words + self.optional(0.15, "--wr_api")

    def options_of(self, benchmark):
        if benchmark in RPCS:
            return self.rpcs(benchmark)
        size = ["-s", self.size()]
        if benchmark in ("send_rate", "recv_rate"):
            transport = self.pick("RC", "UC", "UD")
            size = ["-s", self.size(self.mtu)] if transport == "UD" else size
            return self.common((transport,)) + size + self.posting() + self.optional(0.1, "-e") + \
                (self.optional(0.2, "--srq") if benchmark == "recv_rate" else [])
        if benchmark == "write_rate":
            return self.common(("RC", "UC")) + size + self.posting() + self.optional(0.5, "--direction", "in")
        if benchmark == "read_rate":
            return self.common(()) + size + ["-q", str(self.pick(1, 4, 16, 64)), "-l", str(self.pick(1, 4, 16))] + \
                self.optional(0.5, "--direction", "in")
        if benchmark == "wqe_cache":
            return self.common(()) + size + ["--window", str(self.pick(1, 8, 32, 128, 512)), "--verb", self.pick("read", "write"),
                                             "-q", str(self.pick(1, 4))]
        if benchmark == "qp_scaling":
            verb = self.pick("read", "write", "send")
            return ["--verb", verb, "--direction", self.pick("in", "out"), "--connections", str(self.pick(8, 64, 400, 1600)),
                    "--threads", str(self.pick(1, 2, 4)), "--window", str(self.pick(1, 4, 16))] + \
                (["-s", self.size(500), "-c", self.pick("UD", "RC")] if verb == "send" else
                 size + self.optional(0.2, "--active", "all")) + self.optional(0.3, "--order", "random")
        if benchmark == "atomic_rate":
            return self.common(()) + ["--verb", self.pick("fetch_add", "compare_swap"), "-Z", str(self.pick(1, 8, 64, 10000)),
                                      "--window", str(self.pick(1, 8, 16)), "-q", str(self.pick(1, 4, 16))]
        if benchmark == "echo_rate":
            words = ["--mode", self.pick("write_write", "write_send", "send_send"), "--optimise",
                     self.pick("none", "unreliable", "unsignaled", "inline"), "-s", self.pick("8", "32", "60", "100", "256"),
                     "--threads", self.threads(), "-q", str(self.pick(1, 2, 4)), "--window", str(self.pick(1, 4, 16, 64))]
            return words + ["-l", str(max(1, int(words[-1]) // 4))]
        if benchmark == "verb_latency":
            verb = self.pick("read", "write", "send", "fetch_add", "compare_swap", "echo")
            return ["--verb", verb, "-s", "8" if verb in ("fetch_add", "compare_swap") else self.pick("8", "64", "128", "256")]
        if benchmark == "write_visibility":
            return ["-s", self.pick("64", "128", "256", "1024")]
        if benchmark == "sequencer":
            return ["--design", self.pick("herd", "spec", "atomic"), "--threads", self.threads(), "--outstanding",
                    str(self.pick(1, 4, 16))]
        return ["--put_percent", str(self.pick(0, 5, 50, 100)), "--keys", str(self.pick(64, 10000)), "--client_threads",
                str(self.pick(1, 2, 4)), "-q", str(self.pick(1, 4))]

    def __next__(self):
        benchmark = BENCHMARKS[self.turn % len(BENCHMARKS)]
        self.turn += 1
        cluster = self.pick(*sorted(self.profiles))
        profile = json.loads((ROOT / "configs/clusters" / f"{cluster}.json").read_text())
        self.cores, self.mtu = profile["host"]["cores"]["value"], profile["wire"]["mtu_bytes"]["value"]
        lossy = benchmark in ("send_rate", "recv_rate", "write_rate") and self.random.random() < 0.1
        fabric = f"sim:{self.profiles[cluster] if lossy else cluster}"
        return [benchmark, "--fabric", fabric, *bounded(self.options_of(benchmark)), "-D", self.pick("50us", "100us", "300us", "1ms"),
                "--warmup", self.pick("0", "50us", "100us", "1ms"), "--sim_threads", "1"]


class OrdinaryDraw(ExtremeDraw):
    """What people run on a cluster without loss, for the default time: every benchmark of verbs with its own options."""

    BENCHMARKS = (*(name for name in BENCHMARKS if name not in RPCS), "all_to_all")

    def window(self, words, *choices):
        """Sometimes a window, of which the lists of `words` take no more than half."""
        least = 2 * int(words[words.index("-l") + 1]) if "-l" in words else 1
        return self.optional(0.5, "--window", str(max(least, self.pick(*choices))))

    def size(self, most=4096):
        return str(min(most, self.pick(1, 8, 16, 28, 32, 44, 60, 64, 100, 128, 200, 256, 512, 1000, 2048, 4096)))

    def memory(self):
        return self.optional(0.3, "--region_size", str(self.pick(65536, 1 << 20, 1 << 25)), "--addresses", self.pick("sequential", "random"))

    def asking_and_serving(self):
        words = ["--verb", self.pick("read", "write"), "--machines", str(self.pick(2, 3, 5)), "--threads", str(self.pick(1, 2, 4)), "-s",
                 self.size(), "-l", str(self.pick(1, 1, 2, 4)), "--vms", str(self.pick(1, 2, 8))]
        return words + self.window(words, 4, 16, 64)

    def options_of(self, benchmark):
        words = self.asking_and_serving() if benchmark == "all_to_all" else super().options_of(benchmark)
        if benchmark in ("read_rate", "write_rate"):
            words += self.window(words, 1, 2, 4, 8, 16, 32, 64) + self.memory()
        elif benchmark == "wqe_cache":
            words += self.memory()
        elif benchmark == "sequencer":
            words += self.optional(0.5, "--batching") if words[words.index("--design") + 1] != "atomic" else []
        elif benchmark == "atomic_rate":
            words += self.optional(0.5, "--stride", str(self.pick(8, 64, 4096))) + self.optional(0.5, "--addresses", "random")
        elif benchmark == "kv_atomic":
            words += self.window(words, 1, 4, 16) + self.optional(0.4, "--locks", self.pick("same", "hashed", "apart"))
        elif benchmark == "verb_latency":
            words += self.optional(0.5, "--threads", self.threads())
        elif benchmark in ("send_rate", "recv_rate"):
            words += self.optional(0.1, "-t", str(self.pick(64, 256)))
        return words

    def __next__(self):
        benchmark = self.BENCHMARKS[self.turn % len(self.BENCHMARKS)]
        self.turn += 1
        cluster = self.pick(*sorted(self.profiles))
        profile = json.loads(self.profiles[cluster].read_text())
        self.cores, self.mtu = profile["host"]["cores"]["value"], profile["wire"]["mtu_bytes"]["value"]
        self.family = profile["wire"]["nic_family"]["value"]
        return [cluster, benchmark, *bounded(self.options_of(benchmark))]


class LimitingDraw(OrdinaryDraw):
    """What OrdinaryDraw draws and two benchmarks more, most of it with options that limit the rate."""

    BENCHMARKS = (*OrdinaryDraw.BENCHMARKS, "kv_rate", "read_chain")
    RECEIVING = ("send_rate", "recv_rate")
    READING = ("read_rate", "atomic_rate", "kv_atomic", "read_chain")
    POSTING = (*RECEIVING, "write_rate", "read_rate", "wqe_cache", "qp_scaling", "all_to_all", "echo_rate")
    WINDOW = ("write_rate", "read_rate", "wqe_cache", "qp_scaling", "all_to_all", "atomic_rate", "echo_rate", "kv_atomic", "kv_rate")
    DEPTH = (*POSTING, "atomic_rate", "kv_atomic", "sequencer")

    def size(self, most=1 << 20):
        """One of three messages is long, where the operation allows it."""
        if self.random.random() < 0.33:
            return str(min(most, self.pick(4097, 8192, 16384, 65536, 262144, 1 << 20)))
        return super().size(min(most, 4096))

    def options_of(self, benchmark):
        if benchmark == "kv_rate":
            words = ["--store", self.pick("herd", "herd", "cached", "pilaf", "farm"), "--put_percent", str(self.pick(0, 5, 50, 100)),
                     "--keys", "4096", "--threads", str(self.pick(1, 2, 4, 6))]
            return words + self.optional(0.3, "--batching", "-q", "2") + self.optional(0.3, "--window", str(self.pick(1, 2, 8))) + \
                self.optional(0.3, "--prefetch", self.pick("off", "pipeline"))
        if benchmark == "read_chain":
            return ["--hops", str(self.pick(1, 2, 4)), "-s", str(max(16, int(self.size()))), "--threads", str(self.pick(1, 2, 4)),
                    "-q", str(self.pick(1, 4, 16))]
        return super().options_of(benchmark)

    def limits_of(self, benchmark, words):
        """Options that are likely to limit the rate, each with a value."""
        limits = [] if benchmark == "write_visibility" else [("--threads", self.threads())]
        limits += [("--uars", self.pick("default", "default", "exclusive", "16") if self.family == "mlx5" else "default")]
        if benchmark in (*self.RECEIVING, "kv_rate"):
            limits += [("-r", str(self.pick(1, 2, 4, 8, 16, 32, 83)))] * 2
        if benchmark in self.READING or "read" in words:
            limits += [("-o", str(self.pick(1, 2, 3, 4, 8)))] * 2
        if benchmark in self.DEPTH:
            limits += [("-t", str(self.pick(2, 4, 8, 16, 32, 83)))]
        if benchmark in self.POSTING:
            limits += [("-Q", str(self.pick(1, 2, 8))), ("-l", str(self.pick(1, 2, 8))),
                       ("-m", str(self.pick(256, 512, 1024))), ("-I", "0"), ("-I", self.pick("64", "128", "256"))]
        if benchmark in self.POSTING and benchmark != "all_to_all":
            limits += [("-q", str(self.pick(1, 1, 2, 4))), ("--clients", "1"), ("--client_threads", "1"), ("-e",)]
        if benchmark in self.WINDOW:
            limits += [("--window", str(self.pick(1, 2, 3, 4, 8)))]
        if benchmark == "sequencer":
            limits += [("--outstanding", str(self.pick(1, 2, 3, 8)))]
        if benchmark == "verb_latency" and "fetch_add" not in words and "compare_swap" not in words:
            limits += [("-s", self.size())]
        if benchmark in ("write_rate", "read_rate", "wqe_cache"):
            limits += [("--region_size", "32M", "--addresses", "random", "--pages", self.pick("4k", "4k", "2m")),
                       ("--threads", "4", "--threads_per_qp", "2", "--wait", "oldest", "--window", "8")]
        if benchmark == "send_rate":
            limits += [("--header_only",)]
        return limits

    def limited(self, benchmark, words):
        """The options with up to three of those that limit."""
        table, limits = as_table(words), self.limits_of(benchmark, words)
        for limit in self.random.sample(limits, min(len(limits), self.pick(0, 1, 1, 2, 3))):
            table |= as_table(limit)
        if "--header_only" in table:
            table.pop("--size", None)
        if "--connections" in table:
            table.pop("--qp", None)
        return as_words(table)

    def __next__(self):
        cluster, benchmark, *words = super().__next__()
        return [cluster, benchmark, *bounded(self.limited(benchmark, words))]
