"""The table of hostile cases. What must hold of a case is written beside it, or beside the class that makes it."""

import copy
import dataclasses
import json
import subprocess

BENCHMARKS = ("send_rate", "recv_rate", "write_rate", "read_rate", "all_to_all", "wqe_cache", "qp_scaling", "atomic_rate",
              "echo_rate", "verb_latency", "write_visibility", "sequencer", "kv_atomic", "kv_rate", "rpc_rate", "rpc_large", "rpc_incast",
              "ordered_kv", "read_chain")
SHORT = ("-D", "20us", "--warmup", "20us")
SIM = ("--fabric", "sim:cib", *SHORT)
ESC = "\x1b]0;owned\x07\x1b[2J\x1b[31m"  # a title, a cleared screen, a colour
C1 = "\u009b31m\u0085\x7f"  # the same by single characters, and DEL


@dataclasses.dataclass
class Case:
    """A command line, in a folder with the fixtures and `files`. `says` and `prints` are searched for in standard error and
    output; `status` may be several; `makes` are the files that it may make or change, and must when it ends with 0; `shell` are redirections, `blocks` of 512 bytes the largest file that it
    may write; `silent`: it need not say anything; `loose`: it may make files besides; `judge` yields what is wrong with the files
    that are there afterwards."""
    name: str
    argv: tuple
    status: int | tuple
    says: str = ""
    prints: str = ""
    files: dict = dataclasses.field(default_factory=dict)
    makes: tuple = ()
    shell: str = ""
    environment: dict = dataclasses.field(default_factory=dict)
    silent: bool = False
    blocks: int = 0
    loose: bool = False
    judge: object = None


def line(value):
    return (json.dumps(value) + "\n").encode()


def make_fixtures(folder, binaries, root):
    """Two results files, a sweep, a hosts file, a cluster, a page, figures of others; returns a record."""
    for name, seed in (("a.jsonl", "1"), ("b.jsonl", "2")):
        subprocess.run([binaries / "send_rate", *SIM, "--seed", seed, "--out_json_file", folder / name], check=True,
                       capture_output=True)
    (folder / "sweep.json").write_text(json.dumps({"schema": "verbscope.sweep/1", "benchmark": "send_rate",
                                                   "fixed": {"duration": "20us", "warmup": "20us"}, "vary": {"size": [8, 16]}}))
    (folder / "hosts.txt").write_text("localhost\n")
    (folder / "cluster.json").write_text((root / "configs/clusters/cib.json").read_text())
    (folder / "letter.txt").write_text("a text that nobody has twice\n")
    (folder / "theirs.html").write_text("<!doctype html><title>their page</title>")
    (folder / "theirs.svg").write_text("not a figure")
    (folder / "empty").write_text("")
    (folder / "folder").mkdir()
    (folder / "folder" / "file").write_text("x")
    return json.loads((folder / "a.jsonl").read_text())


# Every way in which the analyses read results files; what they print of the first record must be there. `plot` and
# `report` need programs or files that are not everywhere, so they are cases of their own.
def readers(*files):
    """(name, argv, what standard output has of a good record)"""
    return (("compare", ("verbscope", "compare", *files), "send_rate"),
            ("compare_csv", ("verbscope", "compare", "--format", "csv", *files), "sim:cib"),
            ("compare_json", ("verbscope", "compare", "--json", *files), "sim:cib"),
            ("explain", ("verbscope", "explain", "--closed_form", *files), "send_rate"),
            ("explain_json", ("verbscope", "explain", "--closed_form", "--json", *files), "send_rate"),
            ("export_csv", ("verbscope", "export", "--view", "csv", *files), "send_rate"),
            ("export_jsonl", ("verbscope", "export", *files), "send_rate"),
            ("export_perftest", ("verbscope", "export", "--view", "perftest", *files), "MsgRate"),
            ("diff", ("verbscope", "diff", files[0], files[0]), ""),
            ("diff_csv", ("verbscope", "diff", "--format", "csv", files[0], files[0]), ""))


def broken_lines(record):
    """Lines that are no records: each costs itself, with a warning that names the file and the line."""
    good = line(record)
    out = {"text": b"not json\n", "nul": b"\0" * 40 + b"\n", "nul_within": good[:50] + b"\0" + good[50:],
           "cut": good[:200] + b"\n", "array": b"[1, 2]\n", "number": b"7\n", "string": b'"x"\n', "empty_object": b"{}\n",
           "deep": b"[" * 5000 + b"]" * 5000 + b"\n", "not_utf8": good.replace(b"send_rate", b"send\xff\xfe", 1),
           "two_on_a_line": good.strip() + good, "nan": good.replace(b'"rate_mops": ', b'"rate_mops": NaN, "x": ', 1),
           "escapes": (ESC + "\n").encode(), "return": b"\r\r\n", "long_number": b"9" * 100_000 + b"\n"}
    for key in record:
        if key == "schema":
            continue
        out["without_" + key] = line({k: v for k, v in record.items() if k != key})
        if key != "prediction":
            out["null_" + key] = line({**record, key: None})
        out["wrong_" + key] = line({**record, key: [7]})
    out["unknown_key"] = line({**record, "further": 1})
    out["reason_when_ok"] = line({**record, "reason": "why"})
    out["status_maybe"] = line({**record, "status": "maybe"})
    out["no_fabric"] = line({**record, "environment": {"simulated": True}})
    return out


def changed(record, *path_and_value):
    """A copy with the value at the path."""
    *path, last, value = path_and_value
    out = copy.deepcopy(record)
    inner = out
    for key in path:
        inner = inner[key]
    inner[last] = value
    return out


