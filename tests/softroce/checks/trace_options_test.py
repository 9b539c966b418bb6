"""Further programs under `verbscope trace`, in `test-long`: perftest's by transport and by option, the examples of rdma-core."""

import re

from traced import COUNT, SIGNAL_EVERY, TracedTest


class TraceOptions(TracedTest):
    def test_write_bw(self):
        self.bandwidth("RDMA_WRITE", "ib_write_bw")

    def test_write_bw_inline_as_the_program_says(self):
        # perftest knows the devices that inline, and soft-RoCE is none of them: it says so, and does not.
        client, _ = self.bandwidth("RDMA_WRITE", "ib_write_bw", "-I", "64")
        (most,) = re.findall(r"Max inline data : (\d+)\[B\]", (self.folder / "client.out").read_text())
        self.assertEqual(client["result"]["inlined"], COUNT if int(most) >= 64 else 0)

    def test_write_bw_by_the_interface_that_the_program_names(self):
        # perftest builds with ibv_wr_* on devices that it knows, and soft-RoCE is none of them.
        for options in ([], ["--use_old_post_send"]):
            client, _ = self.bandwidth("RDMA_WRITE", "ib_write_bw", *options)
            (api,) = re.findall(r"ibv_wr\* API +: (\w+)", (self.folder / "client.out").read_text())
            self.assertEqual([qp["builder"] for qp in client["counters"][0]["extra"]["qps"]], [api == "ON"])
            (self.folder / "client.json").unlink()
            (self.folder / "server.json").unlink()

    def test_send_bw(self):
        self.bandwidth("SEND", "ib_send_bw", receives=True)

    def test_send_bw_ud(self):
        self.bandwidth("SEND", "ib_send_bw", "-c", "UD", receives=True)

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

    def test_what_programs_print_is_as_without(self):
        for program, options in (("ib_write_bw", ["-x", "1", "-F", "-n", COUNT]), ("ib_read_lat", ["-x", "1", "-F", "-n", COUNT]),
                                 ("ibv_rc_pingpong", ["-g", "1"]), ("ibv_ud_pingpong", ["-g", "1"])):
            with self.subTest(program):
                self.expect_same_text(program, *options)

    def test_findings_of_write_bw(self):
        # By itself perftest posts one request after the other to each QP; told to post lists, it has that finding no more.
        client, _ = self.bandwidth("RDMA_WRITE", "ib_write_bw", "-q", "8", qps=8, size=16)
        self.assertEqual(client["config"]["cluster"], "cib")
        self.assertEqual(client["result"]["findings"][0]["name"], "one by one")
        told = (self.folder / "client.err").read_text()
        print(told)
        self.assertIn("posted one by one", told)
        listed, _ = self.bandwidth("RDMA_WRITE", "ib_write_bw", "-q", "8", "-l", "10", qps=8, post_list=10, size=16)
        self.assertNotIn("one by one", [finding["name"] for finding in listed["result"]["findings"]])
