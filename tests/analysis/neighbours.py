"""Which single options of a configuration may be changed, and to what: a table of its own, which `explain` does not read.

A change keeps what the benchmark does for its user: the payload, the verb, who asks whom, the memory that is asked for. Whether
a value is legal together with the other options the program decides: it refuses those that are not.
"""

POSTING = ("post_list", "inline_size", "cq_mod", "tx_depth", "wr_api", "uars", "mtu", "events")
SIDES = ("threads", "qp", "clients", "client_threads")
ONE_SIDED = (*POSTING, *SIDES, "connection", "window", "outs", "pages", "cq_per_qp", "threads_per_qp")
MESSAGES = (*POSTING, *SIDES, "connection", "rx_depth", "inline_recv", "header_only")
OPTIONS = {
    "send_rate": MESSAGES,
    "recv_rate": (*MESSAGES, "srq", "recv_list"),
    "write_rate": (*ONE_SIDED, "rx_depth"),
    "read_rate": ONE_SIDED,
    "wqe_cache": ONE_SIDED,
    "qp_scaling": (*ONE_SIDED, "rx_depth", "header_only"),
    "all_to_all": (*POSTING, "threads", "vms", "connection", "window", "outs", "pages"),
    "atomic_rate": (*SIDES, "window", "outs", "cq_mod", "tx_depth", "uars", "events"),
    "echo_rate": (*POSTING, *SIDES, "connection", "window", "answer_qps", "rx_depth"),
    "sequencer": ("inline_size", "cq_mod", "tx_depth", "rx_depth", "outs", "uars", *SIDES, "batching", "max_batch", "outstanding"),
    "kv_atomic": ("inline_size", *SIDES, "window", "outs", "tx_depth", "uars", "locks", "pages"),
    "kv_rate": ("inline_size", "cq_mod", "tx_depth", "rx_depth", "outs", "uars", *SIDES, "window", "batching", "max_batch", "prefetch"),
    "read_chain": (*SIDES, "outs", "tx_depth", "uars"),
    # One operation is under way at a time: more threads are more of them, not a better one.
    "verb_latency": ("inline_size", "cq_mod", "tx_depth", "connection", "mtu", "uars", "wr_api", "events"),
    "write_visibility": ("inline_size", "mtu", "uars", "wr_api"),
}
ONE_AT_A_TIME = ("verb_latency", "write_visibility")
# Options that say what the benchmark does. Advice to change them answers another question.
MEANING = {"size", "verb", "direction", "bidirectional", "mode", "design", "put_percent", "keys", "zipf", "accesses", "work_ns", "hops",
           "records", "counters", "stride", "emulate", "machines", "region_size", "addresses", "alignment", "validate", "iters",
           "duration", "warmup", "longest", "seed", "small_keys", "store", "cached_share", "write_with_imm", "active", "fabric",
           "atomic_type", "probe_slots", "all", "run_infinitely"}
# READs and atomics that a QP of the simulated adapters may have outstanding, and their deepest queue.
MOST_OUTS, DEEPEST = 16, 16384
MOST_QPS, MOST_CLIENTS = 1024, 64  # more of them take minutes to simulate
IMMEDIATE = 4  # bytes
WORDS = {"connection": ("RC", "UC", "UD"), "pages": ("4k", "2m"), "locks": ("same", "hashed", "apart"),
         "prefetch": ("off", "pipeline", "batch"), "mtu": (256, 512, 1024, 2048, 4096), "uars": ("default", "exclusive")}
FLAGS = ("wr_api", "events", "cq_per_qp", "srq", "batching")


def steps(value, most, least=1):
    """Halves, quarters ... of a number, twice to sixteen times of it, and the most that is allowed where twice is more."""
    values, factor = [], 2
    while value // factor >= least:
        values.append(value // factor)
        factor *= 2
    values += [value * factor for factor in (2, 4, 8, 16) if value * factor <= most]
    return values + ([most] if value < most < 2 * value else [])


def most_of(option, config, profile):
    """The largest value of an option that is a number."""
    cores = profile["host"]["cores"]["value"]
    per_qp = config.get("window") or config["tx_depth"]
    threads = config["threads"]
    return {"threads": cores, "client_threads": cores, "clients": MOST_CLIENTS, "qp": MOST_QPS // threads, "vms": MOST_QPS // threads,
            "outs": MOST_OUTS, "post_list": per_qp, "cq_mod": config["tx_depth"], "window": config["tx_depth"],
            "threads_per_qp": threads, "outstanding": 4096, "max_batch": 256, "answer_qps": config["qp"]}.get(option, DEEPEST)


def values_of(option, benchmark, config, profile):
    """The other values of an option."""
    now, size = config.get(option), config["size"]
    if option == "outs" and (benchmark == "write_rate" or config.get("verb") in ("write", "send")):
        return []
    if option == "rx_depth" and (benchmark == "write_rate" and not config["write_with_imm"] or config.get("verb") in ("read", "write")):
        return []
    if option in FLAGS:
        return [None if now else True]
    if option == "header_only":
        return [True] if not now and size <= IMMEDIATE and config.get("verb", "send") == "send" else []
    if option == "inline_size":
        fits = 0 < size <= profile["wire"]["max_inline_bytes"]["value"]
        return [0] if config.get("inlined") else [size] if fits else []
    if option == "inline_recv":
        return [0] if now else [size] if 0 < size <= 64 else []
    if option == "mtu" and size <= WORDS["mtu"][0]:
        return []
    if option == "connection" and benchmark in ("wqe_cache", "read_rate"):
        return []
    if option == "window" and now == 0:
        return steps(config["tx_depth"], config["tx_depth"])
    if option == "uars" and str(now).isdigit():
        return [*WORDS["uars"], *steps(int(now), 512, 8)]
    if option in WORDS:
        return [word for word in WORDS[option] if word != now]
    return steps(now, most_of(option, config, profile)) if now else []


def neighbours(benchmark, config, profile):
    """Every change of a single option, as tables of one name and its value."""
    return [{option: value} for option in OPTIONS[benchmark] for value in values_of(option, benchmark, config, profile)]


def changes_the_meaning(change, config):
    """Whether the configuration does something else for its user after this change."""
    return bool(MEANING & set(change) - ({"size"} if "header_only" in change else set())) or \
        "header_only" in change and (not change["header_only"] or config["size"] > 64)


def debatable(benchmark, change, config):
    """Whether one may advise this change or not: it is no failure to leave it out."""
    return any(option not in OPTIONS[benchmark] for option in change) or \
        "header_only" in change and config["size"] > IMMEDIATE
