#!/usr/bin/python3
"""Figures for papers: plot_test.py BIN ROOT runs the two commands of docs/analysis.md, shortened, and reads what they draw.

Exits with 77 (skipped) where there is no gnuplot.
"""

import csv
import io
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

SHORT = ("--set", "duration=300us", "--jobs", "2")  # with less, receivers that drop messages have no steady rate


def documented(root):
    """The two commands, as the page has them: the words of each."""
    lines = [line.strip() for line in (root / "docs/analysis.md").read_text().splitlines()]
    run = next(line for line in lines if line.startswith("build/bin/verbscope run payload_in"))
    plot = next(line for line in lines if line.startswith("build/bin/verbscope plot results/local/payload_in.jsonl"))
    return shlex.split(run, comments=True)[1:], shlex.split(plot, comments=True)[1:]


def rows_of(path):
    return list(csv.DictReader(io.StringIO(path.read_text(), newline="")))


def texts_of(svg):
    """(x, y, size, text) of every text of a figure; y is that of its base line."""
    found = re.findall(r'translate\(([\d.]+),([\d.]+)\)"[^>]*font-size="([\d.]+)"[^>]*>\s*<text>([^<]*)</text>', svg)
    return [(float(x), float(y), float(size), text.strip()) for x, y, size, text in found]


class Plots:
    def __init__(self, binaries, folder, results):
        self.verbscope, self.folder, self.results = binaries / "verbscope", folder, results

    def run(self, *words):
        return subprocess.run([self.verbscope, "plot", self.results, *words], check=False, capture_output=True, text=True, timeout=120)

    def figure(self, *words, name="f.svg"):
        done = self.run("--x", "size", "-o", self.folder / name, *words)
        assert done.returncode == 0, done
        return (self.folder / name).read_text(errors="replace")


def check_figure(svg):
    """Six curves with their names, units at both axes, a mark for what is published, bounds, and that it is simulated."""
    for text in ("cib READ", "cx3 READ", "cib WRITE", "cx3 WRITE", "cib SEND", "cx3 SEND", "payload (bytes)", "rate (Mops)",
                 "SIMULATED: cib, cx3", "published, calibrated", "published, predicted", "bound by PCIe and wire"):
        assert text in svg, text
    assert not re.search(r">[^<]*\b[0-9a-f]{8}\b[^<]*<", svg), "an identity is in the figure"


def check_legend_is_clear(svg):
    """The entries of the legend stand clear below the title of the horizontal axis, within the figure, and not on each other.

    Letters reach three quarters of their size above the base line and one quarter below; half their size is a wide average."""
    width, height = map(float, re.search(r'viewBox="0 0 (\d+) (\d+)"', svg).groups())
    texts = texts_of(svg)
    axis = next(y + size / 4 for _, y, size, text in texts if text == "payload (bytes)")
    entries = [(x, y, size, text) for x, y, size, text in texts if re.match(r"(cib|cx3) |published|bound by", text)]
    assert len(entries) == 9, entries
    for x, y, size, text in entries:
        assert axis < y - 0.75 * size and y + size / 4 <= height and x + len(text) * size / 2 <= width, (axis, x, y, size, text)
        for other_x, other_y, _, other in entries:
            beside = x + len(text) * size / 2 <= other_x or other_x + len(other) * size / 2 <= x
            assert text == other or beside or abs(y - other_y) >= 0.9 * size, (text, other)


def check_data(folder):
    """The data beside the figure: 6 curves of 8 payloads, and what is published of them."""
    rows = rows_of(folder / "payload_in.csv")
    assert len(rows) == 6 * 8, len(rows)
    # Table 4: READs of up to 64 bytes on cib reach 121.6 Mops, a row that the simulator was fitted to.
    read = {int(float(row["size"])): row for row in rows if row["curve"] == "cib READ"}
    assert read[64]["published"] == "121.6" and read[64]["published_use"] == "calibration", read[64]
    assert read[256]["published"] == "", read[256]
    assert all(float(row["low"]) <= float(row["rate_mops"]) <= float(row["high"]) for row in rows)
    assert all(row["simulated"] == "true" for row in rows)


