#!/usr/bin/env python3
"""Programs that are killed under `verbscope simulate`, time limits, and users with few rights. Arguments: path of verbscope."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from simulated import require, without_names

VERBSCOPE = pathlib.Path(sys.argv.pop(1))
CLUSTER = pathlib.Path(__file__).resolve().parents[2] / "configs/clusters/cib.json"
LIMIT_S = 2
BUSY_S = 5  # more, where other tests have the processors: the others get a virtual second to end
ENDLESS = {"ib_send_bw": ["ib_send_bw", "-d", "sim0", "-n", "100000000"], "rping": ["rping", "-C", "100000000"]}


def processes_of(launcher):
    """The processes that take part in the simulation of this launcher, by their programs."""
    found = {}
    for folder in pathlib.Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and f"/proc/{launcher}/fd/".encode() in (folder / "environ").read_bytes():
                found[int(folder.name)] = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            pass  # it has ended meanwhile
    return found


def cpu_s(process):
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Ends(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)

    def start(self, *words):
        run = subprocess.Popen([VERBSCOPE, "simulate", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(self.scratch)})
        self.addCleanup(run.communicate)
        self.addCleanup(run.terminate)
        return run

    def expect_end(self, run, since, reason):
        """It ends in time with this last line, and leaves nothing behind. Returns what the programs have said."""
        out, err = run.communicate(timeout=60)
        took = time.monotonic() - since
        self.assertEqual(run.returncode, 1, out + err)
        self.assertEqual(err.splitlines()[-1], f"verbscope: {reason}", out + err)
        self.assertLess(took, LIMIT_S + BUSY_S)
        self.assertEqual(processes_of(run.pid), {})
        self.assertEqual(list(self.scratch.iterdir()), [])
        self.assertEqual([path.name for path in pathlib.Path("/dev/shm").iterdir() if "verbscope" in path.name], [])
        return without_names(out) + without_names(err)


class Killed(Ends):
    def kill(self, program, node, *options):
        package = "perftest" if program.startswith("ib_") else "rdmacm-utils"
        require(self, program, package)
        server = [*ENDLESS[program], *options]
        client = [*server, "node0"]
        if program == "rping":
            server, client = [*server, "-s", "-a", "node0"], [*server, "-c", "-a", "node0"]
        run = self.start("--", *server, "::", *client)
        limit = time.monotonic() + 30
        while True:  # until both have worked for a while
            found = processes_of(run.pid)
            if len(found) == 2 and all(cpu_s(process) > 0.2 for process in found):
                break
            self.assertLess(time.monotonic(), limit, "the programs did not come to work")
            time.sleep(0.02)
        arguments = [each.encode() for each in (client if node else server)[1:]]
        victim = next(process for process, words in found.items() if words[1:-1] == arguments)
        begin = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        return self.expect_end(run, begin, f"node{node}: {program}: killed by signal 9 (Killed)")

    def test_client_of_a_killed_server_has_its_own_error(self):
        self.assertRegex(self.kill("ib_send_bw", 0), "Failed status 12|transport retry counter exceeded")

    def test_server_of_a_killed_client_is_ended(self):
        self.kill("ib_send_bw", 1)  # it would wait for messages for ever, as on a device

    def test_connections_of_a_killed_program_are_disconnected(self):
        self.assertIn("client DISCONNECT EVENT", self.kill("rping", 0))
        self.assertIn("server DISCONNECT EVENT", self.kill("rping", 1))

    def test_killed_before_it_has_called_anything(self):
        begin = time.monotonic()
        run = self.start("--", "sh", "-c", "kill -9 $$", "::", "sleep", "1000000000")
        self.expect_end(run, begin, "node0: sh: killed by signal 9 (Killed)")

    def test_programs_that_never_end_are_ended_by_the_limit(self):
        begin = time.monotonic()
        run = self.start("--time_limit", "300ms", "--", "sh", "-c", "trap '' TERM; while :; do :; done")
        self.expect_end(run, begin, "not finished after 0.3 s")


class FewRights(Ends):
    """As user nobody, with no network but the loopback of a namespace of its own."""

    def run_as_nobody(self, *words):
        require(self, "unshare", "util-linux")
        require(self, "ip", "iproute2")
        folder = self.scratch / "bin"
        folder.mkdir()
        for path in (VERBSCOPE, VERBSCOPE.parent / "libverbscope_simulate.so", CLUSTER):
            shutil.copy(path, folder)
        for path in (self.scratch, folder, *folder.iterdir()):
            path.chmod(0o755)
        command = [folder / "verbscope", "simulate", "--cluster", folder / "cib.json", "--", *words]
        to_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"] if os.geteuid() == 0 else []
        namespace = ["unshare", "-n" if to_nobody else "-Urn", "--", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
        tried = subprocess.run([*namespace, *to_nobody, "true"], capture_output=True, text=True)
        if tried.returncode != 0:
            self.skipTest(f"this kernel refuses a network namespace: {tried.stderr.strip()}")
        return subprocess.run(list(map(str, [*namespace, *to_nobody, *command])), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120, cwd="/")

    def test_perftest(self):
        require(self, "ib_send_lat", "perftest")
        program = ["ib_send_lat", "-d", "sim0", "-n", "200"]
        done = self.run_as_nobody(*program, "::", *program, "node0")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("t_typical", done.stdout)

    def test_connection_manager(self):
        require(self, "rping", "rdmacm-utils")
        done = self.run_as_nobody("rping", "-s", "-a", "node0", "-C", "3", "::", "rping", "-c", "-a", "node0", "-C", "3", "-v")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("rdma-ping-2: ", done.stdout)

    def test_the_user_is_nobody(self):
        done = self.run_as_nobody("sh", "-c", "id -u; ls /sys/class/net | wc -l")
        if os.geteuid() == 0:
            self.assertIn("node0: 65534\n", done.stdout, done.stderr)


if __name__ == "__main__":
    unittest.main()
