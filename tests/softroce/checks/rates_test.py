"""Every benchmark runs between two processes over every transport, and checks each byte that arrives."""

from support import DEVICE, BenchmarkTest

ITERATIONS = "640"  # no time: what an emulated machine does is not steady, and means nothing


class Rates(BenchmarkTest):
    def run_pair(self, benchmark, transport, post_list):
        server, client = self.start_pair(benchmark, "-c", transport, "-s", "64", "-l", str(post_list), "-n", ITERATIONS,
                                         "--warmup", "200ms", "--validate")
        for program in (server, client):
            self.assertEqual(program.finish(), 0, program.describe())
        records = [*self.records("server"), *self.records("client")]
        self.assertEqual(len(records), 2, server.describe())
        for record in records:
            self.assertEqual((record["benchmark"], record["status"]), (benchmark, "ok"))
            self.assertEqual(record["environment"]["fabric"], "verbs")
            self.assertIs(record["environment"]["simulated"], False)
            self.assertEqual(record["config"]["connection"], transport)
            self.assertEqual(record["config"]["post_list"], post_list)
            self.assertTrue(record["config"]["ib_dev"].startswith(DEVICE))
            self.assertGreater(record["result"]["window_s"], 0)
        # The server counts. A client that starves hears of the window when it is over, and has no rate of its own.
        self.assertGreater(records[0]["result"]["rate_mops"], 0)
        validation = records[0]["result"]["validation"]  # the server knows what either side received
        self.assertEqual(validation["wrong"], 0)
        self.assertGreater(validation["checked"], 0)


def add_tests():
    for benchmark in ["send_rate", "recv_rate"]:
        for transport in ["RC", "UC", "UD"]:
            for post_list in [1, 16]:
                def test(self, arguments=(benchmark, transport, post_list)):
                    self.run_pair(*arguments)
                setattr(Rates, f"test_{benchmark}_{transport}_post_list_{post_list}", test)


add_tests()