def check_script_draws_the_same(folder):
    before = (folder / "payload_in.svg").read_text()
    (folder / "payload_in.svg").unlink()
    subprocess.run(["gnuplot", "payload_in.gp"], cwd=folder, check=True, timeout=60)
    assert (folder / "payload_in.svg").read_text() == before, "the script draws another figure"


def check_options(plots):
    narrowed = plots.figure("--where", "label=READ", "--where", "fabric=cib")
    assert "SIMULATED: cib" in narrowed and "WRITE" not in narrowed
    assert "cx3" not in narrowed
    assert "published, calibrated" in narrowed and "published, predicted" not in narrowed
    bare = plots.figure("--no_bounds", "--no_published")
    assert "published" not in bare and "bound by" not in bare and "SIMULATED" in bare
    titled = plots.figure("--title", "Inbound", "--x_title", "bytes", "--y_title", "million a second", "--size", "3.3x2.6", "--font", "serif,8")
    for text in ("Inbound - SIMULATED", ">bytes<", ">million a second<", 'font-family="serif"', 'width="317" height="250"'):
        assert text in titled, text
    column = plots.figure("--log", "--size", "3.3x3", "--font", "serif,8")
    check_legend_is_clear(column)
    script = plots.figure("--log", "--log_y") and (plots.folder / "f.gp").read_text()
    assert "set logscale x 2" in script and "set logscale y 10" in script
    plots.figure(name="f.pdf")
    assert (plots.folder / "f.pdf").read_bytes().startswith(b"%PDF")


def setting(script, what):
    """The two ends of `set WHAT [low:high]`."""
    low, high = re.search(rf"set {what} \[([^:]+):([^\]]+)\]", script).groups()
    return float(low), float(high)


def check_axes(plots):
    """Geometric payloads have a logarithmic axis with its ticks at the payloads; a linear one does not begin below 0."""
    plots.figure()
    script = (plots.folder / "f.gp").read_text()
    assert "set logscale x 2" in script and "'16' 16" in script and "'2k' 2048" in script, script
    assert setting(script, "xrange")[0] > 8 and setting(script, "xrange")[1] < 4096, script
    plots.figure("--linear")
    script = (plots.folder / "f.gp").read_text()
    assert "logscale" not in script and setting(script, "xrange")[0] >= 0, script


def check_column(plots):
    """A figure of a paper's column keeps a third of its height for the curves, and its smallest text is 7 points high."""
    svg = plots.figure("--size", "3.3x2.5")
    check_legend_is_clear(svg)
    script = (plots.folder / "f.gp").read_text()
    top, bottom = (float(re.search(rf"set {side}margin at screen ([\d.]+)", script).group(1)) for side in "tb")
    assert top - bottom > 0.33, (top, bottom)
    smallest = min(size for *_, size, _ in texts_of(svg)) * 72 / 96
    assert smallest >= 7, smallest


def check_causes(plots):
    """Inbound READs of cib are limited by the outbound wire from 128 bytes on: payload and header of 128 B in 121.6 Mops
    would be more than its 56 Gb/s port carries for two ports."""
    svg = plots.figure("--where", "label=READ", "--where", "fabric=cib")
    assert "bends: wire bandwidth, outbound" in svg, svg
    assert "bends:" not in plots.figure("--where", "label=READ", "--where", "fabric=cib", "--no_causes")


def check_keys(plots):
    plots.figure("--y", "gbps")
    assert "bandwidth (Gb/s)" in (plots.folder / "f.svg").read_text()
    wrong = plots.run("--x", "size", "-y", "gpbs", "-o", plots.folder / "none.svg")
    assert wrong.returncode == 2 and "did you mean gbps?" in wrong.stderr and "rate_mops (mops)" in wrong.stderr, wrong
    wrong = plots.run("--x", "sizes", "-o", plots.folder / "none.svg")
    assert wrong.returncode == 2 and "size (payload)" in wrong.stderr and "-y" not in wrong.stderr, wrong


