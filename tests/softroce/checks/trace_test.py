"""`verbscope trace` around programs that nobody changed: perftest, the examples of rdma-core, and a program of pyverbs. Each
ends as without it, and the counts are those that its options imply, to the request."""

import pathlib

from support import ADDRESS, BIN, DEVICE, BenchmarkTest, Program, listens, wait_for

COUNT = 1000
SIGNAL_EVERY = 10  # perftest's --cq-mod
LOOP = pathlib.Path(__file__).with_name("pyverbs_loop.py")


class Trace(BenchmarkTest):
    def start_traced(self, name, program, *options):
        command = [BIN / "verbscope", "trace", "--nic", "mlx5", "--json", self.folder / f"{name}.json", "--", program, *options]
        self.programs.append(Program(self.folder, name, command))
        return self.programs[-1]

    def pair(self, program, *options):
        """Both sides of a program under trace; yields their records."""
        BenchmarkTest.next_port += 1
        port = BenchmarkTest.next_port
        server = self.start_traced("server", program, "-d", DEVICE, "-p", port, *options)
        wait_for(f"the server to listen on port {port}: {server.describe()}",
                 lambda: listens(port) or server.process.poll() is not None)
        client = self.start_traced("client", program, "-d", DEVICE, "-p", port, *options, ADDRESS)
        for side in (client, server):
            self.assertEqual(side.finish(), 0, side.describe())
        return [self.only_record(name) for name in ("client", "server")]

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

    def test_write_bw(self):
        self.bandwidth("RDMA_WRITE", "ib_write_bw")

    def test_write_bw_uc_in_lists_on_four_qps(self):
        client, _ = self.bandwidth("RDMA_WRITE", "ib_write_bw", "-c", "UC", "-q", "4", "-l", "10", "--use_old_post_send", qps=4, post_list=10)
        extra = client["counters"][0]["extra"]
        self.assertEqual(extra["exact"]["mmio_doorbells"], 4 * COUNT // 10)
        self.assertEqual(sorted(qp["requests"] for qp in extra["qps"]), [COUNT] * 4)

    def test_write_bw_inline(self):
        client, _ = self.bandwidth("RDMA_WRITE", "ib_write_bw", "-I", "64")
        self.assertEqual(client["result"]["inline_bytes"], 64 * COUNT)
        # 16 + 16 + 4 + 64 bytes: two lines of BlueFlame each, and nothing that the adapter would read by itself.
        self.assertEqual(client["counters"][0]["extra"]["exact"]["mmio_wc_lines"], 2 * COUNT)

    def test_write_bw_by_both_interfaces(self):
        old = self.bandwidth("RDMA_WRITE", "ib_write_bw", "--use_old_post_send")[0]
        self.assertFalse(any(qp["builder"] for qp in old["counters"][0]["extra"]["qps"]))

    def test_send_bw(self):
        self.bandwidth("SEND", "ib_send_bw", receives=True)

    def test_send_bw_ud(self):
        self.bandwidth("SEND", "ib_send_bw", "-c", "UD", receives=True)

    def test_send_bw_shared_queue(self):
        _, server = self.bandwidth("SEND", "ib_send_bw", "--use-srq", receives=True)
        self.assertGreaterEqual(server["result"]["recvs"], COUNT)

    def test_send_bw_by_events(self):
        client, server = self.bandwidth("SEND", "ib_send_bw", "-e", receives=True)
        self.assertGreater(client["result"]["armed"], 0)
        self.assertGreater(server["result"]["armed"], 0)

    def test_read_lat(self):
        client, server = self.perftest("ib_read_lat", "-s", "64")
        self.expect(client, "RDMA_READ", COUNT, signaled=COUNT, send_completions=COUNT, posts=COUNT)
        self.expect(server, "RDMA_READ", 0)

    def test_atomic_bw(self):
        client, server = self.perftest("ib_atomic_bw", "-A", "FETCH_AND_ADD", "-Q", SIGNAL_EVERY)
        self.expect(client, "ATOMIC_FETCH_AND_ADD", COUNT, signaled=COUNT // SIGNAL_EVERY, payload_bytes=8 * COUNT)
        self.expect(server, "ATOMIC_FETCH_AND_ADD", 0)

    def test_rc_pingpong(self):
        for record in self.pair("ibv_rc_pingpong", "-g", "1", "-n", COUNT):
            self.expect(record, "SEND", COUNT, send_completions=COUNT, recv_completions=COUNT)

    def test_ud_pingpong(self):
        for record in self.pair("ibv_ud_pingpong", "-g", "1", "-n", COUNT):
            self.expect(record, "SEND", COUNT, send_completions=COUNT, recv_completions=COUNT)

    def test_pyverbs(self):
        program = self.start_traced("loop", "/usr/bin/python3", LOOP, "200", "30")
        self.assertEqual(program.finish(), 0, program.describe())
        self.assertEqual(program.out.read_text(), "200 messages, 30 writes\n")
        result = self.only_record("loop")["result"]
        self.assertEqual(result["by_opcode"], {"SEND": 200, "RDMA_WRITE": 30})
        self.assertEqual((result["recvs"], result["recv_completions"], result["send_completions"]), (200, 200, 230))

    def test_a_failure_stays_a_failure(self):
        program = self.start_traced("failing", "ib_write_bw", "-d", "no_such_device")
        self.assertNotEqual(program.finish(), 0, program.describe())
        self.assertEqual(self.records("failing"), [])
        self.assertIn("opened no RDMA device", program.err.read_text())
