"""Runs points on simulated clusters, and asks `verbscope explain` about them. Results stay in a folder: a script that is
started again goes on where it stopped."""

import hashlib
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/records"))
from command_lines import add_arguments, as_table, as_words  # noqa: E402

PROFILES = ROOT / "configs/clusters"
LONGEST = 900  # seconds of a run, on a machine that has other work as well


class Failed(Exception):
    """A program calls its point failed, or refuses its options (`refused`)."""

    def __init__(self, reason, refused=False):
        super().__init__(reason)
        self.refused = refused


def of_command(command):
    """(cluster, benchmark, options) of a command that explain prints."""
    words = shlex.split(command)
    table = as_table(words[1:])
    fabric = table.pop("--fabric")[0]
    for name in ("--sim_threads", "--out_json_file"):
        table.pop(name, None)
    return fabric.removeprefix("sim:"), pathlib.Path(words[0]).name, as_words(table)


class Lab:
    def __init__(self, binaries, folder):
        self.binaries, self.folder = binaries, folder

    def _kept(self, command, suffix):
        """The file of the folder that has what this command brings, with this build of its program."""
        key = hashlib.sha1(f"{[str(word) for word in command]} {pathlib.Path(command[0]).stat().st_mtime}".encode()).hexdigest()
        return self.folder / f"{key}{suffix}"

    def run(self, cluster, benchmark, options, profile=None):
        """The results file of one run on the cluster, or on another profile. One that is there is taken."""
        command = [self.binaries / benchmark, "--fabric", f"sim:{profile or cluster}", "--sim_threads", "1", *options]
        out = self._kept(command, ".jsonl")
        if not out.exists():
            part = out.with_suffix(f".{threading.get_ident()}")  # an interrupted run leaves nothing under the final name
            part.unlink(missing_ok=True)
            try:
                ran = subprocess.run([*command, "--out_json_file", part], capture_output=True, text=True, timeout=LONGEST, check=False)
            except subprocess.TimeoutExpired:
                part.unlink(missing_ok=True)
                raise Failed(f"no result within {LONGEST} s") from None
            if not part.exists():
                reason = ran.stderr.strip().replace("\n", " ")
                part.write_text(json.dumps({"status": "failed", "reason": reason, "refused": ran.returncode == 2}) + "\n")
            part.rename(out)
        record = self.record(out)
        if record["status"] != "ok":
            raise Failed(record["reason"], record.get("refused", False))
        return out

    @staticmethod
    def record(results):
        return json.loads(pathlib.Path(results).read_text().splitlines()[-1])

    def rate(self, *run, **how):
        return self.record(self.run(*run, **how))["result"]["rate_mops"]

    def explain_all(self, results, *options):
        """What `explain` prints of each point of a file."""
        command = [self.binaries / "verbscope", "explain", "--json", *options, results]
        out = self._kept(command, ".explained")
        if not out.exists():
            ran = subprocess.run(command, capture_output=True, text=True, check=True)
            part = out.with_suffix(f".{threading.get_ident()}")
            part.write_text(ran.stdout)
            part.rename(out)
        return json.loads(out.read_text())

    def explain(self, results, *options):
        """What it prints of the only one."""
        return self.explain_all(results, *options)[0]


def arguments(parser, count):
    """The arguments that every script here takes."""
    add_arguments(parser, count, jobs=2)
    parser.add_argument("--budget", default=[], type=lambda word: ["--budget", word], help="that of explain (default: its own)")
    parser.add_argument("--folder", type=pathlib.Path, help="keep results here, and take those that are there")


@contextmanager
def folder_of(asked):
    """The folder that --folder names, or one that is removed at the end."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.folder.resolve() if asked.folder else pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        yield folder


def outcomes(draw, judge, count, jobs):
    """What `judge` returns of `count` drawn lines that do not fail, as they come. A line of which it raises Failed is drawn
    again."""
    done, failed = 0, 0
    with ThreadPoolExecutor(jobs) as pool:
        def attempt(line):
            try:
                return judge(line)
            except Failed as reason:
                return reason
        while done < count:
            lines = [next(draw) for _ in range(count - done)]
            for line, outcome in zip(lines, pool.map(attempt, lines)):
                if isinstance(outcome, Failed):
                    failed += 1
                    print(f"drawn again: {' '.join(line)}: {outcome}", flush=True)
                else:
                    done += 1
                    yield outcome
    print(f"{failed} configurations failed and were drawn again")