def broken_parts(record):
    """Records with a part that cannot be what it should: `prediction` costs the prediction, the others what is made of them."""
    out = {}
    for name, value in {"empty": {}, "foreign": {"cluster": "cib"}, "words": {k: "x" for k in record["prediction"]},
                        "nulls": {k: None for k in record["prediction"]},
                        "nested": {k: {"a": [1]} for k in record["prediction"]}}.items():
        out["prediction_" + name] = {**record, "prediction": value}
    for key in record["prediction"]:
        out[f"prediction_{key}"] = changed(record, "prediction", key, [1, {"a": None}])
    for value_name, value in {"text": "x", "null": None, "negative": -1, "huge": 1e308, "list": [1], "object": {"a": 1},
                              "bool": True}.items():
        for key in ("rate_mops", "window_ops", "window_s", "threads"):
            out[f"{key}_{value_name}"] = changed(record, "result", key, value)
        out[f"size_{value_name}"] = changed(record, "config", "size", value)
        out[f"latency_{value_name}"] = changed(record, "result", "latency", value)
    out["config_empty"] = {**record, "config": {}}
    out["result_empty"] = {**record, "result": {}}
    out["no_counters"] = {**record, "counters": []}
    out["extra_words"] = changed(record, "counters", 0, "extra", {k: "x" for k in record["counters"][0]["extra"]})
    out["point_odd"] = changed(record, "config", "point", {"benchmark": 5, "params": 7, "repetition": 1e300})
    return out


def hostile_texts(record):
    """Texts that would move a cursor, forge a line or begin a formula where a record may have any text."""
    out = {}
    for name, text in {"esc": ESC, "c1": C1, "line": "x\nverbscope: all is well\n", "formula": "=cmd()\x1b", "null": "a\0b"}.items():
        failed = {**record, "status": "failed", "reason": "because " + text, "benchmark": "send_rate" + text}
        out[name + "_reason"] = failed
        out[name + "_config"] = changed(record, "config", "connection", text)
        out[name + "_key"] = changed(record, "config", "key" + text, text)
        out[name + "_result"] = changed(record, "result", "note" + text, text)
        out[name + "_fabric"] = changed(record, "environment", "fabric", "sim:cib" + text)
        out[name + "_node"] = changed(record, "counters", 0, "source", text)
    return out


def bad_results(record):
    good = line(record)
    for name, bad in broken_lines(record).items():
        for reader, argv, prints in readers("x.jsonl")[0:8:7] if name.startswith(("without", "null", "wrong")) else readers("x.jsonl")[::3]:
            yield Case(f"line_{name}_{reader}", argv, 0, says=r"x\.jsonl:1", prints=prints, files={"x.jsonl": bad + good})
    for name, bad in broken_parts(record).items():
        chosen = readers("x.jsonl") if name.startswith("rate_mops") else readers("x.jsonl")[:4:3] + readers("x.jsonl")[5:6]
        for reader, argv, prints in chosen:
            says = r"x\.jsonl.*prediction" if name.startswith("prediction") else ""
            # The good record stands behind the other, of another size, so that both are points.
            other = changed(changed(record, "config", "size", 12345), "config", "seed", 9)
            yield Case(f"part_{name}_{reader}", argv, 0, says=says, prints=prints,
                       files={"x.jsonl": line(bad) + line(other)})
    for name, bad in hostile_texts(record).items():
        for reader, argv, _ in readers("x.jsonl")[:6:3] + readers("x.jsonl")[1:7:4]:
            yield Case(f"text_{name}_{reader}", argv, 0, files={"x.jsonl": line(bad) + good})
    many = b"no record\n" * 3000 + good
    yield Case("many_bad_lines", ("verbscope", "compare", "x.jsonl"), 0, says="3000 lines", files={"x.jsonl": many})
    yield Case("many_bad_lines_resume", ("verbscope", "run", "sweep.json", "--hosts", "null", "--resume", "--out", "x.jsonl"), 0,
               says="3000 lines", files={"x.jsonl": many}, makes=("x.jsonl",))
    many = b"".join(line(changed({**record, "prediction": {}}, "config", "seed", i)) for i in range(30))
    yield Case("many_bad_predictions", ("verbscope", "compare", "x.jsonl"), 0, says="in total 30 lines have a prediction", files={"x.jsonl": many})
    yield Case("no_last_line_end", ("verbscope", "compare", "x.jsonl"), 0, prints="sim:cib", files={"x.jsonl": good.strip()})
    yield Case("endless_line", ("verbscope", "compare", "x.jsonl"), 0, says=r"x\.jsonl:2: longer than",
               files={"x.jsonl": good + b"x" * (17 << 20) + b"\n" + good})
    yield Case("no_line_end_ever", ("verbscope", "compare", "/dev/zero"), 1, says="it is not a regular file")
    # A comparison of half a file would mislead: another version stops the reader.
    yield Case("another_version", ("verbscope", "compare", "x.jsonl"), 1, says=r"x\.jsonl:2.*verbscope\.record/9",
               files={"x.jsonl": good + line({**record, "schema": "verbscope.record/9"})})
    for name, text in {"nothing": b"", "blank": b"\n\n\n", "words": b"hello\n"}.items():
        yield Case(f"without_record_{name}", ("verbscope", "explain", "x.jsonl"), 1, says=r"x\.jsonl: has no record", files={"x.jsonl": text})
    for command in ("compare", "explain", "export", "report"):
        yield Case(f"missing_{command}", ("verbscope", command, "none.jsonl"), 1, says=r"none\.jsonl: No such file")
        yield Case(f"folder_{command}", ("verbscope", command, "folder"), 1, says="folder: it is a folder")
    yield Case("missing_diff", ("verbscope", "diff", "a.jsonl", "none.jsonl"), 1, says=r"none\.jsonl: No such file")
    yield Case("missing_collect", ("verbscope", "collect", "none.jsonl"), 1, says="none.jsonl")


