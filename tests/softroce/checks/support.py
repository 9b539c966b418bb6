"""Helpers of the checks inside the machine: programs with time limits, and the records that they write."""

import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

import jsonschema

SOURCE = pathlib.Path(os.environ["VERBSCOPE_SOURCE"])
BIN = pathlib.Path(os.environ["VERBSCOPE_BIN"])
SHARED = pathlib.Path("/run/verbscope")
# One validator for all records: to make it takes ten times as long as to use it.
RECORD_VALIDATOR = jsonschema.Draft202012Validator(json.loads((SOURCE / "results/record.schema.json").read_text()))
DEVICE = "rxe0"
ADDRESS = "10.9.0.1"
# Without it a server warns that anyone may join.
os.environ.setdefault("VERBSCOPE_SECRET", "one for all checks")
# No program here takes longer unless it hangs; emulation and sanitizers make it this long.
LIMIT_S = 90


class Program:
    """A started program; its output is kept in files of the test's folder."""

    def __init__(self, folder, name, command):
        folder.mkdir(parents=True, exist_ok=True)
        self.name, self.folder = name, folder
        self.command = [str(word) for word in command]
        self.out, self.err = folder / f"{name}.out", folder / f"{name}.err"
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    def finish(self, limit_s=LIMIT_S):
        """The exit status; a program that is not done in time is killed, and that is a failure of the test."""
        try:
            return self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"not done within {limit_s} s: {self.describe()}") from None

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def describe(self):
        texts = [f"{stream}: {path.read_text(errors='replace')[-2000:]}" for stream, path in
                 [("standard output", self.out), ("standard error", self.err)]]
        return "\n".join([" ".join(self.command), f"exit status {self.process.poll()}", *texts])


def wait_for(what, condition, limit_s=LIMIT_S):
    """Waits until condition() holds; fails, saying what it waited for, after limit_s."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {limit_s} s for {what}")
        time.sleep(0.05)


def run(command):
    """The output of a command, which must succeed."""
    done = subprocess.run(command.split(), check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stderr}")
    return done.stdout


def listens(port):
    """Whether some program listens on the TCP port (state 0A in the kernel's table)."""
    wanted = f":{port:04X}"
    for table in ["/proc/net/tcp", "/proc/net/tcp6"]:
        for line in pathlib.Path(table).read_text().splitlines()[1:]:
            words = line.split()
            if words[1].endswith(wanted) and words[3] == "0A":
                return True
    return False


def packets_sent():
    return int(pathlib.Path(f"/sys/class/infiniband/{DEVICE}/ports/1/hw_counters/sent_pkts").read_text())


class BenchmarkTest(unittest.TestCase):
    """Starts benchmarks; each test has a folder for their output and a port of its own."""

    next_port = 20000
    # Counters.test_all_sources_are_tried_and_say_why_not tries the sources; elsewhere looking for them would take a third of a run.
    counter_sources = ["--counter_sources", "none"]

    def setUp(self):
        self.folder = SHARED / self.id()
        self.programs = []
        self.addCleanup(lambda: [program.kill() for program in self.programs])

    def start(self, name, benchmark, *options):
        command = [BIN / benchmark, *options, "--out_json_file", self.folder / f"{name}.json"]
        self.programs.append(Program(self.folder, name, command))
        return self.programs[-1]

    def start_pair(self, benchmark, *options):
        """Server and client on rxe0, each on a core of its own."""
        server, clients = self.start_group(benchmark, ["client"], *options)
        return server, clients[0]

    def start_group(self, benchmark, names, *options):
        """A server on rxe0 and clients of these names on another core, or with several threads of the server on one of its."""
        BenchmarkTest.next_port += 1
        port = BenchmarkTest.next_port
        common = ["-d", DEVICE, "-x", "-1", "-p", port, *self.counter_sources, *options]
        cores = "0-1" if "--threads" in options else "0"
        server = self.start("server", benchmark, *common, "--clients", len(names), "--cores", cores)
        wait_for(f"the server to listen on port {port}: {server.describe()}",
                 lambda: listens(port) or server.process.poll() is not None)
        return server, [self.start(name, benchmark, *common, "--cores", "1", ADDRESS) for name in names]

    def records(self, name):
        """The records that a program wrote, each valid by the schema."""
        path = self.folder / f"{name}.json"
        lines = path.read_text().splitlines() if path.exists() else []
        found = [json.loads(line) for line in lines]
        for record in found:
            RECORD_VALIDATOR.validate(record)
        return found
