"""Programs of librdmacm, run by `verbscope simulate`. Arguments: path of verbscope."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

from simulated import require, simulate

HERE = pathlib.Path(__file__).resolve().parent
VERBSCOPE = sys.argv.pop(1)
RESOLVED = ["RDMA_CM_EVENT_ADDR_RESOLVED 0", "RDMA_CM_EVENT_ROUTE_RESOLVED 0"]
CONNECTED = RESOLVED + ["RDMA_CM_EVENT_ESTABLISHED 0 'welcome'", "QP in state 3, GUID of device 1"]  # IBV_QPS_RTS
LISTENING = ["second listener: Address already in use"]
REQUEST = LISTENING + ["RDMA_CM_EVENT_CONNECT_REQUEST 0 'hello'"]
ACCEPTED = REQUEST + ["RDMA_CM_EVENT_ESTABLISHED 0"]
LEFT = ["RDMA_CM_EVENT_DISCONNECTED 0"]


class Connections(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.peer = pathlib.Path(folder.name) / "connection_peer"
        subprocess.run(["c++", "-std=c++20", "-o", cls.peer, HERE / "connection_peer.cpp", "-lrdmacm", "-libverbs"],
                       check=True, timeout=60)

    def expect_events(self, server, client, server_events, client_events, cluster="cib", address="10.1.0.1"):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [VERBSCOPE, "simulate", "--cluster", cluster, "--output", folder, "--", self.peer, "server", server,
                 "127.0.0.1", "7000", "::", self.peer, "client", client, address, "7000"],
                capture_output=True, text=True, timeout=60)
            told = [path.read_text().splitlines() for path in sorted(pathlib.Path(folder).iterdir())]
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(told, [server_events, client_events], done.stderr)

    def test_client_disconnects(self):
        for cluster in ("cib", "cx5"):
            self.expect_events("accept", "leave", ACCEPTED + LEFT + ["RDMA_CM_EVENT_TIMEWAIT_EXIT 0", "end"],
                               CONNECTED + LEFT + ["end"], cluster)

    def test_server_disconnects(self):
        self.expect_events("leave", "wait", ACCEPTED + LEFT + ["RDMA_CM_EVENT_TIMEWAIT_EXIT 0", "end"],
                           CONNECTED + LEFT + ["end"])

    def test_destroyed_connection_is_disconnected(self):
        self.expect_events("destroy", "wait", ACCEPTED + ["end"], CONNECTED + LEFT + ["end"])

    def test_request_is_refused(self):
        # 28: IB_CM_REJ_CONSUMER_DEFINED
        self.expect_events("refuse", "wait", REQUEST + ["end"], RESOLVED + ["RDMA_CM_EVENT_REJECTED 28 'no'", "end"])

    def test_forgotten_request_is_refused(self):
        self.expect_events("forget", "wait", REQUEST + ["end"], RESOLVED + ["RDMA_CM_EVENT_REJECTED 28 ''", "end"])

    def test_server_dies_before_it_accepts(self):
        self.expect_events("die", "wait", REQUEST, RESOLVED + ["RDMA_CM_EVENT_REJECTED 28 ''", "end"])

    def test_server_dies_in_a_connection(self):
        self.expect_events("die_connected", "wait", ACCEPTED, CONNECTED + LEFT + ["end"])

    def test_listener_dies(self):
        # 8: IB_CM_REJ_INVALID_SERVICE_ID
        self.expect_events("die_listening", "wait", LISTENING, RESOLVED + ["RDMA_CM_EVENT_REJECTED 8 ''", "end"])

    def test_client_dies_before_it_is_connected(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                [VERBSCOPE, "simulate", "--output", folder, "--", self.peer, "server", "accept", "127.0.0.1", "7000",
                 "::", self.peer, "client", "vanish", "10.1.0.1", "7000"], capture_output=True, timeout=60)
            told = [path.read_text().splitlines() for path in sorted(pathlib.Path(folder).iterdir())]
        self.assertEqual(told[0], REQUEST + ["RDMA_CM_EVENT_REJECTED 28 ''"])

    def test_no_such_node(self):
        # 110: ETIMEDOUT
        self.expect_events("die_listening", "wait", LISTENING, ["RDMA_CM_EVENT_ADDR_ERROR -110", "end"],
                           address="10.1.0.77")

    def run_pair(self, server, client, expected, cluster="cib"):
        require(self, server[0], "perftest" if server[0].startswith("ib_") else "rdmacm-utils")
        done = simulate(VERBSCOPE, server, client, cluster=cluster)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(expected, done.stdout)

    def test_rping(self):
        for options in ([], ["-q"]):
            for cluster in ("cib", "cx6"):
                client = ["rping", "-c", "-a", "node0", "-C", "3", "-v", "-V", *options]
                self.run_pair(["rping", "-s", "-a", "node0", "-C", "3", *options], client, "rdma-ping-2: ", cluster)

    def test_datagrams(self):
        for cluster in ("cib", "cx6"):
            self.run_pair(["udaddy"], ["udaddy", "-s", "node0"], "return status 0", cluster)

    def groups_of(self, *options, cluster="cib", of_sender=()):
        """What a receiver and then a sender of mckey print."""
        require(self, "mckey", "rdmacm-utils")
        with tempfile.TemporaryDirectory() as folder:
            command = ["mckey", "-m", "239.1.2.3", "-C", "5", *options]
            done = subprocess.run([VERBSCOPE, "simulate", "--cluster", cluster, "--output", folder, "--time_limit", "60s", "--",
                                   *command, "::", *command, "-s", *of_sender], capture_output=True, text=True, timeout=90)
            told = [path.read_text() for path in sorted(pathlib.Path(folder).iterdir())]
        self.assertEqual(done.returncode, 0, "".join(told) + done.stderr)
        return told

    def test_multicast_groups(self):
        # RFC 4391: the group's address in the last 28 bits; RoCE has the IPv4 address itself, and no LIDs.
        for cluster, joined in (("cib", "ff12:4001:ffff::f01:203 mlid 0xc001"), ("cx6", "ff12:4001:ffff::f01:203 mlid 0xc001"),
                                ("cx5", "::ffff:239.1.2.3 mlid 0x0")):
            receiver, sender = self.groups_of(cluster=cluster)
            for told in (receiver, sender):
                self.assertIn(f"joined dgid: {joined} ", told)
                self.assertIn("data transfers complete\ntest complete\nreturn status 0", told.replace("mckey: ", ""))
            self.assertIn("receiving data transfers", receiver)
            self.assertIn("initiating data transfers", sender)

    def test_several_memberships_without_loopback_and_of_ipoib(self):
        for options in (["-c", "3"], ["-l"], ["-p", "0x0002"]):
            with self.subTest(options=options):
                self.assertIn("return status 0", self.groups_of(*options)[0])
        self.assertIn("return status 0", self.groups_of(of_sender=["-o"])[0])  # a member that only sends

    def test_several_connections(self):
        self.run_pair(["ucmatose", "-c", "4"], ["ucmatose", "-c", "4", "-s", "node0"], "return status 0")

    def test_synchronous_identifiers(self):
        self.run_pair(["rdma_server"], ["rdma_client", "-s", "node0"], "rdma_client: end 0")

    def test_perftest(self):
        command = ["ib_write_lat", "-R", "-F", "-n", "100"]
        self.run_pair(command, [*command, "node0"], "t_typical")


if __name__ == "__main__":
    unittest.main()
