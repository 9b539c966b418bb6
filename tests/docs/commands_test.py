#!/usr/bin/env -S python3 -B
"""Every command that README.md and docs/ show is run, or says that it needs hardware:
commands_test.py BIN [--long] [--list] [--page NAME].

A command is a line of an indented or fenced block whose first word is a program. One whose comment, after ` # `, begins with
"on hardware" needs a device: a benchmark must get as far as to miss it. Those of a block after a line `<!-- not run: WHY -->` are
left alone, as what changes the machine must be. The others run in a folder of their own in which `build` and `configs` are the project's, page by page
and in order, README first: what it writes into results/local the other pages may read. Those in LONG run with --long alone.
Builds and tests, which others run, are only looked up: targets, presets, tests and labels must be there. Figures beside commands are
held against what those print (figures.py)."""

import argparse
import concurrent.futures
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

import figures

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = {"cmake", "ctest", "gnuplot", "make", "man", "perf", "python3", "source", "valgrind"}
# They change the machine or fetch something: no test runs them.
CHANGERS = {"apt", "apt-get", "cpack", "curl", "dnf", "docker", "dpkg", "git", "insmod", "modprobe", "podman", "rpm", "sudo", "yum"}
TIMEOUT = 600  # s of one command
SHELLS = ("", "sh", "bash", "console")  # languages of fenced blocks that are commands; what programs print is ```text
# What takes more than some seconds: by a part of the command; a newline is its end.
LONG = ("verbscope reproduce", "verbscope validate", "verbscope learn", "valgrind", "bench_simulator", "all_active_load", "payload_in", "lookups.json", "lookup_rate",
        "--machines 100", "explain rpc.jsonl\n", "explain threads.jsonl", "explain raft.jsonl",
        "explain results/local/send_grid.jsonl\n")


class Command:
    def __init__(self, page, number, text, not_run):
        self.page, self.number, self.not_run = page, number, not_run
        self.words, _, self.comment = (part.strip() for part in re.sub(r"\s+# ", "\0", text, count=1).partition("\0"))

    def __str__(self):
        return f"{self.page}:{self.number}: {self.words}"

    @property
    def needs_hardware(self):
        return self.comment.startswith("on hardware")

    @property
    def is_long(self):
        return any(part in self.words + "\n" for part in LONG)


def pages(root):
    return ["README.md", *sorted(str(page.relative_to(root)) for page in (root / "docs").glob("*.md"))]


def block_lines(text):
    """(line number, line, whether its block is marked as not run) of what stands in indented or fenced blocks, without the
    indentation."""
    fenced, shell, before_blank, in_block, marked = False, True, True, False, False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("<!-- not run: "):
            marked = True
            continue
        if line.lstrip().startswith("```"):
            fenced = not fenced
            shell = line.strip(" `").split(" ")[0] in SHELLS
            continue
        in_block = not fenced and line.startswith("    ") and (before_blank or in_block)
        if in_block or (fenced and shell):
            yield number, line.strip(), marked
        elif line.strip() and not fenced:
            marked = False
        before_blank = not line.strip()


def commands_of(text, page, programs):
    """The commands of a page; a line that ends in a backslash goes on in the next."""
    out, open_line = [], None
    for number, line, not_run in block_lines(text):
        if open_line is not None:
            number, line = open_line[0], open_line[1] + " " + line
        open_line = (number, line[:-1].rstrip()) if line.endswith("\\") else None
        first = line.split(maxsplit=1)[0] if line else ""
        if open_line is None and (first.startswith(("build/", "./")) or first in programs | TOOLS | CHANGERS):
            out.append(Command(page, number, line, not_run))
    return out


def look_up(words, bins):
    """What is wrong with a build or a test command, by its words; none of them is run."""
    def output_of(*command):
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
        return run.stdout if run.returncode == 0 else ""

    if words[0] == "make":
        return None if output_of("make", "-n", *words[1:]) else "make -n fails"
    if words[0] == "cmake":
        kind = ["--list-presets=build"] if "--build" in words else ["--list-presets"]
        if "--preset" not in words:
            return "a cmake without --preset is not looked up: its block needs a line <!-- not run: WHY --> before it"
        preset = words[words.index("--preset") + 1]
        return None if f'"{preset}"' in output_of("cmake", *kind) else f"no preset {preset}"
    if words[0] == "ctest":
        folder = words[words.index("--test-dir") + 1]
        if folder != "build":
            preset = folder.removeprefix("build-")
            return None if f'"{preset}"' in output_of("cmake", "--list-presets") else f"no preset {preset}"
        rest = words[:words.index("--test-dir")] + words[words.index("--test-dir") + 2:]
        listed = output_of(rest[0], "--test-dir", str(bins.parent), "-N", *rest[1:])
        return None if re.search(r"Total Tests: [1-9]", listed) else "no such test"
    # A test binary, which ctest runs; that of another build may not be here.
    binary = bins.parent / words[0].removeprefix("build/")
    if not binary.exists():
        declared = any(re.search(rf"\({binary.name}\b", listing.read_text()) for listing in (ROOT / "tests").rglob("CMakeLists.txt"))
        return None if declared else "no such test binary"
    listed = output_of(str(binary), "--gtest_list_tests", *words[1:])
    return None if "\n  " in listed else "no case of that name"


def is_looked_up(words):
    return words[0] in ("make", "cmake", "ctest") or words[0].startswith("build/tests/test_")


def run_shell(words, folder, bins):
    return subprocess.run(["bash", "-euo", "pipefail", "-c", words], cwd=folder, stdin=subprocess.DEVNULL,
                          env={"PATH": f"{bins}:/usr/bin:/bin", "HOME": str(folder)}, capture_output=True, text=True, timeout=TIMEOUT)