def outputs():
    """No output is an input, nor takes the place of what is not of its kind."""
    kept = ("letter.txt", "theirs.html", "theirs.svg", "sweep.json", "hosts.txt", "cluster.json", "b.jsonl")
    for name in kept:
        yield Case(f"report_over_{name}", ("verbscope", "report", "a.jsonl", "-o", name), 2, says=f"{name}: .*would be overwritten")
    for name in ("letter.txt", "theirs.html", "theirs.svg", "sweep.json", "hosts.txt", "cluster.json"):
        yield Case(f"record_over_{name}", ("send_rate", *SIM, "--out_json_file", name), 2, says=f"--out_json_file {name}: .*would be overwritten")
        yield Case(f"run_over_{name}", ("verbscope", "run", "sweep.json", "--hosts", "null", "--out", name), 2, says=f"{name}: .*overwritten")
        yield Case(f"reproduce_over_{name}", ("verbscope", "reproduce", "atc16", "--out", name), 2, says=f"{name}: .*overwritten")
        yield Case(f"validate_over_{name}", ("verbscope", "validate", "atc16", "--sample", "1", "--out", name), 2, says=f"{name}: .*overwritten")
    for name in ("a.jsonl", "./a.jsonl", "folder/../a.jsonl"):
        yield Case(f"report_over_input_{name}", ("verbscope", "report", "a.jsonl", "b.jsonl", "-o", name), 2, says="an input file")
    yield Case("run_over_its_hosts", ("verbscope", "run", "sweep.json", "--hosts", "hosts.txt", "--out", "hosts.txt"), 2, says="an input file")
    yield Case("run_over_its_sweep", ("verbscope", "run", "sweep.json", "--hosts", "null", "--out", "./sweep.json"), 2, says="an input file")
    yield Case("plot_over_theirs", ("verbscope", "plot", "a.jsonl", "-x", "size", "-o", "theirs.svg"), 2, says="would be overwritten")
    yield Case("plot_over_input", ("verbscope", "plot", "x.svg", "-x", "size", "-o", "x.svg"), 2, says="an input file", files={"x.svg": b"<svg"})
    yield Case("plot_of_no_kind", ("verbscope", "plot", "a.jsonl", "-x", "size", "-o", "x.png"), 2, says=r"\.svg or \.pdf")
    for command, argv in {"report": ("report", "a.jsonl", "-o"), "run": ("run", "sweep.json", "--hosts", "null", "--out")}.items():
        yield Case(f"{command}_to_folder", ("verbscope", *argv, "folder"), 2, says="folder: it is a folder")
        yield Case(f"{command}_to_nowhere", ("verbscope", *argv, "none/file"), 1, says="none/file: No such file")
        yield Case(f"{command}_to_full", ("verbscope", *argv, "/dev/full"), 1, says="/dev/full: No space left")
        yield Case(f"{command}_to_standard_output", ("verbscope", *argv, "/dev/stdout"), 2, says="standard output is redirected", shell=">out",
                   makes=("out",))
    yield Case("record_to_folder", ("send_rate", *SIM, "--out_json_file", "folder"), 2, says="folder: it is a folder")
    yield Case("record_to_full", ("send_rate", *SIM, "--out_json_file", "/dev/full"), 1, says="/dev/full: No space left")
    yield Case("record_to_nowhere", ("send_rate", *SIM, "--out_json_file", "none/file"), 1, says="none/file: No such file")
    yield Case("record_to_standard_output", ("send_rate", *SIM, "--out_json_file", "/dev/stdout"), 2, says="standard output is redirected",
               shell=">out", makes=("out",))
    # What may be written.
    yield Case("report_over_empty", ("verbscope", "report", "a.jsonl", "-o", "empty"), 0, makes=("empty",))
    yield Case("report_new", ("verbscope", "report", "a.jsonl", "-o", "new.html"), 0, makes=("new.html",))
    yield Case("record_appended", ("send_rate", *SIM, "--out_json_file", "a.jsonl"), 0, makes=("a.jsonl",))
    yield Case("record_after_cut_line", ("send_rate", *SIM, "--out_json_file", "x.jsonl"), 0, makes=("x.jsonl",), files={"x.jsonl": b'{"schema":"verbscope.re'})
    # A limit of 1 KB on the size of files is a disk that is full half-way: what was there stays, whole.
    page = b"<title>verbscope report</title>"
    yield Case("report_on_small_disk", ("verbscope", "report", "a.jsonl", "-o", "page.html"), 1, says="page.html: File too large",
               files={"page.html": page}, blocks=2)
    yield Case("run_on_small_disk", ("verbscope", "run", "sweep.json", "--hosts", "null", "--out", "b.jsonl"), 1,
               says="b.jsonl: File too large", blocks=2)
    yield Case("record_on_small_disk", ("send_rate", *SIM, "--out_json_file", "b.jsonl"), 1, says="b.jsonl: File too large", blocks=2)


