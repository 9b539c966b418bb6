#!/usr/bin/env python3
"""Sockets, addresses and children of simulated programs. Arguments: path of verbscope."""
import pathlib
import re
import sys
import unittest
import uuid

from simulated import simulate

VERBSCOPE = sys.argv.pop(1)
PROGRAMS = pathlib.Path(__file__).parent / "programs"
PYTHON = "/usr/bin/python3"


def run(*commands):
    return simulate(VERBSCOPE, *commands)


def python(name):
    return [PYTHON, str(PROGRAMS / name)]


class Outside(unittest.TestCase):
    def assert_all_ok(self, name, least):
        done = run(python(name), ["true"])
        lines = [line for line in done.stdout.splitlines() if line]
        self.assertEqual([line for line in lines if not line.endswith(" ok")], [], done.stderr)
        self.assertGreaterEqual(len(lines), least, done.stderr)

    def test_children(self):
        self.assert_all_ok("children.py", 17)

    def test_addresses(self):
        self.assert_all_ok("addresses.py", 8)

    def test_nodes_are_machines_with_a_boot_id_each(self):
        path = "/proc/sys/kernel/random/boot_id"
        shown = run(["cat", path], [PYTHON, "-c", f"print(open('{path}').read())"], ["grep", "-", path]).stdout.split()
        self.assertEqual(len(set(shown)), 3, shown)
        for each in shown:
            self.assertEqual(str(uuid.UUID(each)), each)

    def test_sockets_in_virtual_time(self):
        first, second = (run(python("socket_server.py"), python("socket_client.py")) for _ in range(2))
        self.assertIn("node0 ('10.1.0.1', 5000)", first.stdout, first.stderr)
        self.assertIn("from 10.1.0.2 at ('10.1.0.1', 5000)", first.stdout)
        self.assertIn("node1 10.1.0.2 ('10.1.0.1', 5000)", first.stdout)
        self.assertRegex(first.stdout, "received 5000 waited 25[01] ms")
        # Two ways of 20 us, and a few system calls of 0.3 us.
        trip = int(re.search("round trip ([0-9]+) ns", first.stdout)[1])
        self.assertTrue(40_000 <= trip < 45_000, trip)
        self.assertEqual(first.stdout, second.stdout)

    def test_shell(self):
        shell = ["sh", "-c", "sleep 0.2; for i in 1 2; do echo $i; done | while read x; do echo got $x; done; yes | head -c 300000 | wc -c"]
        done = run(shell, ["true"])
        self.assertEqual(done.stdout.split(), ["got", "1", "got", "2", "300000"], done.stderr)

    def test_verbs_of_a_child(self):
        server = ["sh", "-c", "sleep 0.2; ibv_rc_pingpong -d sim0 -g 0 -e -n 100"]
        client = ["sh", "-c", "sleep 0.2; ibv_rc_pingpong -d sim0 -g 0 -e -n 100 node0"]
        first, second = run(server, client), run(server, client)
        self.assertEqual(first.stdout.count("100 iters in"), 2, first.stderr)
        self.assertEqual(sorted(first.stdout.splitlines()), sorted(second.stdout.splitlines()))


if __name__ == "__main__":
    unittest.main()