def check_gnuplot_is_quiet(plots):
    """A single point, and nothing but zeros, are figures; a logarithmic axis with 0 is refused by verbscope itself."""
    narrow = ("--where", "label=READ", "--where", "fabric=cib", "--where", "size=16")
    for words in (narrow, ("-y", "lost", "--where", "label=READ"), (*narrow, "-y", "lost")):
        done = plots.run("--x", "size", "-o", plots.folder / "quiet.svg", *words)
        assert done.returncode == 0 and done.stderr == "", done
    refused = plots.run("--x", "size", "-y", "lost", "--log_y", "--where", "label=READ", "-o", plots.folder / "none.svg")
    assert refused.returncode == 2 and "--log_y: lost is 0" in refused.stderr and "gnuplot" not in refused.stderr, refused


def check_hostile_name(plots):
    """A newline in a name leaves the script's comment a comment: gnuplot runs a line that begins with "!" in a shell."""
    name = "a\n!touch broken\n'#.svg"
    plots.figure(name=name)
    before = (plots.folder / name).read_text()
    (plots.folder / name).unlink()
    subprocess.run(["gnuplot", name.replace(".svg", ".gp")], cwd=plots.folder, check=True, timeout=60)
    assert not (plots.folder / "broken").exists(), "the name of the output was run"
    assert (plots.folder / name).read_text() == before, "the script draws into another file"


def check_files(plots):
    """The points of two files are two curves, with the files' names."""
    (plots.folder / "new.jsonl").write_bytes(plots.results.read_bytes())
    done = subprocess.run([plots.verbscope, "plot", plots.results, plots.folder / "new.jsonl", "-x", "size", "--where", "label=READ",
                           "--where", "fabric=cib", "-o", plots.folder / "both.svg"], check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done
    assert {row["curve"] for row in rows_of(plots.folder / "both.csv")} == {"payload_in READ", "new READ"}


def check_latency(plots, binaries):
    """A latency benchmark is drawn by its median without being asked."""
    results = plots.folder / "latency.jsonl"
    subprocess.run([binaries / "verb_latency", "--fabric", "sim:cib", "--all", "-s", "64", "-D", "20us", "--warmup", "10us",
                    "--out_json_file", results], check=True, stdout=subprocess.DEVNULL, timeout=120)
    subprocess.run([plots.verbscope, "plot", results, "-x", "payload", "-o", plots.folder / "latency.svg"], check=True,
                   stdout=subprocess.DEVNULL, timeout=60)
    assert "median latency (ns)" in (plots.folder / "latency.svg").read_text()


def check_refusals(plots):
    refused = plots.run("--x", "size", "--where", "label=PUT", "-o", plots.folder / "none.svg")
    assert refused.returncode == 2 and "known values: READ, SEND, WRITE" in refused.stderr, refused
    refused = plots.run("--x", "size", "--size", "3x", "-o", plots.folder / "none.svg")
    assert refused.returncode == 2 and "--size" in refused.stderr, refused
    assert not list(plots.folder.glob("none*"))
    (plots.folder / "own.csv").write_text("mine\n")
    refused = plots.run("--x", "size", "-o", plots.folder / "own.svg")
    assert refused.returncode == 2 and "own.csv" in refused.stderr and "would be overwritten" in refused.stderr, refused
    assert (plots.folder / "own.csv").read_text() == "mine\n" and not (plots.folder / "own.svg").exists()


def main():
    binaries, root = map(pathlib.Path, sys.argv[1:3])
    if not shutil.which("gnuplot"):
        print("skipped: there is no gnuplot-nox")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run, plot = documented(root)
        results = folder / "payload_in.jsonl"
        subprocess.run([binaries / "verbscope", *run, "--out", results, *SHORT], check=True, stdout=subprocess.DEVNULL, timeout=240)
        places = {"results/local/payload_in.jsonl": results, "payload_in.svg": folder / "payload_in.svg"}
        subprocess.run([binaries / "verbscope", *(places.get(word, word) for word in plot)], check=True, stdout=subprocess.DEVNULL, timeout=60)
        svg = (folder / "payload_in.svg").read_text()
        check_figure(svg)
        check_legend_is_clear(svg)
        check_data(folder)
        check_script_draws_the_same(folder)
        plots = Plots(binaries, folder, results)
        check_options(plots)
        check_axes(plots)
        check_column(plots)
        check_causes(plots)
        check_keys(plots)
        check_gnuplot_is_quiet(plots)
        check_hostile_name(plots)
        check_files(plots)
        check_latency(plots, binaries)
        check_refusals(plots)
    print("1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
