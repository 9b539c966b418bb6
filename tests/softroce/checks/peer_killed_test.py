"""A run of a minute whose peer dies in the middle ends in a failed record, a message and a non-zero exit, without a hang."""

import time

from support import BenchmarkTest, packets_sent, wait_for

# The run would last 60 s and a wait at most --timeout; what notices the death of the peer ends it far sooner than either.
TIMEOUT_S = 10
NOTICED_WITHIN_S = 30


class PeerKilled(BenchmarkTest):
    def kill_one(self, killed, transport):
        server, client = self.start_pair("send_rate", "-c", transport, "-D", "60", "--timeout", f"{TIMEOUT_S}s")
        victim, survivor = (server, client) if killed == "server" else (client, server)
        before = packets_sent()
        wait_for("traffic", lambda: packets_sent() > before + 5000 or survivor.process.poll() is not None)
        self.assertIsNone(survivor.process.poll(), survivor.describe())
        victim.kill()
        start = time.monotonic()
        status = survivor.finish(NOTICED_WITHIN_S)
        self.assertNotEqual(status, 0, survivor.describe())
        self.assertGreater(status, 0, f"ended by a signal: {survivor.describe()}")
        self.assertTrue(survivor.err.read_text().strip(), "no message: " + survivor.describe())
        records = self.records(survivor.name)
        self.assertEqual([record["status"] for record in records], ["failed"], survivor.describe())
        self.assertTrue(records[0]["reason"])
        print(f"noticed after {time.monotonic() - start:.1f} s: {records[0]['reason']}")

    def test_server_killed_RC(self):
        self.kill_one("server", "RC")

    def test_client_killed_RC(self):
        self.kill_one("client", "RC")

    def test_server_killed_UD(self):
        self.kill_one("server", "UD")

    def test_client_killed_UD(self):
        self.kill_one("client", "UD")
