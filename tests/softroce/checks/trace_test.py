"""`verbscope trace` around programs that nobody changed: perftest, the examples of rdma-core, and a program of pyverbs. Each
ends as without it, and the counts are those that its options imply, to the request."""

from support import BIN
from traced import COUNT, LOOP, PINGS, TracedTest


class Trace(TracedTest):
    def test_write_bw_uc_in_lists_on_four_qps(self):
        client, _ = self.bandwidth("RDMA_WRITE", "ib_write_bw", "-c", "UC", "-q", "4", "-l", "10", "--use_old_post_send", qps=4, post_list=10)
        extra = client["counters"][0]["extra"]
        self.assertEqual(extra["exact"]["mmio_doorbells"], 4 * COUNT // 10)
        self.assertEqual(sorted(qp["requests"] for qp in extra["qps"]), [COUNT] * 4)

    def test_send_bw_shared_queue(self):
        _, server = self.bandwidth("SEND", "ib_send_bw", "--use-srq", receives=True)
        self.assertGreaterEqual(server["result"]["recvs"], COUNT)

    def test_rping(self):
        # Each ping: the client announces a source and a sink, the server READs the one, WRITEs the other and answers twice.
        self.rping(self.start_program)
        without = [(self.folder / f"{side}.out").read_text() for side in ("server", "client")]
        self.rping(self.start_traced)
        self.assertEqual([(self.folder / f"{side}.out").read_text() for side in ("server", "client")], without)
        client, server = self.only_record("client")["result"], self.only_record("server")["result"]
        self.assertEqual(client["by_opcode"], {"SEND": 2 * PINGS})
        self.assertEqual(server["by_opcode"], {"RDMA_WRITE": PINGS, "SEND": 2 * PINGS, "RDMA_READ": PINGS})
        self.assertEqual(client["recv_completions"], 2 * PINGS)
        self.assertEqual(server["recv_completions"], 2 * PINGS)

    def test_pyverbs(self):
        program = self.start_traced("loop", "/usr/bin/python3", LOOP, 200, 30, 40)
        self.assertEqual(program.finish(), 0, program.describe())
        self.assertEqual(program.out.read_text(), "200 messages, 30 writes, 40 built\n")
        result = self.only_record("loop")["result"]
        self.assertEqual(result["by_opcode"], {"SEND": 200, "RDMA_WRITE": 70})
        self.assertEqual((result["recvs"], result["recv_completions"], result["send_completions"]), (200, 200, 270))
        self.assertEqual((result["posts"], result["posts_alone"]), (250, 230))
        self.assertEqual((result["inlined"], result["inline_bytes"]), (10, 640))

    def test_verify_finds_no_queue_memory(self):
        program = self.start_program("verified", BIN / "verbscope", "trace", "--verify", "--json", self.folder / "verified.json", "--",
                                     "/usr/bin/python3", LOOP, 20, 3, 4)
        self.assertEqual(program.finish(), 0, program.describe())
        self.assertIn("verified     rxe0: queue memory is not readable: the adapter is none of mlx4 and mlx5\n", program.err.read_text())
        (record,) = self.records("verified")
        self.assertEqual(record["counters"][0]["extra"]["verified"],
                         [{"device": "rxe0", "no_memory": "the adapter is none of mlx4 and mlx5"}])
        self.assertEqual(record["result"]["by_opcode"], {"SEND": 20, "RDMA_WRITE": 7})

    def test_a_failure_stays_a_failure(self):
        program = self.start_traced("failing", "ib_write_bw", "-d", "no_such_device")
        self.assertNotEqual(program.finish(), 0, program.describe())
        self.assertEqual(self.records("failing"), [])
        self.assertIn("opened no RDMA device", program.err.read_text())
