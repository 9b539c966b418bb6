#!/usr/bin/python3
"""Hostile command lines and files: hostile_test.py BIN ROOT [--drawn COUNT] [--seed N] [WORD ...] runs the cases of cases.py, or
those whose name has a WORD, and the scenes of scenes.py; with --drawn COUNT cases of drawn.py instead.

What holds of every case, whatever it is:
- it ends by itself, with the exit status that the table has: 0, 1 (what failed), 2 (wrong usage), never by a signal;
- standard error has a few lines of printable text, none of them long or in the words of a library, each of which begins
  with the program's name; when the status is not 0 there is at least one, and it names what the table says;
- neither standard output nor a file that is written has a control character, other than line ends;
- it takes no more memory than MOST_BYTES, unless it says so;
- no file that was there is changed, no file is made that the table does not name, and no temporary file is left.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import cases
import drawn
import scenes

MOST_BYTES = 1_500_000_000
MOST_LINES = 12  # ten warnings, their number, an error
LONGEST_LINE = 2100
# What libraries and tools say of an error in words of their own.
FOREIGN = re.compile(r"filesystem error|shared object|Warning: empty|gnuplot>|line \d+: .*undefined|basic_string|std::|\[json\.|terminate called")
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def contents(folder):
    """Every file below the folder with its bytes."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def control_in(data):
    """The first control character of a text, if it has one; a carriage return may stand before a line's end."""
    return CONTROL.search(data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\t", " "))


def faults(case, status, out, err, before, after, temporary):
    """What does not hold, a line each."""
    lines = err.decode("utf-8", "replace").splitlines()
    program = case.argv[0]
    if status not in (case.status if isinstance(case.status, tuple) else (case.status,)):
        yield f"status {status} instead of {case.status}"
    if len(lines) > MOST_LINES:
        yield f"{len(lines)} lines on standard error"
    if any(not line.startswith(program + ": ") for line in lines):
        yield "a line on standard error does not begin with the program's name"
    if any(len(line) > LONGEST_LINE or FOREIGN.search(line) for line in lines):
        yield "a line on standard error is long, or in a library's words"
    if status != 0 and not lines and not case.silent:
        yield "nothing on standard error"
    if control_in(err) or control_in(out):
        yield "a control character"
    if case.says and not re.search(case.says, err.decode("utf-8", "replace")):
        yield f"standard error does not say /{case.says}/"
    if case.prints and not re.search(case.prints, out.decode("utf-8", "replace")):
        yield f"standard output does not have /{case.prints}/"
    for name, data in before.items():
        if after.get(name) != data and name not in case.makes:
            yield f"{name} was changed"
    for name in after.keys() - before.keys():
        if not case.loose and name not in case.makes and not name.endswith(".explain"):  # the runs that explain keeps
            yield f"{name} was made"
        elif name.endswith((".csv", ".jsonl")) and control_in(after[name]):
            yield f"{name} has a control character"
    if status == 0 and case.status == 0:
        for name in case.makes:
            if not after.get(name):
                yield f"{name} was not made"
    if case.judge:
        yield from case.judge(after)
    if temporary:
        yield f"left behind: {temporary}"


def run_process(argv, folder, environment):
    """What it printed, its exit status or why there is none, and the most memory that it or a child of it had, in bytes."""
    with subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as child:
        late = threading.Timer(60, child.kill)
        late.start()
        errors = []
        reader = threading.Thread(target=lambda: errors.append(child.stderr.read()))
        reader.start()
        out = child.stdout.read()
        reader.join()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        in_time = late.is_alive()
        late.cancel()
    return out, errors[0], child.returncode if in_time else "none after 60 s", usage.ru_maxrss * 1024


def run_case(case, binaries, fixtures):
    """Runs it in a folder of its own, which has the fixtures; returns what is wrong, with what it said."""
    with tempfile.TemporaryDirectory() as name:
        folder, scratch = pathlib.Path(name) / "w", pathlib.Path(name) / "tmp"
        shutil.copytree(fixtures, folder, symlinks=True)
        scratch.mkdir()
        for path, data in case.files.items():
            (folder / path).write_bytes(data)
        before = contents(folder)
        argv = [str(binaries / case.argv[0]), *case.argv[1:]]
        if case.shell or case.blocks:
            limit = f"ulimit -f {case.blocks}; " if case.blocks else ""
            argv = ["/bin/sh", "-c", limit + 'exec "$@" ' + case.shell, "sh", *argv]
        out, err, status, most = run_process(argv, folder, {**os.environ, "TMPDIR": str(scratch), **case.environment})
        wrong = list(faults(case, status, out, err, before, contents(folder), [path.name for path in scratch.iterdir()]))
        if most > MOST_BYTES and b"memory" not in err:
            wrong.append(f"it took {most / 1e9:.1f} GB without a word")
        return [f"{case.name}: {each}" for each in wrong] + ([f"    {' '.join(case.argv)[:300]}\n    {err[:600]!r}"] if wrong else [])


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("root", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("words", nargs="*")
    parser.add_argument("--drawn", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def cases_of(asked, record):
    if asked.drawn:
        run = lambda argv: subprocess.run(argv, check=True, capture_output=True, text=True).stdout
        return drawn.drawn_cases(asked.seed, asked.drawn, record, asked.binaries, asked.root, run)
    return cases.all_cases(record, json.loads((asked.root / "configs/clusters/cib.json").read_text()))


def main():
    asked = arguments()
    binaries, root, words = asked.binaries, asked.root, asked.words
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        fixtures = pathlib.Path(name) / "fixtures"
        fixtures.mkdir()
        record = cases.make_fixtures(fixtures, binaries, root)
        table = [case for case in cases_of(asked, record) if not words or any(word in case.name for word in words)]
        assert words or asked.drawn or len(table) >= 300, len(table)
        names = [case.name for case in table]
        assert len(set(names)) == len(names), "names repeat: " + " ".join(sorted({n for n in names if names.count(n) > 1}))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = list(pool.map(lambda case: run_case(case, binaries, fixtures), table))
        bad = [line for result in results for line in result]
        failed = sum(1 for result in results if result)
        for scene in scenes.all_scenes() if not asked.drawn else ():
            if words and not any(word in scene.__name__ for word in words):
                continue
            table.append(scene)
            try:
                scene(binaries, fixtures)
            except AssertionError as error:
                bad.append(f"{scene.__name__}: {error}")
                failed += 1
    for line in bad:
        print(line)
    print(f"{len(table) - failed} passed, {failed} failed, {time.monotonic() - begin:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