def streams():
    """Standard output that cannot be written is a failure; standard error that cannot be is nothing; closed ones are harmless."""
    talkers = {"list": ("verbscope", "list"), "doctor": ("verbscope", "doctor"), "doctor_json": ("verbscope", "doctor", "--json"),
               "help": ("verbscope", "--help"), "version": ("verbscope", "--version"), "compare": ("verbscope", "compare", "a.jsonl"),
               "explain": ("verbscope", "explain", "a.jsonl"), "export": ("verbscope", "export", "a.jsonl"),
               "diff": ("verbscope", "diff", "a.jsonl", "b.jsonl"), "hosts": ("verbscope", "hosts", "hosts.txt"),
               "predict": ("verbscope", "predict", "--cluster", "cib", "--size", "8"), "send_rate": ("send_rate", *SIM),
               "record": ("send_rate", *SIM, "--out_json_file", "-"), "describe": ("send_rate", "--describe"),
               "benchmark_help": ("read_rate", "--help"), "verb_latency": ("verb_latency", *SIM)}
    for name, argv in talkers.items():
        yield Case(f"full_output_{name}", argv, 1, says="cannot write to standard output", shell=">/dev/full")
        yield Case(f"full_error_{name}", argv, 0, shell="2>/dev/full")
        yield Case(f"closed_{name}", argv, 0, shell="<&- >&- 2>&-")
    yield Case("full_output_report", ("verbscope", "report", "a.jsonl", "-o", "p.html"), 1, says="cannot write to standard output",
               shell=">/dev/full", makes=("p.html",))
    yield Case("full_output_run", ("verbscope", "run", "sweep.json", "--hosts", "null", "--out", "n.jsonl"), 1,
               says="cannot write to standard output", shell=">/dev/full", makes=("n.jsonl",))
    run = ("verbscope", "run", "sweep.json", "--hosts", "sim:cib", "--out", "n.jsonl")
    yield Case("closed_run", run, 0, shell="<&- >&- 2>&-", makes=("n.jsonl",))
    yield Case("closed_output_record", ("send_rate", *SIM, "--out_json_file", "n.jsonl"), 0, shell=">&-", makes=("n.jsonl",))
    for name, argv, status in (("usage", ("verbscope", "nothing"), 2), ("failure", ("verbscope", "compare", "none"), 1),
                               ("benchmark", ("send_rate", "--nothing"), 2)):
        yield Case(f"full_error_of_{name}", argv, status, shell="2>/dev/full", silent=True)
        yield Case(f"closed_error_of_{name}", argv, status, shell="2>&-", silent=True)


def usage():
    """A mistake on the command line is status 2 and one line that names it."""
    for program in (*BENCHMARKS, "perftest"):
        for name, words, says in (("unknown", ("--nonsense",), "nonsense"), ("no_value", ("--size",), "size"),
                                  ("text_for_number", ("--size", "many"), "size"), ("negative", ("--size", "-1"), "size"),
                                  ("fabric", ("--fabric", "sim"), "--fabric"), ("cluster", ("--fabric", "sim:none"), "none"),
                                  ("time", ("--fabric", "null", "-D", "5h"), "--duration"),
                                  ("zero_time", ("--fabric", "null", "-D", "0"), "--duration"),
                                  ("cores", ("--fabric", "sim:cib", "--cores", "3-1"), "--cores")):
            yield Case(f"usage_{program}_{name}", (program, *words), 2, says=says)
    for name, words, says in (
            ("nothing", (), ""), ("unknown_command", ("frobnicate",), "frobnicate"), ("escape", (ESC,), r"\\x1b"),
            ("escape_option", ("compare", "a.jsonl", "--" + ESC), r"\\x1b"), ("run_no_sweep", ("run",), "sweep"),
            ("run_no_hosts", ("run", "sweep.json"), "hosts"), ("run_unknown_sweep", ("run", "no_such_sweep", "--hosts", "null"), "no_such_sweep"),
            ("run_unknown_hosts", ("run", "sweep.json", "--hosts", "none.txt"), "none.txt"),
            ("run_unknown_cluster", ("run", "sweep.json", "--hosts", "sim:none"), "none"),
            ("run_set_no_value", ("run", "sweep.json", "--hosts", "null", "--set", "size"), "--set"),
            ("run_set_unknown", ("run", "sweep.json", "--hosts", "null", "--set", "sise=1"), "sise"),
            ("run_set_far", ("run", "sweep.json", "--hosts", "null", "--set", "size=99999999999"), "size"),
            ("run_set_reserved", ("run", "sweep.json", "--hosts", "null", "--set", "port=1"), "port"),
            ("run_timeout", ("run", "sweep.json", "--hosts", "null", "--timeout", "soon"), "--timeout"),
            ("run_share", ("run", "sweep.json", "--hosts", "null", "--share", "3/2"), "--share"),
            ("run_jobs", ("run", "sweep.json", "--hosts", "null", "--jobs", "-1"), "jobs"),
            ("run_seed", ("run", "sweep.json", "--hosts", "null", "--seed", "-1"), "seed"),
            ("compare_none", ("compare",), "results"), ("compare_format", ("compare", "a.jsonl", "--format", "xml"), "format"),
            ("diff_one", ("diff", "a.jsonl"), "new"), ("diff_threshold", ("diff", "a.jsonl", "b.jsonl", "--threshold", "nan"), "threshold"),
            ("diff_confidence", ("diff", "a.jsonl", "b.jsonl", "--confidence", "2"), "confidence"),
            ("explain_point", ("explain", "a.jsonl", "--point", "zzz"), "--point"), ("export_view", ("export", "a.jsonl", "--view", "x"), "view"),
            ("plot_no_x", ("plot", "a.jsonl"), "--x"), ("predict_none", ("predict",), "cluster"),
            ("predict_cluster", ("predict", "--cluster", "none"), "none"), ("predict_verb", ("predict", "--cluster", "cib", "--verb", "sing"), "sing"),
            ("predict_connection", ("predict", "--cluster", "cib", "--connection", "XY"), "XY"),
            ("predict_lanes", ("predict", "--cluster", "cib", "--size", "8", "--pcie_lanes", "3"), "x3"),
            ("predict_gen", ("predict", "--cluster", "cib", "--size", "8", "--pcie_gen", "99"), "99"),
            ("predict_read_over_ud", ("predict", "--cluster", "cib", "--verb", "read"), ""),
            ("reproduce_paper", ("reproduce", "none"), "none"), ("validate_set", ("validate", "none"), "none"),
            ("deploy_none", ("deploy",), "hosts")):
        yield Case(f"usage_verbscope_{name}", ("verbscope", *words), 2, says=says)


