"""Every benchmark beside send_rate and recv_rate runs between two processes and checks what it moved, or says in one line what
the device has not."""

import signal

from support import ADDRESS, BIN, DEVICE, BenchmarkTest, Program, listens, wait_for

# Name of the check: benchmark and options. A few hundred operations each: rates under emulation mean nothing.
RUNS = {
    "write_rate_RC": ["write_rate", "-c", "RC"],
    "write_rate_UC": ["write_rate", "-c", "UC"],
    "write_rate_inbound": ["write_rate", "-c", "RC", "--direction", "in"],
    "read_rate": ["read_rate", "-c", "RC"],
    "read_rate_inbound": ["read_rate", "-c", "RC", "--direction", "in"],
    "read_chain": ["read_chain", "--hops", "3"],
    "wqe_cache_read": ["wqe_cache", "--verb", "read", "--window", "16"],
    "wqe_cache_write": ["wqe_cache", "--verb", "write", "--window", "16"],
    "qp_scaling_read": ["qp_scaling", "-c", "RC", "--verb", "read", "--connections", "8"],
    "qp_scaling_write": ["qp_scaling", "-c", "RC", "--verb", "write", "--connections", "8"],
    "qp_scaling_send": ["qp_scaling", "-c", "UD", "--verb", "send", "--connections", "8"],
    "read_rate_window": ["read_rate", "--wait", "oldest", "--window", "8", "-q", "4", "--order", "random", "--cq_per_qp"],
    "write_rate_whole_window": ["write_rate", "--wait", "all", "--window", "8", "-l", "4", "-Q", "4"],
    "all_to_all_read": ["all_to_all", "--machines", "2", "--vms", "3", "--window", "8"],
    "atomic_rate_fetch_add": ["atomic_rate", "--verb", "fetch_add", "-Z", "64"],
    "atomic_rate_compare_swap": ["atomic_rate", "--verb", "compare_swap", "-Z", "64"],
    "echo_rate_write_write": ["echo_rate", "--mode", "write_write"],
    "echo_rate_write_send": ["echo_rate", "--mode", "write_send"],
    "echo_rate_send_send": ["echo_rate", "--mode", "send_send"],
    "echo_rate_lists_UC_write": ["echo_rate", "--mode", "write_write", "-c", "UC", "-q", "4", "-l", "8", "--work_ns", "2000"],
    "echo_rate_lists_RC_write_UD_send": ["echo_rate", "--mode", "write_send", "-c", "RC", "-q", "4", "-l", "8", "--work_ns", "2000"],
    "echo_rate_lists_UD_send": ["echo_rate", "--mode", "send_send", "-c", "UD", "-q", "4", "-l", "8", "--work_ns", "2000"],
    "verb_latency_read": ["verb_latency", "--verb", "read"],
    "verb_latency_write": ["verb_latency", "--verb", "write"],
    "verb_latency_write_inline": ["verb_latency", "--verb", "write_inline"],
    "verb_latency_send": ["verb_latency", "--verb", "send"],
    "verb_latency_fetch_add": ["verb_latency", "--verb", "fetch_add"],
    "verb_latency_compare_swap": ["verb_latency", "--verb", "compare_swap"],
    "verb_latency_echo": ["verb_latency", "--verb", "echo"],
    "write_visibility": ["write_visibility"],
    "builder_send_rate": ["send_rate", "-c", "UD", "--wr_api"],
    "builder_read_rate": ["read_rate", "-c", "RC", "--wr_api"],
    "events_send_rate": ["send_rate", "-c", "RC", "-e"],
    "events_read_rate": ["read_rate", "-c", "RC", "-e"],
    "shared_qps_read_rate": ["read_rate", "--threads", "2", "--threads_per_qp", "2", "-q", "2", "--window", "4", "--wait", "all"],
    "both_ways_send_rate_RC": ["send_rate", "-c", "RC", "-b"],
    "both_ways_read_rate": ["read_rate", "-b"],
    "immediate_write_rate": ["write_rate", "--write_with_imm"],
    "immediate_write_rate_inbound": ["write_rate", "--write_with_imm", "--direction", "in"],
    "librdmacm_write_rate": ["write_rate", "-R", "-q", "4"],
    "librdmacm_send_rate_both_ways": ["send_rate", "-R", "-q", "2", "-b"],
    "settings_read_rate": ["read_rate", "--tclass", "96", "-S", "3", "--flow_label", "7", "-u", "16", "--retry_count", "5", "-o", "2"],
    "settings_send_rate_UD": ["send_rate", "-c", "UD", "--tclass", "96", "-S", "3", "--disable_pcie_relaxed"],
    "shared_queue_recv_rate": ["recv_rate", "-c", "RC", "--srq"],
}
# The benchmarks' features that rxe0 has not.
REFUSED = {
    "inline_receive": ["recv_rate", "-c", "RC", "--inline_recv", "32"],
    "doorbell_registers": ["write_rate", "-c", "RC", "--uars", "32"],
    "thread_domains": ["write_rate", "-c", "RC", "--uars", "exclusive"],
}
ITERATIONS = "320"  # a count below four signals of a QP (4 * 64) is judged by the warm-up's rate, which is not steady here


