"""Replicas and clients of raft_kv under faults, and the check of their histories. Where the programs run is up to the caller: in one
machine (raft_test.py) or on two (cluster/cluster_test.py)."""

import re
import subprocess
import time

KEYS = 20
# Emulated machines have fewer cores than programs that poll: a program may stand still for tenths of a second.
TIMES = ["--election", "1s", "--heartbeat", "100ms", "--rto", "50ms"]
LOAD = ["--keys", KEYS, "--outstanding", 4, "--timeout", "60s", "--warmup", "0s", "--duration", "10000s"]
LIMIT_S = 120


def wait_for(describe, condition):
    """What condition() returns, once that is true. describe(): what it waits for."""
    deadline = time.monotonic() + LIMIT_S
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {LIMIT_S} s for {describe()}")
        time.sleep(0.05)
    return found


class RaftCluster:
    """`start(name, place, *options)` starts raft_kv at a place, a machine or a device, and returns a program with `out` and `err`, its
    output, ended(), kill(), stop(), which returns its exit status, and describe(). `replicas` are addresses, HOST:PORT; replica i is
    at place i. `log(i)` is its --log. Clients are at `client_place` and write their histories to `folder` there, which is
    `found` here."""

    def __init__(self, start, replicas, log, client_place, folder, found=None):
        self.start_program, self.replicas, self.log = start, replicas, log
        self.client_place, self.folder, self.found = client_place, folder, found or folder
        self.running, self.clients, self.histories = {}, [], []
        self.started = 0

    def start(self, *numbers):
        """Starts replicas, also those that were killed, with the same log."""
        for number in numbers:
            self.started += 1
            self.running[number] = self.start_program(
                f"replica{number}.{self.started}", number, "--replica", number + 1, "--replicas", ",".join(self.replicas), "-p",
                self.replicas[number].rpartition(":")[2], "--keys", KEYS, "--log", self.log(number), *TIMES)

    def kill(self, *numbers):
        for program in [self.running.pop(number) for number in numbers]:
            program.kill()

    def leader(self, after=0):
        """(number, term) of the running replica that leads in the newest term, which must be greater than `after`."""
        def newest():
            for program in self.running.values():
                if program.ended():
                    raise AssertionError(f"a replica ended: {program.describe()}")
            led = [(int(term), number) for number, program in self.running.items()
                   for term in re.findall(r"leads in term (\d+)", program.out.read_text())]
            return max(led)[::-1] if led and max(led)[0] > after else None

        return wait_for(lambda: f"a leader after term {after}: {self.describe()}", newest)

    def start_client(self, put_percent):
        name = f"client{len(self.histories)}"
        self.histories.append(self.found / f"{name}.jsonl")
        self.clients.append(self.start_program(name, self.client_place, "--history", f"{self.folder}/{name}.jsonl", "--puts", put_percent, *LOAD,
                                               *TIMES, ",".join(self.replicas)))

    def completed(self):
        return sum(path.read_text().count("\n") - path.read_text().count('"completed_ns":null') for path in self.histories if path.exists())

    def wait_for_load(self, operations=20):
        """Until the clients have completed this many further operations."""
        begin = self.completed()

        def done():
            for program in self.clients:
                if program.ended():
                    raise AssertionError(f"a client ended: {program.describe()}")
            return self.completed() >= begin + operations

        wait_for(lambda: f"{operations} operations, of which {self.completed() - begin} are done: {self.describe()}", done)

    def start_load(self):
        for _ in range(2):
            self.start_client(50)
        self.wait_for_load()

    def stop_clients(self):
        for program in self.clients:
            if program.stop() != 0:
                raise AssertionError(program.describe())
        self.clients.clear()

    def finish(self, verbscope):
        """Ends the load, reads all keys, and checks all histories as one: an acknowledged PUT that is lost would be missed then."""
        self.stop_clients()
        self.start_client(0)
        reads = self.histories[-1]
        wait_for(lambda: f"GETs of all keys: {self.describe()}",
                 lambda: reads.exists() and len(set(re.findall(r'"key":(\d+)', reads.read_text()))) == KEYS)
        self.stop_clients()
        done = subprocess.run([verbscope, "linearizable", *self.histories], check=False, capture_output=True, text=True, timeout=LIMIT_S)
        print(done.stdout.strip())
        if done.returncode != 0:
            raise AssertionError(f"{done.stdout}{done.stderr}")

    def describe(self):
        return "\n".join(program.describe() for program in [*self.running.values(), *self.clients])