def long_values():
    """A value that is longer than any file's name is cut in one line."""
    long = "a" * 5000
    for name, argv in {"fabric": ("send_rate", "--fabric", "sim:" + long), "sweep": ("verbscope", "run", long, "--hosts", "null"),
                       "hosts": ("verbscope", "run", "sweep.json", "--hosts", long), "hosts_file": ("verbscope", "hosts", long),
                       "compare": ("verbscope", "compare", long), "explain": ("verbscope", "explain", long),
                       "diff": ("verbscope", "diff", "a.jsonl", long), "plot": ("verbscope", "plot", long, "--x", "size"),
                       "key": ("verbscope", "plot", "a.jsonl", "--x", long), "report": ("verbscope", "report", long, "-o", "p.html"),
                       "export": ("verbscope", "export", long), "import": ("verbscope", "import", long, "-o", "p.jsonl"),
                       "page": ("verbscope", "report", "a.jsonl", "-o", long), "predict": ("verbscope", "predict", "--cluster", long),
                       "validate": ("verbscope", "validate", long), "rows": ("verbscope", "validate", "--rows", long),
                       "reproduce": ("verbscope", "reproduce", long), "list": ("verbscope", "list", long),
                       "out": ("send_rate", *SIM, "--out_json_file", long), "cores": ("send_rate", *SIM, "--cores", long),
                       "verb": ("qp_scaling", *SIM, "--verb", long)}.items():
        yield Case(f"long_{name}", argv, (1, 2), says=r"aaa\.\.\.")
    yield Case("no_temporary_folder", ("verbscope", "deploy", "--hosts", "localhost"), 1, says='TMPDIR "/none"',
               environment={"TMPDIR": "/none"})


