"""Services: the example, and RPCs whose packets are lost or whose processes are killed."""

import os
import pathlib
import re
import signal
import time

from support import ADDRESS, DEVICE, BenchmarkTest, Program, listens, run, wait_for

TESTS = pathlib.Path(os.environ["VERBSCOPE_TESTS"])
LOST = "1%"  # of the packets, each way
# A round trip takes milliseconds under emulation; programs need seconds to start.
PATIENCE = ["--rto", "50ms"]
# Devices at the ends of a cable, and their addresses. Packets between two devices of a machine would not pass their queues
# without rules that prefer the cable to the machine's own addresses.
CABLE = {"rxe1": ("cable1", "10.9.1.1"), "rxe2": ("cable2", "10.9.1.2")}
RULES = ["pref 100 iif cable1 lookup local", "pref 100 iif cable2 lookup local", "pref 200 to 10.9.1.0/24 lookup 100",
         "pref 300 lookup local"]


def mac_of(interface):
    return pathlib.Path(f"/sys/class/net/{interface}/address").read_text().strip()


class ServiceTest(BenchmarkTest):
    def start_service(self, name, program, *options, device=DEVICE, core="0"):
        command = [TESTS / program, "-d", device, "-p", self.port, "--cores", core, *options]
        self.programs.append(Program(self.folder, name, command))
        return self.programs[-1]

    def start_server(self, name, program, *options, device=DEVICE):
        BenchmarkTest.next_port += 1
        self.port = BenchmarkTest.next_port
        return self.start_server_again(name, program, *options, device=device)

    def start_server_again(self, name, program, *options, device=DEVICE):
        server = self.start_service(name, program, *options, device=device)
        wait_for(f"the server to listen on port {self.port}: {server.describe()}",
                 lambda: listens(self.port) or server.process.poll() is not None)
        return server

    def stop(self, server):
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.finish(), 0, server.describe())

    def counts(self, program):
        """{"answered": 5, ...}: the last line of a service_check."""
        text = program.out.read_text()
        return {name: int(count) for name, count in re.findall(r"(\w+) (\d+)", text)}


class Service(ServiceTest):
    def test_echo(self):
        server = self.start_server("server", "echo")
        client = self.start_service("client", "echo", "--calls", "100", ADDRESS, core="1")
        self.assertEqual(client.finish(), 0, client.describe())
        self.assertIn("100 calls", client.out.read_text())
        self.stop(server)

    def test_other_parameters_are_refused(self):
        server = self.start_server("server", "echo", "--packet_size", "512")
        client = self.start_service("client", "echo", ADDRESS, core="1")
        self.assertEqual(client.finish(), 1, client.describe())
        self.assertIn("packet_size (here 1024, there 512)", client.err.read_text())
        self.stop(server)

    def test_nobody_listens(self):
        self.port = 29999
        client = self.start_service("client", "echo", "--timeout", "500ms", ADDRESS)
        self.assertEqual(client.finish(), 1, client.describe())
        self.assertIn(f"endpoint 0 of {ADDRESS} opened no session: waited 0.5 s", client.err.read_text())

    def test_open_does_not_wait(self):
        server = self.start_server("server", "service_check")
        client = self.start_service("client", "service_check", "--calls", "20", "--timeout", "10s", "--absent", f"{ADDRESS}:29999",
                                    *PATIENCE, ADDRESS, core="1")
        self.assertEqual(client.finish(), 0, client.describe())
        self.assertEqual(self.counts(client)["failed"], 0)
        self.assertIn("absent after all calls: waited 10 s for a server", client.out.read_text())
        self.stop(server)

    def handled_once(self, log):
        calls = log.read_text().split()
        self.assertGreater(len(calls), 0)
        self.assertEqual(len(calls), len(set(calls)), "a call was handled twice")
        return len(calls)

    def check_client(self, client, answered):
        self.assertEqual(client.finish(), 0, client.describe())
        counts = self.counts(client)
        self.assertGreaterEqual(counts["answered"], answered)
        self.assertEqual((counts["wrong"], counts["again"]), (0, 0), client.describe())
        return counts

    def test_client_killed(self):
        log = self.folder / "handled"
        server = self.start_server("server", "service_check", "--log", log, "-s", "3000")
        client = self.start_service("client", "service_check", "--calls", "1000000", "-s", "3000", *PATIENCE, ADDRESS, core="1")
        wait_for("calls", lambda: log.exists() and len(log.read_text().split()) > 100)
        client.kill()
        other = self.start_service("other", "service_check", "--calls", "100", "-s", "3000", "--first", "10000000", *PATIENCE, ADDRESS,
                                   core="1")
        counts = self.check_client(other, 100)
        self.assertEqual(counts["failed"], 0)
        self.stop(server)
        self.assertEqual(self.counts(server)["wrong"], 0)
        self.assertEqual(self.counts(server)["handled"], self.handled_once(log))

    def test_server_killed_and_started_again(self):
        log = self.folder / "handled"
        options = ["--log", log, "-s", "3000", "--outstanding", "12"]
        server = self.start_server("server", "service_check", *options)
        client = self.start_service("client", "service_check", "--calls", "300", "-s", "3000", "--outstanding", "12", *PATIENCE,
                                    "--timeout", "30s", ADDRESS, core="1")
        wait_for("calls", lambda: log.exists() and len(log.read_text().split()) > 100)
        server.kill()
        begin = time.monotonic()
        server = self.start_server_again("again", "service_check", *options)
        counts = self.check_client(client, 300)
        self.assertEqual(counts["reconnected"], 1)
        self.assertGreater(counts["failed"], 0)  # each of them once, because `again` is 0
        self.assertLessEqual(counts["failed"], 12)
        self.stop(server)
        self.assertEqual(self.counts(server)["wrong"], 0)
        print(f"{self.handled_once(log)} handled, {counts['failed']} failed, over {time.monotonic() - begin:.1f} s after the kill")


