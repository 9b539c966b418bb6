"""kv_atomic between processes: every value is checked, and neither a killed client nor a killed server hangs the others."""

import time

from support import BenchmarkTest, packets_sent, wait_for

# Few records and many PUTs, so that locks are often taken when a client is killed. Long values: a WRITE is several packets.
CONTENDED = ["--keys", "4", "--put_percent", "80", "--window", "8"]
TIMEOUT_S = 10
NOTICED_WITHIN_S = 30


class Kv(BenchmarkTest):
    def start_clients(self, *options):
        """A server and two clients, with a QP each."""
        return self.start_group("kv_atomic", ["client0", "client1"], "-q", 2, "--timeout", f"{TIMEOUT_S}s", "--warmup", "50ms",
                                *options)

    def started(self, *programs):
        before = packets_sent()
        wait_for("traffic", lambda: packets_sent() > before + 3000 or any(p.process.poll() is not None for p in programs))
        for program in programs:
            self.assertIsNone(program.process.poll(), program.describe())

    def good_result(self, *options):
        server, clients = self.start_clients(*options)
        for program in (server, *clients):
            self.assertEqual(program.finish(), 0, program.describe())
        result = self.records("server")[-1]["result"]
        self.assertEqual(result["violations"], 0)
        self.assertGreater(result["gets"] + result["puts"], 0)
        self.assertEqual(result["puts_in_records"], result["puts"])
        self.assertEqual((result["records_locked"], result["records_inconsistent"], result["tickets_skipped"]), (0, 0, 0))
        print({key: result[key] for key in ("gets", "puts", "lock_retries", "torn_reads")})
        return result

    def test_values_are_checked(self):
        for locks in ("same", "hashed", "apart"):
            self.good_result("-n", "300", "--put_percent", "50", "--keys", "64", "--locks", locks)

    def test_contended_records(self):
        result = self.good_result("-n", "300", "-s", "4096", *CONTENDED)
        self.assertGreater(result["lock_retries"], 0)

    def test_emulated_puts(self):
        self.good_result("-n", "300", "--put_percent", "100", "--emulate")

    def test_client_killed(self):
        server, (victim, survivor) = self.start_clients("-n", "2000", "-s", "4096", "--lease", "1s", *CONTENDED)
        self.started(server, victim, survivor)
        victim.kill()
        for program in (server, survivor):
            self.assertEqual(program.finish(), 0, program.describe())
        result = self.records("server")[-1]["result"]
        self.assertEqual(result["clients_gone"], 1)
        self.assertEqual((result["violations"], result["records_inconsistent"]), (0, 0))
        print({key: result[key] for key in ("puts", "puts_in_records", "tickets_skipped", "turns_lost", "records_locked")})

    def test_server_killed(self):
        server, clients = self.start_clients("-D", "60", *CONTENDED)
        self.started(server, *clients)
        server.kill()
        start = time.monotonic()
        for client in clients:
            self.assertGreater(client.finish(NOTICED_WITHIN_S), 0, client.describe())
            self.assertTrue(client.err.read_text().strip(), "no message: " + client.describe())
            self.assertEqual([record["status"] for record in self.records(client.name)], ["failed"])
        print(f"noticed after {time.monotonic() - start:.1f} s")