def as_asked():
    """What was asked is what is done, or it is refused."""
    for program in ("atomic_rate", "kv_atomic", "wqe_cache", "qp_scaling", "all_to_all"):
        yield Case(f"window_over_depth_{program}", (program, *SIM, "--window", "256", "--tx_depth", "16"), 2, says="--window 256.*--tx_depth 16")
    yield Case("window_at_depth", ("atomic_rate", *SIM, "--window", "16", "--tx_depth", "16"), 0, prints="atomic_rate")
    for program in ("atomic_rate", "wqe_cache", "kv_atomic"):  # nobody asked for a window: it is what fits
        yield Case(f"usual_window_{program}", (program, *SIM, "--tx_depth", "8", "--out_json_file", "-"), 0, prints='"window":8,')
    yield Case("qp_beside_connections", ("qp_scaling", *SIM, "--connections", "8", "--qp", "4"), 2, says="--qp 4")
    yield Case("visibility_of_gigabytes", ("write_visibility", *SIM, "--size", "2147483648"), 2, says="--size 2147483648: .*16 to 1048576")
    for name, words, says in (("replicas", ("--replicas", "2"), "--replicas 2: expected 1, 3 or 5"), ("list", ("--replicas", "a,,b"), "expected HOST"),
                              ("faults", ("--faults", "flood"), "--faults flood: expected none, random, or a list"),
                              ("faults_alone", ("--replicas", "1", "--faults", "random"), "no majority of 1 replicas"),
                              ("log", ("--log", "disk"), "--log disk: expected dram or file:PATH"), ("file", ("--log", "file:x"), "--log file:x: a simulated machine has no files"),
                              ("heartbeat", ("--heartbeat", "90ms"), "at most half of --election"), ("election", ("--election", "3000s"), "--election 3000 s: at most 600 s")):
        yield Case(f"raft_{name}", ("raft_kv", "--fabric", "sim:cib", *words), 2, says=says)
    yield Case("gbits_alone", ("send_rate", *SIM, "--report_gbits"), 0, prints="Gb/s")
    yield Case("connections_uneven", ("qp_scaling", *SIM, "--connections", "1000", "--threads", "3"), 2, says="give --connections 999 or 1002")
    yield Case("connections_few", ("qp_scaling", *SIM, "--connections", "10", "--clients", "20"), 2, says="give --connections 20, or --clients 10")
    yield Case("connections_deep", ("qp_scaling", *SIM, "--verb", "send", "-c", "UD", "--connections", "10000"), 1, says="fewer QPs per thread")
    yield Case("clients_many", ("write_rate", *SIM, "--clients", "20"), 2, says="give --clients 1, or --qp 20")
    yield Case("connections_alone", ("qp_scaling", *SIM, "--connections", "8"), 0, prints="1 thread, 8 QPs each")
    yield Case("size_without_samples", ("verb_latency", "-s", "65536", "--fabric", "sim:cib", "-D", "20us", "--warmup", "0", "--longest", "20us"), 1, says="no rate within --longest")
    yield Case("all_of_atomics", ("verb_latency", *SIM, "--verb", "fetch_add", "--all"), 2, says="an atomic has 8 bytes")
    for fabric in ("sim:cib", "null"):
        yield Case(f"rdma_cm_{fabric}", ("write_rate", "--fabric", fabric, "-R"), 2, says="only with --fabric verbs")
    yield Case("rdma_cm_UD", ("send_rate", "-R", "-c", "UD"), 2, says="only with --connection RC")
    for name, words, says in (("shares", ("--scans", "60", "--puts", "60"), "--scans 60 --puts 60.*100 %"),
                              ("gets", ("--gets", "99", "--scans", "30"), "--gets 99 --scans 30.*100 %"),
                              ("workers", ("--workers", "1"), "--workers 1.*--threads 1"), ("keys", ("--keys", "3", "--puts", "5"), "--keys 3"),
                              ("many_keys", ("--keys", "99999999999"), "--keys"), ("size", ("--size", "8"), "--size 8"),
                              ("client_threads", ("--client_threads", "1000"), "--client_threads 1000")):
        yield Case(f"ordered_{name}", ("ordered_kv", *SIM, *words), 2, says=says)
    yield Case("more_threads_than_cores", ("send_rate", *SIM, "--threads", "4000"), 2, says="--threads 4000")
    yield Case("iters_and_time", ("send_rate", "--fabric", "sim:cib", "-n", "64", "-D", "1ms"), 2, says="exclude each other")
    yield Case("list_over_depth", ("send_rate", *SIM, "-l", "512", "-t", "16"), 2, says="--post_list 512")
    yield Case("host_of_no_use", ("send_rate", *SIM, "node7"), 2, says="node7")
    yield Case("odd_mtu", ("send_rate", *SIM, "--mtu", "1000"), 2, says="--mtu")
    for name, words, says in (("pkey", ("--pkey_index", "7"), "size of the table of .* is 1"), ("tclass", ("--tclass", "8"), "no GRH"),
                              ("flow_label", ("--flow_label", "1"), "no GRH"), ("flow_label_range", ("--flow_label", "1048576"), "1048575"),
                              ("sl_range", ("--sl", "16"), "15"), ("timeout_range", ("-u", "32"), "31"), ("retry_range", ("--retry_count", "8"), "7"),
                              ("timeout_ud", ("-c", "UD", "-u", "4"), "--qp_timeout 4: .*UD"), ("retry_uc", ("-c", "UC", "--retry_count", "4"), "UC"),
                              ("outs", ("-o", "17"), "allows at most 16"), ("outs_ud", ("-c", "UD", "-o", "2"), "--outs 2: .*UD"),
                              ("flag_value", ("--run_infinitely=2",), "--run_infinitely: expected no value, yes or no"),
                              ("flag_word", ("--all=2",), "--all: expected no value, yes or no"), ("flag_nothing", ("--run_infinitely=",), "--run_infinitely: expected a value"),
                              ("no_host", ("",), "name or address of the server"), ("bw_of_nothing", ("-w", "1", "--header_only"), "without a payload"),
                              ("connection_dc", ("-c", "DC"), "DC: not supported"), ("connection_srd", ("-c", "srd"), "not supported"),
                              ("rnr_ud", ("-c", "UD", "--rnr_timer", "4"), "--rnr_timer 4: .*UD"), ("rnr_retry_range", ("--rnr_retry", "8"), "7"),
                              ("tos_and_tclass", ("-T", "8", "--tclass", "8"), "same field"), ("output", ("--output", "cpu"), "bandwidth"),
                              ("bw_word", ("-w", "fast"), "above 0"), ("rate_nan", ("-y", "nan"), "above 0")):
        yield Case(f"perftest_{name}", ("send_rate", *SIM, *words), 2, says=says)
    for program in ("send_rate", "write_rate", "read_rate"):
        yield Case(f"both_ways_null_{program}", (program, "--fabric", "null", "-b"), 2, says="has no clients")
        yield Case(f"all_header_{program}", (program, *SIM, "-a", "-s", "1"), 2, says="begins with 2")
    yield Case("both_ways_in", ("write_rate", *SIM, "-b", "--direction", "in"), 2, says="both sides post")
    yield Case("both_ways_checked", ("write_rate", *SIM, "-b", "--validate"), 2, says="--validate: .*WRITEs")
    yield Case("immediate_both_ways", ("write_rate", *SIM, "-b", "--write_with_imm"), 2, says="not with --bidirectional")
    yield Case("immediate_window", ("write_rate", *SIM, "--write_with_imm", "--wait", "all", "--window", "4"), 2, says="not with --wait all")
    yield Case("all_over_ud", ("recv_rate", *SIM, "-c", "UD", "-a"), 2, says="--size, at most the MTU")
    yield Case("all_for_ever", ("recv_rate", *SIM, "--run_infinitely", "-a"), 2, says="would never end")
    yield Case("for_ever_counted", ("send_rate", *SIM[:2], "--run_infinitely", "-n", "64"), 2, says="exclude each other")
    yield Case("for_ever_recorded", ("send_rate", *SIM, "--run_infinitely", "--out_json_file", "-"), 2, says="has no record")
    yield Case("for_ever_survey", ("atomic_rate", *SIM[:2], "--probe_slots", "--run_infinitely"), 2, says="ends by itself")
    yield Case("limit_missed", ("send_rate", *SIM, "-y", "1000000"), 1, says="Mops is below --limit_msgrate 1e\\+06")
    yield Case("limit_of_latency", ("verb_latency", *SIM, "-w", "1"), 2, says="has no bandwidth")
    yield Case("two_atomics", ("atomic_rate", *SIM, "-A", "CMP_AND_SWAP", "--verb", "fetch_add"), 2, says="--atomic_type: .*--verb")
    yield Case("no_effect", ("send_rate", *SIM, "-F", "-N", "--out_json_file", "-"), 0, prints='"noPeak":true')
    yield Case("words_of_perftest", ("write_rate", *SIM, "--report_gbits", "--perform_warm_up", "-T", "106", "-z"), 0, prints="simulated Mops")
    yield Case("output_alone", ("write_rate", *SIM, "--output=message_rate"), 0, prints="^[0-9.]+$")
    yield Case("out_json", ("write_rate", *SIM, "--out_json"), 0, prints="simulated Mops", makes=("perftest_out.json",))
    # More than any machine has: the line has the amount, and nothing of it was taken.
    yield Case("gigabytes_counters", ("atomic_rate", *SIM, "--counters", "2147483648", "--stride", "1073741824"), 1,
               says=r"not enough memory: 1e\+09 GB for .* available")
    # A word may be a formula of other options.
    yield Case("run_set_wrong", ("verbscope", "run", "sweep.json", "--hosts", "null", "--set", "size=x"), 1, says='has no option "x"')
    yield Case("gigabytes_payloads", ("write_rate", *SIM, "-s", "2147483648", "-q", "4096"), 1,
               says=r"8\.8e\+03 GB for one list of payloads on each QP")
    yield Case("region_out_of_range", ("read_rate", *SIM, "--region_size", "8796093022208"), 2, says="--region_size")


