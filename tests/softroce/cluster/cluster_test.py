"""`verbscope` here, its points on two emulated machines that it reaches by ssh: a sweep, and everything that can go wrong
with a host. boot.py sets CLUSTER, OUT and BIN. The checks run in the order of their names; the last one loses a machine."""

import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import time
import unittest

import jsonschema
from raft_cluster import RaftCluster

CLUSTER = OUT = BIN = None
SOURCE = pathlib.Path(__file__).resolve().parents[3]
RECORD_VALIDATOR = jsonschema.Draft202012Validator(json.loads((SOURCE / "results/record.schema.json").read_text()))
# Emulation, on cores that others use: nothing here takes longer unless it hangs.
LIMIT_S = 300
# The processes of deployed programs are found by their executable's folder, not by a name.
OURS = "find /proc -mindepth 2 -maxdepth 2 -name exe -lname '/root/.cache/verbscope/*' -printf '%h %l\\n' 2> /dev/null || true"
# Programs that poll would starve the other machine, and sshd, of the two cores that are emulated.
FIXED = {"connection": "RC", "size": 64, "warmup": "100ms", "timeout": "60s", "events": True}


def client(name):
    return name.endswith("/send_rate")


class RemoteProgram:
    """A program on a node, with its output in the folder that the node shares."""

    def __init__(self, node, name, *command):
        self.node, self.name = node, name
        self.out, self.err, self.status = (node.folder / f"{name}.{stream}" for stream in ("out", "err", "status"))
        self.out.touch()
        words = shlex.join(map(str, command))
        inner = f"echo $$ > /run/verbscope/{name}.pid; VERBSCOPE_SECRET=raft exec {words} > /run/verbscope/{name}.out 2> /run/verbscope/{name}.err"
        node.run(f"(sh -c {shlex.quote(inner)}; echo $? > /run/verbscope/{name}.status) < /dev/null > /dev/null 2>&1 &")

    def ended(self):
        return self.status.exists()

    def signal(self, number):
        self.node.run(f"kill -{number} $(cat /run/verbscope/{self.name}.pid) || true")  # it may have ended
        deadline = time.monotonic() + LIMIT_S
        while not self.status.exists() or not self.status.read_text():
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {LIMIT_S} s for an end after signal {number}: {self.describe()}")
            time.sleep(0.05)
        return int(self.status.read_text())

    def kill(self):
        if not self.ended():
            self.signal(9)

    def stop(self):
        return self.signal(15)

    def describe(self):
        texts = [path.read_text(errors="replace")[-2000:] if path.exists() else "" for path in (self.out, self.err, self.status)]
        return " ".join([self.node.name, self.name, *texts])


