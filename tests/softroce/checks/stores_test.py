"""kv_rate between processes: every value is checked, and neither a killed client nor a killed server hangs the others."""

import time

from support import BenchmarkTest, packets_sent, wait_for

TIMEOUT_S = 10
NOTICED_WITHIN_S = 30
# Few keys and many PUTs, so that clients meet at the same ones. A machine that is emulated drops datagrams when it is busy.
CONTENDED = ["--keys", "64", "--put_percent", "50", "--retry_after", "200ms"]


class Stores(BenchmarkTest):
    def start_clients(self, *options):
        """A server and two clients."""
        return self.start_group("kv_rate", ["client0", "client1"], "--timeout", f"{TIMEOUT_S}s", "--warmup", "50ms",
                                *CONTENDED, *options)

    def result_of(self, server):
        result = self.records("server")[-1]["result"]
        checks = result["checks"]
        self.assertEqual((checks["wrong"], checks["torn"], checks["stale"]), (0, 0, 0))
        self.assertGreater(checks["values"], 0, server.describe())
        self.assertEqual(checks["values"], result["gets"] - result["misses"])
        print({key: result[key] for key in ("gets", "puts", "misses", "retries", "surplus", "puts_executed")}, checks)
        return result

    def good_result(self, *options):
        server, clients = self.start_clients("-n", "300", *options)
        for program in (server, *clients):
            self.assertEqual(program.finish(), 0, program.describe())
        result = self.result_of(server)
        self.assertEqual(result["puts_executed"], result["puts"])
        self.assertGreater(result["checks"]["own_puts"], 0)
        return result

    def started(self, *programs):
        before = packets_sent()
        wait_for("traffic", lambda: packets_sent() > before + 3000 or any(p.process.poll() is not None for p in programs))
        for program in programs:
            self.assertIsNone(program.process.poll(), program.describe())

    def test_herd(self):
        self.good_result("--store", "herd", "--threads", "2")

    def test_herd_in_batches(self):
        self.good_result("--store", "herd", "--batching", "-q", "2", "-s", "1000")

    def test_herd_by_sends(self):
        self.good_result("--store", "herd", "--requests", "send")

    def test_cached(self):
        result = self.good_result("--store", "cached", "--threads", "2")
        self.assertEqual(result["confirmed"] + result["values_sent"], result["checks"]["values"])
        self.assertGreater(result["confirmed"], 0)
        self.assertGreater(result["values_sent"], 0)

    def test_pilaf(self):
        self.good_result("--store", "pilaf", "--threads", "2")

    def test_farm(self):
        self.good_result("--store", "farm", "--threads", "2", "-s", "1000")

    def test_farm_var(self):
        self.good_result("--store", "farm_var", "--threads", "2", "-s", "200")

    def kill_client(self, store):
        server, (victim, survivor) = self.start_clients("--store", store, "-n", "5000")
        self.started(server, victim, survivor)
        victim.kill()
        for program in (server, survivor):
            self.assertEqual(program.finish(), 0, program.describe())
        self.assertEqual(self.result_of(server)["clients_gone"], 1)

    def test_client_killed_herd(self):
        self.kill_client("herd")

    def test_client_killed_pilaf(self):
        self.kill_client("pilaf")

    def test_client_killed_farm(self):
        self.kill_client("farm")

    def kill_server(self, store):
        server, clients = self.start_clients("--store", store, "-D", "60")
        self.started(server, *clients)
        server.kill()
        start = time.monotonic()
        for client in clients:
            self.assertGreater(client.finish(NOTICED_WITHIN_S), 0, client.describe())
            self.assertTrue(client.err.read_text().strip(), "no message: " + client.describe())
        print(f"noticed after {time.monotonic() - start:.1f} s")

    def test_server_killed_herd(self):
        self.kill_server("herd")

    def test_server_killed_pilaf(self):
        self.kill_server("pilaf")

    def test_server_killed_farm_var(self):
        self.kill_server("farm_var")