def wrong_with(command, folder, bins, judge=lambda printed: None):
    """What is wrong with the command, where it runs in `folder`, or with what it prints; None: nothing."""
    parts = [shlex.split(part) for part in command.words.split("&&")]
    if all(is_looked_up(part) for part in parts):
        return next((wrong for wrong in (look_up(part, bins) for part in parts) if wrong), None)
    try:
        run = run_shell(command.words, folder, bins)
    except subprocess.TimeoutExpired:
        return f"not done after {TIMEOUT} s"
    if run.returncode != 0:
        return f"exit status {run.returncode}: {(run.stderr or run.stdout).strip()[-500:]}"
    return judge(run.stdout)


def refused_as_usage(command, folder, bins):
    """What a benchmark that needs a device finds wrong with its command line, before it looks for one; None: nothing."""
    if not command.words.startswith("build/bin/") or command.words.startswith("build/bin/verbscope "):
        return None
    run = run_shell(f"{command.words} --timeout 1s", folder, bins)
    return f"refused: {run.stderr.strip()}" if run.returncode == 2 else None


def make_place(folder, bins):
    """What the pages take for granted where their commands are given."""
    (folder / "results/local").mkdir(parents=True)
    (folder / "build").symlink_to(bins.parent)
    for name in ("configs", "docs", "tests", "Makefile.cluster"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "hosts.txt").write_text("localhost\n")
    # Two runs of one sweep.
    for name in ("base", "new"):
        subprocess.run([bins / "send_rate", "--fabric", "sim:cib", "-D", "50us", "--warmup", "50us", "--out_json_file",
                        folder / f"{name}.jsonl"], check=True, stdout=subprocess.DEVNULL, timeout=60)


def run_page(text, commands, tables, folder, bins, long_too):
    """A line for each command, and for each figure of the tables: (seconds, what became of it, the command)."""
    out = []

    def run(command, judge):
        began = time.monotonic()
        wrong = wrong_with(command, folder, bins, judge)
        out.append((time.monotonic() - began, f"WRONG: {wrong}" if wrong else "ok", command))

    for command in commands:
        if command.needs_hardware:
            wrong = refused_as_usage(command, folder, bins)
            out.append((0, f"WRONG: {wrong}" if wrong else "hardware", command))
        elif command.not_run:
            out.append((0, "not run", command))
        elif command.words.split()[0] in CHANGERS:
            out.append((0, "WRONG: it changes the machine: its block needs a line <!-- not run: WHY --> before it", command))
        elif command.is_long and not long_too:
            out.append((0, "left to test-long", command))
        else:
            run(command, lambda printed, it=command: figures.wrong_in_section(text, it.number, it.words, printed))
    for figure in tables:
        run(figure, figure.wrong)
    return out


PLANTED = f"""
{figures.MARK}

## A section

    build/bin/send_rate --nonsense
    build/bin/send_rate -d mlx5_0 --nonsense   # on hardware
    make -f Makefile.cluster nonsense
    ctest --test-dir build -R no_such_test
    apt-get install nothing
    build/bin/send_rate --fabric sim:cib -D 50us --warmup 50us --seed 1

<!-- not run: it is planted -->

    apt-get install nothing

| `send_rate --fabric sim:cib -D 50us` | Mops |
|---|---|
| `--warmup 50us` | 0.01 |
| `--warmup 50us`, `--warmup 60us` | 0.01 |
| `--warmup 50us` | 0.01, 0.02 |
"""


def planted_are_found(folder, bins):
    """The test can fail: it finds each of the planted commands and figures wrong but for the one that is marked."""
    programs = {"send_rate"}
    lines = run_page(PLANTED, commands_of(PLANTED, "planted", programs), figures.figures_of(PLANTED, "planted", programs), folder,
                     bins, False)
    return ["WRONG" in what for _, what, _ in lines] == [True] * 6 + [False] + [True] * 5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--long", action="store_true", help="run those that take long, too")
    parser.add_argument("--list", action="store_true", help="print the commands and what is done with them, run none")
    parser.add_argument("--page", help="only this one, such as docs/choosing.md")
    options = parser.parse_args()
    bins = options.bin.resolve()
    programs = {program.name for program in bins.iterdir()}
    wanted = [page for page in pages(ROOT) if options.page in (None, page)]
    texts = {page: (ROOT / page).read_text() for page in wanted}
    commands = {page: commands_of(text, page, programs) for page, text in texts.items()}
    if options.list:
        for command in sum(commands.values(), []):
            kind = "hardware" if command.needs_hardware else "not run" if command.not_run else "long" if command.is_long else ""
            print(f"{kind:8} ", command)
        return 0
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(2) as pool:
        folder = pathlib.Path(name)
        make_place(folder, bins)
        if not planted_are_found(folder, bins):
            print("planted offences are not found")
            return 1

        def run_whole(page):
            tables = figures.figures_of(texts[page], page, programs)
            return run_page(texts[page], commands[page], tables, folder, bins, options.long)

        done = run_whole("README.md") if "README.md" in texts else []
        for lines in pool.map(run_whole, [page for page in texts if page != "README.md"]):
            done += lines
    for seconds, what, command in done:
        print(f"{seconds:5.1f} s  {what:17}  {command}")
    wrong = sum(what.startswith("WRONG") for _, what, _ in done)
    print(f"{len(done)} commands, {wrong} wrong; {sum(seconds for seconds, _, _ in done):.0f} s")
    return 1 if wrong or not done else 0


if __name__ == "__main__":
    sys.exit(main())
