"""What the checks of `verbscope trace` share: programs that nobody changed, run with it and without."""

import pathlib
import re
import subprocess

from support import ADDRESS, BIN, DEVICE, BenchmarkTest, Program, listens, wait_for

COUNT = 1000
PINGS = 100
SIGNAL_EVERY = 10  # perftest's --cq-mod
LOOP = pathlib.Path(__file__).with_name("pyverbs_loop.py")


def rdma_cm_listens(port):
    """Whether a program listens on the port of rdma_cm."""
    shown = subprocess.run(["rdma", "resource", "show", "cm_id"], capture_output=True, text=True, check=True, timeout=60).stdout
    return any("state LISTEN" in line and f":{port} " in line + " " for line in shown.splitlines())


class TracedTest(BenchmarkTest):
    def start_program(self, name, *command):
        self.programs.append(Program(self.folder, name, command))
        return self.programs[-1]

    def start_traced(self, name, *command):
        records = self.folder / f"{name}.json"
        records.unlink(missing_ok=True)  # those of a run before
        return self.start_program(name, BIN / "verbscope", "trace", "--nic", "mlx5", "--json", records, "--", *command)

    def run_pair(self, start, program, *options):
        """Both sides of a program, each started by `start`; they must end well."""
        BenchmarkTest.next_port += 1
        port = BenchmarkTest.next_port
        server = start("server", program, "-d", DEVICE, "-p", port, *options)
        wait_for(f"the server to listen on port {port}: {server.describe()}",
                 lambda: listens(port) or server.process.poll() is not None)
        client = start("client", program, "-d", DEVICE, "-p", port, *options, ADDRESS)
        for side in (client, server):
            self.assertEqual(side.finish(), 0, side.describe())

    def pair(self, program, *options):
        """Both sides of a program under trace; yields their records."""
        self.run_pair(self.start_traced, program, *options)
        return [self.only_record(name) for name in ("client", "server")]

    def texts(self):
        """What both sides printed, but for figures, which differ from run to run, and how they are aligned."""
        texts = [(self.folder / f"{side}.out").read_text() for side in ("server", "client")]
        # A figure that fills its column, the last of a line, has no blank behind it.
        aligned_alike = [re.sub(r" +$", "", re.sub(r"[ \t]+", " ", text), flags=re.MULTILINE) for text in texts]
        return [re.sub(r"[-+.]?\d[\da-fx.:]*", "N", text) for text in aligned_alike]

    def expect_same_text(self, program, *options):
        self.run_pair(self.start_program, program, *options)
        without = self.texts()
        self.run_pair(self.start_traced, program, *options)
        self.assertEqual(self.texts(), without)

    def only_record(self, name):
        (record,) = self.records(name)
        self.assertEqual(record["benchmark"], "trace")
        self.assertTrue(record["counters"][0]["extra"]["computed"])
        return record

    def perftest(self, program, *options):
        return self.pair(program, "-x", "1", "-F", "-n", COUNT, *options)

    def expect(self, record, opcode, count, **others):
        result = record["result"]
        self.assertEqual(result["by_opcode"], {opcode: count} if count else {})
        self.assertEqual(result["errors"], 0)
        for name, value in others.items():
            self.assertEqual(result[name], value, name)

    def bandwidth(self, opcode, program, *options, qps=1, post_list=1, receives=False, size=64):
        """A client of perftest that posts COUNT requests on each QP, of which every tenth is signaled."""
        client, server = self.perftest(program, "-s", size, "-Q", SIGNAL_EVERY, *options)
        total = COUNT * qps
        self.expect(client, opcode, total, signaled=total // SIGNAL_EVERY, send_completions=total // SIGNAL_EVERY,
                    payload_bytes=total * size, posts=total // post_list)
        self.expect(server, opcode, 0, recv_completions=total if receives else 0)
        return client, server

    def rping(self, start):
        """Both sides of a program that connects by librdmacm: the address belongs to dummy0, which rxe0 is over."""
        BenchmarkTest.next_port += 1
        port = BenchmarkTest.next_port
        common = ["rping", "-a", ADDRESS, "-p", port, "-C", PINGS, "-S", 64, "-v"]
        server = start("server", *common, "-s")
        wait_for(f"the server to listen: {server.describe()}",
                 lambda: rdma_cm_listens(port) or server.process.poll() is not None)
        client = start("client", *common, "-c")
        for side in (client, server):
            self.assertEqual(side.finish(), 0, side.describe())