def bad_files(root_cluster):
    """A file that is not what it should be: status 1, and a line with its name."""
    sweep = {"schema": "verbscope.sweep/1", "benchmark": "send_rate", "vary": {"size": [8]}}
    for name, value in {"not_json": b"{", "nul": b"\0" * 99, "array": b"[]", "no_schema": line({k: v for k, v in sweep.items() if k != "schema"}),
                        "schema": line({**sweep, "schema": "verbscope.sweep/7"}), "benchmark": line({**sweep, "benchmark": "none"}),
                        "key": line({**sweep, "extra": 1}), "vary": line({**sweep, "vary": 7}), "empty_vary": line({**sweep, "vary": {"size": []}}),
                        "option": line({**sweep, "vary": {"sise": [1]}}), "value": line({**sweep, "vary": {"size": ["x"]}}),
                        "range": line({**sweep, "vary": {"size": [-1]}}), "twice": b'{"schema":"verbscope.sweep/1","schema":"x"}',
                        "deep": b"[" * 9999, "many": line({**sweep, "vary": {"size": list(range(300)), "post_list": list(range(1, 129))}}),
                        "reserved": line({**sweep, "fixed": {"port": 1}}), "escape": line({**sweep, ESC: 1}),
                        "repetitions": line({**sweep, "repetitions": -1}), "fabrics": line({**sweep, "fabrics": ["verbs"]}),
                        "fabric": line({**sweep, "fabrics": ["sim5"]}), "cluster": line({**sweep, "fabrics": ["null", "sim:none"]}),
                        "formula": line({**sweep, "fixed": {"qp": "size / 3"}}), "formula_deep": line({**sweep, "fixed": {"qp": "(" * 9999}}),
                        "formula_loop": line({**sweep, "fixed": {"qp": "threads", "threads": "qp"}}),
                        "formula_word": line({**sweep, "fixed": {"qp": "seize / 2"}})}.items():
        yield Case(f"sweep_{name}", ("verbscope", "run", "x.json", "--hosts", "null", "--out", "n.jsonl"), 1, says=r"x\.json", files={"x.json": value})
    for name, value in {"empty": b"", "comment": b"# nobody\n", "option": b"-oProxyCommand=x\n", "key": b"node speed=9\n",
                        "range": b"node[1-99999999]\n", "bracket": b"node[1-\n", "nul": b"no\0de\n", "escape": ESC.encode() + b"\n",
                        "port": b"node ssh_port=99999999\n", "twice": b"node role=client role=client\n", "role": b"node role=king\n"}.items():
        yield Case(f"hosts_{name}", ("verbscope", "hosts", "x.txt"), 1, says=r"x\.txt", files={"x.txt": value})
    yield Case("run_without_device", ("verbscope", "run", "sweep.json", "--hosts", "x.txt", "--out", "n.jsonl"), 1,
               says="host localhost: no RDMA device", files={"x.txt": b"localhost device=none_such0\n"})
    clusters = {"not_json": b"{", "array": b"[]", "schema": line({**root_cluster, "schema": "verbscope.cluster/9"}),
                "no_schema": line({k: v for k, v in root_cluster.items() if k != "schema"}),
                "sweep_schema": line({**root_cluster, "schema": "verbscope.sweep/1"}),
                "no_wire": line({k: v for k, v in root_cluster.items() if k != "wire"}),
                "lanes": line(changed(root_cluster, "wire", "pcie_lanes", "value", 0)),
                "source": line(changed(root_cluster, "wire", "pcie_lanes", "source", "guessed")),
                "mtu": line(changed(root_cluster, "wire", "mtu_bytes", "value", 1000)), "name": line({**root_cluster, "name": 7})}
    for name, value in clusters.items():
        for command, argv in {"predict": ("verbscope", "predict", "--cluster", "./x.json", "--size", "8"),
                              "benchmark": ("send_rate", "--fabric", "sim:./x.json"),
                              "run": ("verbscope", "run", "sweep.json", "--hosts", "sim:./x.json", "--out", "n.jsonl")}.items():
            yield Case(f"cluster_{name}_{command}", argv, 1, says=r"x\.json", files={"x.json": value})
    for name, key in (("host", "host"), ("nic", "nic"), ("fabric", "fabric")):
        value = line({k: v for k, v in root_cluster.items() if k != key})
        yield Case(f"cluster_no_{name}", ("send_rate", "--fabric", "sim:./x.json"), 1, says=r"x\.json", files={"x.json": value})