class Cluster(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = OUT / self.id().split(".")[-1]
        self.folder.mkdir()
        self.server, self.client = CLUSTER.nodes
        self.hosts = CLUSTER.hosts_file(self.folder / "hosts")
        self.results = self.folder / "results.jsonl"
        self.program = None
        self.addCleanup(self.kill)

    def kill(self):
        if self.program and self.program.poll() is None:
            self.program.kill()
            self.program.wait()

    def start(self, *words):
        """verbscope, with its output in the test's folder."""
        environment = {**os.environ, "VERBSCOPE_CONFIGS": str(SOURCE / "configs")}
        with (self.folder / "out").open("ab") as out, (self.folder / "err").open("ab") as err:
            self.program = subprocess.Popen([BIN / "verbscope", *map(str, words)], stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=err, env=environment)

    def start_sweep(self, sweep, *words, connect_timeout="30s"):
        self.start("run", sweep, "--hosts", self.hosts, "--ssh_config", CLUSTER.ssh_config, "--connect_timeout", connect_timeout,
                   "--out", self.results, "--timeout", "250s", *words)

    def finish(self):
        try:
            return self.program.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.fail(f"not done within {LIMIT_S} s: {self.said()}")

    def ended(self):
        return self.program.poll() is not None

    def said(self):
        return (self.folder / "out").read_text() + (self.folder / "err").read_text()

    def records(self):
        lines = self.results.read_text().splitlines() if self.results.exists() else []
        found = [json.loads(line) for line in lines]
        for record in found:
            RECORD_VALIDATOR.validate(record)
        return found

    def sweep(self, **keys):
        """The path of a sweep of send_rate; its points take as long as `duration` says."""
        path = self.folder / "sweep.json"
        path.write_text(json.dumps({"schema": "verbscope.sweep/1", "benchmark": "send_rate", "fixed": FIXED, **keys}))
        return path

    def wait_for(self, what, condition, limit_s=LIMIT_S):
        deadline = time.monotonic() + limit_s
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"waited {limit_s} s for {what}: {self.said()}")
            time.sleep(0.2)

    def processes(self, node):
        """(process id, path) of every deployed program that runs there."""
        return [line.removeprefix("/proc/").split() for line in node.run(OURS).splitlines()]

    def cut(self):
        """The network between the machines carries nothing."""
        for node in CLUSTER.nodes:
            node.run("modprobe sch_netem && tc qdisc add dev eth1 root netem loss 100%")

    def join(self):
        for node in CLUSTER.nodes:
            node.run("tc qdisc del dev eth1 root || true")  # it may be gone

    def wait_for_traffic(self, node):
        """Until the client runs on the node, connected: it has sent packets of its own."""
        self.wait_for("the client", lambda: self.ended() or any(client(path) for _, path in self.processes(node)))
        counter = "cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts"
        before = int(node.run(counter))
        self.wait_for("traffic", lambda: self.ended() or int(node.run(counter)) > before + 200)
        self.assertFalse(self.ended(), self.said())

    def assert_nothing_left(self, *nodes):
        for node in nodes:
            self.wait_for(f"an end of the processes on {node.name}", lambda node=node: not self.processes(node), 60)
            self.assertEqual(node.run("ls -d /tmp/verbscope-* 2>/dev/null || true"), "")

    def assert_refused(self, *parts):
        """One line, before the first point."""
        self.assertEqual(self.finish(), 1, self.said())
        lines = (self.folder / "err").read_text().splitlines()
        self.assertEqual(len(lines), 1, self.said())
        for part in parts:
            self.assertIn(part, lines[0])
        print(lines[0])
        self.assertEqual(self.records(), [])

    def test_01_deploy_copies_once(self):
        words = ["deploy", "--hosts", self.hosts, "--ssh_config", CLUSTER.ssh_config, "--benchmarks", "send_rate,recv_rate,write_rate"]
        for expected in ["4 programs copied, 0 already present", "0 programs copied, 4 already present"]:
            self.start(*words)
            self.assertEqual(self.finish(), 0, self.said())
            for node in CLUSTER.nodes:
                self.assertIn(f"{node.name}: {expected}\n", self.said())

    def test_02_a_sweep_crosses_the_machines(self):
        self.start_sweep("softroce-smoke")
        self.assertEqual(self.finish(), 0, self.said())
        records = self.records()
        self.assertEqual([record["benchmark"] for record in records], ["send_rate", "recv_rate", "write_rate"])
        for record in records:
            self.assertEqual(record["status"], "ok")
            self.assertEqual(record["environment"]["hostname"], "node1")
            self.assertEqual([client["host"] for client in record["result"]["clients"]], ["node2"])
            self.assertEqual(record["result"]["validation"]["wrong"], 0)
            self.assertGreater(record["result"]["validation"]["checked"], 0)
            self.assertEqual(record["environment"]["harness"]["launcher"], "ssh")
            self.assertEqual([facts["hostname"] for facts in record["environment"]["hosts"].values()], ["node1", "node2"])
            self.assertEqual([each["hostname"] for each in record["environment"]["clients"]], ["node2"])
        self.assert_nothing_left(*CLUSTER.nodes)

    def test_02b_the_doctor_reports_both(self):
        self.start("doctor", "--hosts", self.hosts, "--ssh_config", CLUSTER.ssh_config, "--json")
        self.assertEqual(self.finish(), 0, self.said())
        reports = [json.loads(line) for line in (self.folder / "out").read_text().splitlines()]
        self.assertEqual([report["host"] for report in reports], ["node1", "node2"])
        for node, report in zip(CLUSTER.nodes, reports):
            self.assertEqual(report["facts"]["hostname"], node.name)
            (device,) = report["facts"]["devices"]
            (port,) = device["ports"]
            self.assertEqual((device["name"], device["software"], port["state"], port["link_layer"], port["netdev"]),
                             ("rxe0", True, "ACTIVE", "Ethernet", "eth1"))
            self.assertIn(f"0000:0000:0000:0000:0000:ffff:0a09:000{node.number}", [gid["gid"] for gid in port["gids"]])
            self.assertTrue(any("rxe0 is a software device" in finding["what"] for finding in report["findings"]))

    def test_03_a_killed_client_fails_its_point_only(self):
        self.start_sweep(self.sweep(points=[{"duration": "1000s"}, {"iters": 300}]))
        self.wait_for_traffic(self.client)
        self.assertEqual(self.records(), [], self.said())  # nothing else has ended the point
        (process,) = [process for process, path in self.processes(self.client) if client(path)]
        self.client.run(f"kill -9 {process}")
        self.assertEqual(self.finish(), 1, self.said())
        failed, good = self.records()
        print(failed["reason"], failed["result"])
        self.assertEqual((failed["status"], good["status"]), ("failed", "ok"), self.said())
        # The peer may tell first: a killed process that holds a device is slow to end under emulation.
        self.assertRegex(failed["reason"], r"^(client 0 on node2: killed by signal 9|"
                                           r"server on node1: .*(closed the connection|completion with status))")
        self.assertRegex(failed["result"]["end"], "killed by signal 9|exit status 1")
        self.assertTrue(failed["result"]["command"][0].endswith("/send_rate"))
        self.assert_nothing_left(*CLUSTER.nodes)

    def test_04_a_taken_port_is_named(self):
        taken = "python3 -c 'import socket,time; s=socket.socket(socket.AF_INET6); s.bind((\"\",4444)); s.listen(); time.sleep(600)'"
        self.server.run(f"{taken} > /dev/null 2>&1 & echo $! > /run/taken; sleep 1")
        self.addCleanup(lambda: self.server.run("kill $(cat /run/taken)"))
        self.start_sweep(self.sweep(vary={"iters": [200, 300]}), "--port", "4444")
        self.assertEqual(self.finish(), 1, self.said())
        self.assertEqual([record["status"] for record in self.records()], ["failed", "failed"])
        for record in self.records():
            self.assertIn("server on node1: ", record["reason"])
            self.assertIn("4444", record["reason"])
        print(self.records()[0]["reason"])
        self.assert_nothing_left(*CLUSTER.nodes)

    def test_05_a_wrong_host_key_is_refused(self):
        other = self.folder / "known_hosts"
        keys = [line.split(" ", 1)[1] for line in CLUSTER.known_hosts.read_text().splitlines()]
        other.write_text("".join(f"[127.0.0.1]:{node.ssh_port} {key}\n" for node, key in zip(CLUSTER.nodes, reversed(keys))))
        config = self.folder / "ssh_config"
        config.write_text(CLUSTER.ssh_config.read_text().replace(str(CLUSTER.known_hosts), str(other)))
        self.start("run", "softroce-smoke", "--hosts", self.hosts, "--ssh_config", config, "--out", self.results)
        self.assert_refused("host node1: ", "Host key verification failed")

    def test_06_a_name_that_does_not_resolve_is_refused(self):
        self.hosts = CLUSTER.hosts_file(self.folder / "hosts", node2="management=nowhere.invalid role=client")
        self.start_sweep("softroce-smoke")
        self.assert_refused("host node2: ", "nowhere.invalid")

    def test_07_a_full_disk_is_told(self):
        self.client.run("mount -t tmpfs -o size=64k tmp /tmp; head -c 10M /dev/zero > /tmp/full || true")
        self.start_sweep(self.sweep(fixed={**FIXED, "iters": 300}))
        status = self.finish()
        self.client.run("umount /tmp")
        self.assertEqual(status, 1, self.said())
        (record,) = self.records()
        self.assertIn("client 0 on node2: ", record["reason"])
        self.assertIn("No space left on device", json.dumps(record))
        print(record["reason"])
        self.assert_nothing_left(*CLUSTER.nodes)

    def test_08_an_interrupt_cleans_up(self):
        self.start_sweep(self.sweep(points=[{"iters": 300}, {"duration": "1000s"}]))
        self.wait_for("the first point", lambda: self.ended() or self.records())
        self.wait_for_traffic(self.client)
        self.program.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(), 130, self.said())
        self.assertEqual([record["status"] for record in self.records()], ["ok"])
        self.assert_nothing_left(*CLUSTER.nodes)

    def test_09_a_killed_harness_leaves_nothing_running(self):
        self.start_sweep(self.sweep(fixed={**FIXED, "duration": "1000s"}))
        self.wait_for_traffic(self.client)
        self.program.kill()
        self.finish()
        self.assert_nothing_left(*CLUSTER.nodes)

    def test_09b_a_network_that_carries_nothing_is_told_by_both(self):
        self.start_sweep(self.sweep(fixed={**FIXED, "connection": "UD", "duration": "1000s"}))
        self.wait_for_traffic(self.server)
        self.cut()
        self.addCleanup(self.join)
        start = time.monotonic()
        self.assertEqual(self.finish(), 1, self.said())
        print(f"ended after {time.monotonic() - start:.0f} s")
        (record,) = self.records()
        for each in [record["reason"], *record["result"]["others"]]:
            print(each)
            self.assertRegex(each, r" on node.: 10\.9\.0\..:\d+ stopped responding ")
        self.assertEqual(len(record["result"]["others"]), 1)
        self.assert_nothing_left(*CLUSTER.nodes)

    def test_09c_raft_on_two_machines(self):
        """Two replicas and the clients on one machine, a replica on the other, which is cut off at the end."""
        programs = []
        self.addCleanup(lambda: [program.kill() for program in programs])

        for node in CLUSTER.nodes:  # into memory: the build folder may be hidden there
            shutil.copy(BIN / "raft_kv", node.folder)
            node.run("cp /run/verbscope/raft_kv /root")

        def start(name, place, *options):
            node = self.client if place == 2 else self.server
            programs.append(RemoteProgram(node, name, "/root/raft_kv", "-d", "rxe0", "--cores", place % 2, *options))
            return programs[-1]

        replicas = ["10.9.0.1:18521", "10.9.0.1:18522", "10.9.0.2:18523"]
        cluster = RaftCluster(start, replicas, lambda number: f"file:/tmp/replica{number}", 1, "/run/verbscope", self.server.folder)
        cluster.start(0, 1, 2)
        leader, term = cluster.leader()
        cluster.start_load()
        for _ in range(20):
            cluster.kill(leader)
            killed = leader
            leader, term = cluster.leader(after=term)
            cluster.start(killed)
            cluster.wait_for_load()
        self.addCleanup(self.join)
        self.cut()
        cluster.wait_for_load()
        self.join()
        cluster.kill(0)  # the majority needs the other machine
        cluster.wait_for_load()
        cluster.finish(BIN / "verbscope")

    def test_10_a_paused_machine_is_given_up(self):
        self.start_sweep(self.sweep(points=[{"duration": "1000s"}, {"iters": 300}]), "--silence", "10s", connect_timeout="15s")
        self.wait_for_traffic(self.client)
        self.client.pause()
        self.addCleanup(self.client.go_on)
        start = time.monotonic()
        self.assertEqual(self.finish(), 1, self.said())
        print(f"ended after {time.monotonic() - start:.0f} s")
        self.client.go_on()
        records = self.records()
        self.assertEqual([record["status"] for record in records], ["failed", "failed"], self.said())
        self.assertRegex(records[0]["reason"], r"client 0 on node2: .*no message for \d+ s")
        self.assertIn("client 0 on node2: ", records[1]["reason"])
        for record in records:
            print(record["reason"])
        self.assert_nothing_left(*CLUSTER.nodes)

    def test_11_a_machine_that_is_switched_off_keeps_what_had_ended(self):
        self.start_sweep(self.sweep(points=[{"iters": 300}, {"duration": "1000s"}, {"iters": 400}]), "--silence", "10s",
                         connect_timeout="15s")
        self.wait_for("the first point", lambda: self.ended() or self.records())
        self.wait_for_traffic(self.client)
        self.client.switch_off()
        self.assertEqual(self.finish(), 1, self.said())
        records = self.records()
        self.assertEqual([record["status"] for record in records], ["ok", "failed", "failed"], self.said())
        for record in records[1:]:
            self.assertIn("client 0 on node2: ", record["reason"])
            print(record["reason"])
        self.assert_nothing_left(self.server)
