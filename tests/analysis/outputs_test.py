#!/usr/bin/python3
"""The views of records for other tools: outputs_test.py BIN ROOT runs a small sweep and reads every view and figure of it.

Exits with 77 (skipped) where there is no gnuplot or no matplotlib.
"""

import csv
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SWEEP = {"schema": "verbscope.sweep/1", "benchmark": "send_rate", "vary": {"size": [16, 32, 60]},
         "fixed": {"connection": "UD", "inline_size": 60, "duration": "50us", "warmup": "50us"}}


def plot_times(folder, verbscope):
    """A time is plotted by its name in the sweep and by its key in the record: one curve through both points."""
    sweep = {"schema": "verbscope.sweep/1", "benchmark": "send_rate", "vary": {"duration": ["20us", "50us"]}}
    (folder / "times.json").write_text(json.dumps(sweep))
    verbscope("run", folder / "times.json", "--hosts", "sim:cib", "--out", folder / "times.jsonl")
    for name in ("duration", "duration_s"):
        verbscope("plot", folder / "times.jsonl", "--x", name, "-o", folder / "times.svg")
        figure = (folder / "times.svg").read_text()
        assert ">duration (s)<" in figure and figure.count("SIMULATED") == 1, figure


def plot_repetitions(folder, results, verbscope):
    """Of repetitions the figure has the mean and its interval, in whatever order they ran: one point for each x, left to right."""
    record = json.loads(results.read_text().splitlines()[0])
    with (folder / "repeated.jsonl").open("w") as out:
        for size, rate, repetition in [(32, 30, 0), (16, 10, 0), (16, 14, 1), (32, 30, 1), (16, 12, 2), (32, 30, 2)]:
            record["config"]["size"] = record["config"]["point"]["params"]["size"] = size
            record["config"]["point"]["repetition"] = repetition
            record["result"]["rate_mops"] = rate
            record["prediction"] = None
            out.write(json.dumps(record) + "\n")
    seen = folder / "script"
    fake = folder / "fake"
    fake.mkdir()
    (fake / "gnuplot").write_text(f"#!/bin/sh\nexec cat > {seen}\n")
    (fake / "gnuplot").chmod(0o755)
    subprocess.run([verbscope, "plot", folder / "repeated.jsonl", "--x", "size", "-o", folder / "repeated.svg"], check=False,
                   capture_output=True, timeout=120, env={**os.environ, "PATH": f"{fake}:{os.environ['PATH']}"})
    script = seen.read_text()
    rows = [[float(word) for word in line.split()] for line in script.split("$points0 << EOD\n")[1].split("EOD")[0].splitlines()]
    # 10, 14 and 12 have a mean of 12 and a standard error of 2 / sqrt(3); t(0.975; 2) of the tables is 4.302653.
    reach = 4.302653 * 2 / 3**0.5
    for row, expected in zip(rows, [[16, 12, 12 - reach, 12 + reach], [32, 30, 30, 30]], strict=True):
        assert all(abs(a - b) < 1e-5 for a, b in zip(row, expected, strict=True)), (row, expected)
    assert "1:2:3:4 with yerrorlines" in script, script
    subprocess.run([verbscope, "plot", folder / "repeated.jsonl", "--x", "size", "-o", folder / "repeated.svg"], check=True,
                   capture_output=True, timeout=120)


def without_gnuplot(binaries, results, folder):
    """The figure that was there before stays, and none is begun that is not there yet."""
    before = (folder / "p.svg").read_bytes()
    for figure in (folder / "p.svg", folder / "new.svg"):
        refused = subprocess.run([binaries / "verbscope", "plot", results, "--x", "size", "-o", figure], check=False,
                                 capture_output=True, text=True, timeout=120, env={**os.environ, "PATH": str(folder)})
        assert refused.returncode == 1 and "gnuplot is not installed" in refused.stderr, refused
    assert (folder / "p.svg").read_bytes() == before
    assert not list(folder.glob("new.svg*")) and not list(folder.glob("*.part"))