class Lossy(ServiceTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.remove_cable)
        run("modprobe -a veth sch_netem")
        run("ip link add cable1 type veth peer name cable2")
        for device, (end, address) in CABLE.items():
            run(f"ip address add {address}/24 dev {end}")
            run(f"ip link set {end} up")
            for setting in ("accept_local=1", "rp_filter=0"):
                run(f"sysctl -q net.ipv4.conf.{end}.{setting}")
            run(f"rdma link add {device} type rxe netdev {end}")
        for end, peer, other in (("cable1", "cable2", "10.9.1.2"), ("cable2", "cable1", "10.9.1.1")):
            run(f"ip route add {other} dev {end} table 100")
            run(f"ip neigh replace {other} dev {end} lladdr {mac_of(peer)} nud permanent")  # no ARP, whose packets are lost too
        for rule in RULES:
            run(f"ip rule add {rule}")
        run("ip rule del pref 0")
        for end, _ in CABLE.values():
            run(f"tc qdisc add dev {end} root netem loss {LOST}")

    def remove_cable(self):
        for program in self.programs:
            program.kill()
        run("ip rule add pref 0 lookup local")
        for rule in RULES:
            run(f"ip rule del {rule}")
        for device in CABLE:
            run(f"rdma link delete {device}")
        run("ip link delete cable1")

    def lost(self):
        """Packets that the queues of the cable have dropped."""
        text = "".join(run(f"tc -s qdisc show dev {end}") for end, _ in CABLE.values())
        return sum(int(count) for count in re.findall(r"dropped (\d+)", text))

    def test_rpc_rate(self):
        BenchmarkTest.next_port += 1
        port = BenchmarkTest.next_port
        options = ["-p", port, *self.counter_sources, "-n", "320", "--warmup", "50ms", "-s", "3000", "--outstanding", "12", *PATIENCE]
        server = self.start("server", "rpc_rate", "-d", "rxe1", "--cores", "0", *options)
        wait_for("the server", lambda: listens(port) or server.process.poll() is not None)
        client = self.start("client", "rpc_rate", "-d", "rxe2", "--cores", "1", *options, ADDRESS)
        for program in (client, server):
            self.assertEqual(program.finish(), 0, program.describe())
        for record in [*self.records("server"), *self.records("client")]:
            self.assertEqual(record["status"], "ok")
            result = record["result"]
            self.assertEqual((result["unanswered"], result["handled_twice"], result["rpc"]["unknown"]), (0, 0, 0))
        self.assertGreater(self.lost(), 0)
        print(f"{self.lost()} packets lost")

    def test_large_transfer(self):
        """8192 packets: the largest request."""
        bytes_ = 8192 * 1008
        server = self.start_server("server", "service_check", "-s", bytes_, device="rxe1")
        client = self.start_service("client", "service_check", "--calls", "1", "--outstanding", "1", "-s", bytes_, *PATIENCE, ADDRESS,
                                    device="rxe2", core="1")
        self.assertEqual(client.finish(), 0, client.describe())
        counts = self.counts(client)
        resent = counts.pop("resent")
        self.assertEqual(counts, {"answered": 1, "failed": 0, "wrong": 0, "again": 0, "reconnected": 0})
        self.stop(server)
        self.assertEqual(self.counts(server), {"handled": 1, "wrong": 0})
        self.assertGreater(self.lost(), 40)  # of 16,384 packets 1 %
        self.assertGreater(resent, 40)
        print(f"{self.lost()} packets lost, {resent} sent again")
