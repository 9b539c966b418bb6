"""Systems built from verbs, between processes: values are served and checked, also when a peer dies."""

import time

from support import ADDRESS, DEVICE, BenchmarkTest, packets_sent, wait_for

TIMEOUT_S = 10
# Operations are counted, for what an emulated machine does in a time is not steady.
ITERATIONS = "200"
ITERATIONS_BESIDE_A_DEATH = "5000"  # a client dies long before the other has done them
NOTICED_WITHIN_S = 30


class Sequencer(BenchmarkTest):
    DESIGNS = {"herd": ["--batching"], "herd_one_by_one": [], "spec": ["--batching"], "spec_one_by_one": [], "atomic": []}

    def options(self, design, *more):
        return ["--design", design.split("_")[0], *self.DESIGNS[design], "--outstanding", "4", "--timeout",
                f"{TIMEOUT_S}s", *more]

    def start_three(self, *options):
        """A server and two clients."""
        BenchmarkTest.next_port += 1
        common = ["-d", DEVICE, "-p", BenchmarkTest.next_port, *self.counter_sources, *options]
        server = self.start("server", "sequencer", *common, "--clients", "2", "--cores", "0")
        clients = [self.start(f"client{i}", "sequencer", *common, "--cores", "1", ADDRESS) for i in range(2)]
        return server, clients

    def values_of(self, program):
        record = self.records(program.name)[0]
        self.assertEqual(record["status"], "ok", program.describe())
        return record["result"]

    def run_design(self, design, *more):
        server, client = self.start_pair("sequencer", *self.options(design, "-n", ITERATIONS, "--warmup", "0.5", *more))
        for program in [client, server]:
            self.assertEqual(program.finish(), 0, program.describe())
        result = self.values_of(server)
        values = result["values"]
        self.assertEqual(values["checked"], "each value")
        self.assertGreater(values["handed_out"], 0)
        self.assertEqual((values["repeated"], values["disordered"]), (0, 0))
        self.assertEqual(values["received"] + values["lost"], values["handed_out"])
        # An answer to a request that was sent again may come when its client is done.
        self.assertLessEqual(values["lost"], values["retries"])
        self.assertGreater(result["lat_samples"], 0)
        print(f"{design}: {values['handed_out']} values, {values['retries']} asked again")
        return result

    def test_herd(self):
        self.run_design("herd")

    def test_herd_one_by_one(self):
        self.run_design("herd_one_by_one", "-q", "2")

    def test_spec(self):
        self.run_design("spec")

    def test_spec_one_by_one(self):
        self.run_design("spec_one_by_one")

    def test_atomic(self):
        self.run_design("atomic")

    def test_spec_wraps(self):
        result = self.run_design("spec", "--start_value", str(2**32 - 100))
        self.assertGreater(result["values"]["handed_out"], 100)
        self.assertGreater(result["workers"]["corrections"], 0)

    def kill_client(self, design):
        server, clients = self.start_three(*self.options(design, "-n", ITERATIONS_BESIDE_A_DEATH, "--warmup", "0.5"))
        before = packets_sent()
        wait_for("traffic", lambda: packets_sent() > before + 2000 or server.process.poll() is not None)
        clients[0].kill()
        for program in [clients[1], server]:
            self.assertEqual(program.finish(), 0, program.describe())
        result = self.values_of(server)
        self.assertEqual(result["clients_gone"], 1)
        self.assertEqual(len(result["clients"]), 1)
        values = result["values"]
        self.assertGreater(values["received"], 0)
        self.assertEqual((values["repeated"], values["disordered"]), (0, 0))
        print(f"{values['received']} of {values['handed_out']} values went to the client that is left")

    def test_client_killed_herd(self):
        self.kill_client("herd")

    def test_client_killed_spec(self):
        self.kill_client("spec")

    def test_client_killed_atomic(self):
        self.kill_client("atomic")

    def kill_server(self, design):
        server, clients = self.start_three(*self.options(design, "-D", "60"))
        before = packets_sent()
        wait_for("traffic", lambda: packets_sent() > before + 2000 or server.process.poll() is not None)
        server.kill()
        start = time.monotonic()
        for client in clients:
            self.assertGreater(client.finish(NOTICED_WITHIN_S), 0, client.describe())
            self.assertTrue(client.err.read_text().strip(), "no message: " + client.describe())
            self.assertEqual([record["status"] for record in self.records(client.name)], ["failed"])
        print(f"noticed after {time.monotonic() - start:.1f} s")

    def test_server_killed_herd(self):
        self.kill_server("herd")

    def test_server_killed_spec(self):
        self.kill_server("spec")

    def test_server_killed_atomic(self):
        self.kill_server("atomic")


class Rpc(BenchmarkTest):
    """General RPCs: both machines call and serve, and every byte is checked."""

    def run_calls(self, *options):
        server, client = self.start_pair("rpc_rate", "--outstanding", "12", *options, "-n", ITERATIONS, "--warmup", "50ms")
        for program in (client, server):
            self.assertEqual(program.finish(), 0, program.describe())
        records = [*self.records("server"), *self.records("client")]
        self.assertEqual([record["status"] for record in records], ["ok", "ok"], server.describe())
        for record in records:
            result = record["result"]
            self.assertEqual((result["unanswered"], result["handled_twice"], result["rpc"]["unknown"]), (0, 0, 0))
            self.assertGreater(result["rpc"]["answered"], 0)
        self.assertGreater(records[0]["result"]["lat_samples"], 0)
        return records[0]["result"]

    def test_rpc_small(self):
        self.run_calls()

    def test_rpc_of_several_packets(self):
        result = self.run_calls("-s", "20000", "--response_size", "9000", "--cc", "timely")
        # 20 packets of request and 9 of response, each way, with 1008 bytes of data in a packet.
        self.assertGreater(result["rpc"]["packets_sent"], 20 * result["rpc"]["answered"])

    def test_rpc_to_a_server(self):
        self.run_calls_of_clients("rpc_rate", "--outstanding", "12", "--serve", "server", "-s", "3000", "-n", ITERATIONS)

    def test_rpc_large(self):
        result = self.run_calls_of_clients("rpc_large", "-s", "50000", "-n", ITERATIONS, "--rto", "500ms", "--cpu_split")
        self.assertGreater(result["cpu_ns_per_request"]["receive"], 0)
        self.assertGreater(result["cpu_ns_per_request"]["handler"], 0)

    def test_ordered_store(self):
        result = self.run_calls_of_clients("ordered_kv", "--keys", "10000", "--scans", "10", "--puts", "20", "--scan_length", "30",
                                           "--outstanding", "4", "-n", ITERATIONS)
        self.assertGreater(min(result["lat_samples"], result["scan_samples"], result["put_samples"]), 0)

    def run_calls_of_clients(self, program, *options):
        server, client = self.start_pair(program, *options, "--warmup", "50ms")
        for program in (client, server):
            self.assertEqual(program.finish(), 0, program.describe())
        result = self.records("server")[0]["result"]
        self.assertEqual(result["handled_twice"], 0)
        self.assertEqual(result["clients"][0]["result"]["unanswered"], 0)
        self.assertGreater(result["rate_mops"], 0)
        return result