def imports():
    """Outputs of other tools that are none."""
    head = b" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
    for name, value in (("nothing", b""), ("nul", b"\0" * 4096), ("bytes", bytes(range(256)) * 64), ("open", b"{" * 100_000),
                        ("long", b"x" * 1_000_000), ("nan", head + b" 2 1000 nan nan nan\n"), ("zero", head + b" 0 0 0.00 0.00 0.000000\n"),
                        ("negative", head + b" -2 1000 4.95 4.94 2.588087\n"), ("short", head + b" 2 1000\n"),
                        ("json", b'{"test_info": {"test": "Send_BW_Test"}, "results": {}}'),
                        ("json_of_another", b'{"test_info": {"test": "Sent"}, "results": {"MsgSize": 2, "MsgRate": 1}}'),
                        ("pcm", b"Skt,PCIRdCur,ItoM,ItoMCacheNear,UCRdF,WiL\n0,99999999999999999999,2,3,4,5\n")):
        yield Case(f"import_{name}", ("verbscope", "import", "x.txt", "-o", "n.jsonl"), 1, says=r"x\.txt: nothing to import", files={"x.txt": value})
    yield Case("import_own", ("verbscope", "import", "a.jsonl"), 1, says="needs no import")
    yield Case("import_over_input", ("verbscope", "import", "a.jsonl", "-o", "a.jsonl"), 2, says="an input file")
    yield Case("import_interval", ("verbscope", "import", "a.jsonl", "--interval", "0"), 2, says="--interval")
    yield Case("export_over_text", ("verbscope", "export", "a.jsonl", "-o", "letter.txt"), 2, says="would be overwritten")


def simulations():
    """Options of `verbscope simulate`, and programs that cannot be started: nothing has run."""
    for name, words, says in (
            ("nothing", (), "program 1: expected a program's name"), ("no_name", ("--", "::"), "program 1: expected"),
            ("no_second", ("--", "true", "::"), "program 2: expected"), ("variable", ("--", "A=1"), "program 1: expected"),
            ("node", ("--", "@256", "true"), "@256: expected @NODE"), ("folder", ("--", "@0:none", "true"), "none is no folder"),
            ("unknown", ("--nonsense", "--", "true"), "--nonsense"),
            ("cluster", ("--cluster", "none", "--", "true"), "--cluster: unknown cluster \"none\""),
            ("no_cluster", ("--cluster", "", "--", "true"), "--cluster: expected a value"),
            ("nodes", ("--nodes", "0", "--", "true"), "--nodes: expected a whole number, 1 to 256, got \"0\""),
            ("many_nodes", ("--nodes", "257", "--", "true"), "1 to 256, got \"257\""), ("text_nodes", ("--nodes", "two", "--", "true"), "--nodes: .*got \"two\""),
            ("few_nodes", ("--nodes", "1", "--", "true", "::", "true"), "--nodes 1: a program is on node 1"),
            ("seed", ("--seed", "x", "--", "true"), "--seed: expected a whole number.*got \"x\""), ("negative_seed", ("--seed=-1", "--", "true"), "--seed: .*got \"-1\""),
            ("long_seed", ("--seed", "9" * 20, "--", "true"), "--seed: expected a whole number"),
            ("limit", ("--time_limit", "soon", "--", "true"), "--time_limit: expected a time"), ("no_limit", ("--time_limit", "0", "--", "true"), "--time_limit 0: expected at least 1ms"),
            ("long_limit", ("--time_limit", "1e300s", "--", "true"), "--time_limit: .*longer than"),
            ("silence", ("--silence", "x", "--", "true"), "--silence: expected a time"), ("short_silence", ("--silence", "1us", "--", "true"), "--silence 1us: expected at least 20us"),
            ("gap", ("--start_gap", "x", "--", "true"), "--start_gap: expected a time"), ("negative_gap", ("--start_gap=-1ms", "--", "true"), "--start_gap: .*-1ms"),
            ("output", ("--output", "", "--", "true"), "--output: expected a value"), ("json", ("--json", "folder", "--", "true"), "--json folder: it is a folder")):
        yield Case(f"simulate_{name}", ("verbscope", "simulate", *words), 2, says=says)
    for name, words, says in (
            ("program", ("--", "none_such"), "none_such is not installed"), ("escape_program", ("--", ESC), r"\\x1b.*is not installed"),
            ("text_program", ("--", "./letter.txt"), "cannot start ./letter.txt: Permission denied"), ("folder_program", ("--", "./folder"), "cannot start ./folder"),
            ("output_file", ("--output", "letter.txt", "--", "true"), "--output letter.txt: cannot make this folder"),
            ("output_nowhere", ("--output", "/proc/none", "--", "true"), "--output /proc/none: cannot make"),
            ("json_nowhere", ("--json", "none/x.jsonl", "--", "true"), "cannot write results to none/x.jsonl"),
            ("cluster_file", ("--cluster", "./sweep.json", "--", "true"), r"sweep\.json"),
            ("long_program", ("--", "a" * 5000), r"aaa\.\.\.")):
        yield Case(f"simulate_{name}", ("verbscope", "simulate", *words), 1, says=says)


def all_cases(record, cluster):
    yield from imports()
    yield from bad_results(record)
    yield from outputs()
    yield from streams()
    yield from usage()
    yield from long_values()
    yield from as_asked()
    yield from simulations()
    yield from bad_files(cluster)