def main():
    binaries, root = map(pathlib.Path, sys.argv[1:3])
    try:
        import matplotlib  # noqa: F401  pylint: disable=unused-import,import-outside-toplevel
    except ImportError:
        matplotlib = None
    if matplotlib is None or not shutil.which("gnuplot"):
        print("skipped: there is no gnuplot-nox or no python3-matplotlib")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        results = folder / "r.jsonl"
        (folder / "sweep.json").write_text(json.dumps(SWEEP))

        def verbscope(*arguments):
            return subprocess.run([binaries / "verbscope", *arguments], check=True, capture_output=True, text=True,
                                  timeout=120).stdout

        verbscope("run", folder / "sweep.json", "--hosts", "sim:cib", "--out", results)
        records = [json.loads(line) for line in results.read_text().splitlines()]
        rates = [record["result"]["rate_mops"] for record in records]

        # A document has a key a line; documents follow each other.
        text, perftest = verbscope("export", results, "--view", "perftest"), []
        assert len([line for line in text.splitlines() if line.startswith('"BW_average": ')]) == len(records)
        while text:
            one, end = json.JSONDecoder().raw_decode(text)
            perftest.append(one)
            text = text[end:].lstrip()
        assert [one["results"]["MsgSize"] for one in perftest] == [16, 32, 60]
        for one, rate in zip(perftest, rates):
            assert abs(one["results"]["MsgRate"] - rate) <= 0.5e-6
            assert abs(one["results"]["BW_average"] - rate * 1e6 * one["results"]["MsgSize"] / 2**20) <= 0.0051
            assert one["test_info"]["Connection_type"] == "UD" and one["results"]["simulated"] is True
            assert one["test_info"]["test"].startswith("Send_") and one["test_info"]["Device"] == "sim:cib"
        exported = folder / "records.csv"
        assert verbscope("export", results, "--view", "csv", "-o", exported) == ""
        assert exported.read_bytes().decode() == subprocess.run([binaries / "verbscope", "export", results, "--view", "csv"], check=True,
                                                      capture_output=True, timeout=120).stdout.decode()
        # A reader that has enough is no failure that anybody has to read of.
        piped = subprocess.run(["bash", "-c", '"$0" export "$1" --all | head -c 1', binaries / "verbscope", results], check=True,
                               capture_output=True, timeout=120)
        assert piped.stderr == b"", piped.stderr

        rows = list(csv.DictReader(io.StringIO(verbscope("export", results, "--view", "csv"), newline="")))
        assert [float(row["result.rate_mops"]) for row in rows] == rates
        assert {"sweep", "label"} <= set(rows[0])
        flat = [json.loads(line) for line in verbscope("export", results, "--view", "jsonl").splitlines()]
        assert [one["result.rate_mops"] for one in flat] == rates and flat[0]["config.connection"] == "UD"
        compared = list(csv.DictReader(io.StringIO(verbscope("compare", results, "--format", "csv"), newline="")))
        assert [float(row["rate_mops"]) for row in compared] == rates

        verbscope("plot", results, "--x", "size", "-o", folder / "p.svg")
        figure = (folder / "p.svg").read_text()
        # One thread posts a tenth of what PCIe allows: the bound is beyond the figure, and so it is not in the legend.
        assert "SIMULATED" in figure and "bound by PCIe and wire" not in figure, figure
        verbscope("plot", results, "--x", "size", "-o", folder / "p.pdf")
        assert (folder / "p.pdf").read_bytes().startswith(b"%PDF")
        plot_times(folder, verbscope)
        plot_repetitions(folder, results, binaries / "verbscope")
        command = [binaries / "verbscope", "plot", results, "--x", "size", "-o", folder / "no folder/p.svg"]
        refused = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
        assert refused.returncode == 1 and refused.stdout == "", refused
        assert refused.stderr.count("\n") == 1 and "no folder/p.svg" in refused.stderr, refused
        (folder / "folder.svg").mkdir()
        command[-1] = folder / "folder.svg"
        refused = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
        assert refused.returncode == 2 and "folder.svg: it is a folder" in refused.stderr, refused
        without_gnuplot(binaries, results, folder)
        subprocess.run([root / "docs/examples/plot_records.py", results, "size", folder / "p.png"], check=True, timeout=120)
        assert (folder / "p.png").read_bytes().startswith(b"\x89PNG")
    print("1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