class Benchmarks(BenchmarkTest):
    def check_run(self, benchmark, *options):
        server, client = self.start_pair(benchmark, *options, "-n", ITERATIONS, "--warmup", "50ms", "--validate")
        for program in (server, client):
            self.assertEqual(program.finish(), 0, program.describe())
        records = [*self.records("server"), *self.records("client")]
        self.assertEqual(len(records), 2, server.describe())
        for record in records:
            self.assertEqual((record["benchmark"], record["status"]), (benchmark, "ok"))
            self.assertEqual(record["environment"]["fabric"], "verbs")
            self.assertTrue(record["config"]["ib_dev"].startswith(DEVICE))
        validation = records[0]["result"]["validation"]  # the server knows what either side received
        self.assertEqual(validation["wrong"], 0)
        self.assertGreater(validation["checked"], 0)
        if benchmark == "echo_rate":
            self.check_echoes(records[0], options)
        print(f"{validation['checked']} checked")

    def check_all_sizes(self, *words):
        """The two sides meet again for each size, and each has a record of each; the server's console a line."""
        server, client = self.start_pair(*words, "-a", "-s", "16", "-n", ITERATIONS, "--warmup", "50ms")
        for program in (server, client):
            self.assertEqual(program.finish(), 0, program.describe())
        for records in (self.records("server"), self.records("client")):
            self.assertEqual([record["config"]["size"] for record in records], [2, 4, 8, 16], server.describe())
            self.assertEqual({record["status"] for record in records}, {"ok"})
        lines = [line.split() for line in server.out.read_text().splitlines()]
        self.assertEqual([words[0] for words in lines if words and words[0].isdigit()], ["2", "4", "8", "16"], server.describe())

    def test_all_sizes_write_rate(self):
        self.check_all_sizes("write_rate")

    def test_all_sizes_verb_latency(self):
        self.check_all_sizes("verb_latency", "--verb", "send")

    def test_run_infinitely(self):
        """The server prints a line for each window until somebody stops it, which ends its client too."""
        port = 19999
        command = [BIN / "write_rate", "--run_infinitely", "-d", DEVICE, "-x", "-1", "-p", port, "-D", "300ms", "--warmup", "50ms",
                   *self.counter_sources]
        server = Program(self.folder, "server", [*command, "--cores", "0"])
        self.programs.append(server)
        wait_for(f"the server to listen: {server.describe()}", lambda: listens(port) or server.process.poll() is not None)
        client = Program(self.folder, "client", [*command, "--cores", "1", ADDRESS])
        self.programs.append(client)
        wait_for(f"three windows: {server.describe()}", lambda: server.out.read_text().count("Mops") >= 3)
        server.process.send_signal(signal.SIGINT)
        self.assertEqual(server.finish(), -signal.SIGINT, server.describe())
        self.assertNotEqual(client.finish(), 0, client.describe())

    def check_echoes(self, record, options):
        result = record["result"]
        self.assertGreater(result["lat_samples"], 0)
        self.assertGreater(result["lat_p50_ns"], 2000 if "--work_ns" in options else 0)  # the answer is made after the work
        self.assertLessEqual(result["answers_per_post"]["max"], int(options[options.index("-l") + 1]) if "-l" in options else 1)

    def check_refusal(self, benchmark, *options):
        server, client = self.start_pair(benchmark, *options, "-n", ITERATIONS)
        self.assertNotEqual(server.finish(), 0, server.describe())
        client.finish()
        lines = server.err.read_text().splitlines()
        self.assertEqual(len(lines), 1, server.describe())
        self.assertIn(f"not supported by {DEVICE}: ", lines[0])
        print(lines[0])


def add_tests():
    for runs, check in [(RUNS, Benchmarks.check_run), (REFUSED, Benchmarks.check_refusal)]:
        for name, words in runs.items():
            def test(self, check=check, words=tuple(words)):
                check(self, *words)
            suffix = "" if runs is RUNS else "_is_refused"
            setattr(Benchmarks, f"test_{name}{suffix}", test)


add_tests()
