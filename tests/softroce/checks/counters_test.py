"""Counters beside a benchmark on a real device: the kernel's counters of the NIC come into both records, a source that
is not there says why in one line, and a required one ends the run."""

from support import DEVICE, BenchmarkTest

OPERATIONS = "10000"  # about a second; no time, which an emulated machine does not keep (rates_test.py)
SOURCES = ["pcm-pcie", "pcm-iio", "papi", "nic"]


class Counters(BenchmarkTest):
    counter_sources = []

    def run_pair(self, *options):
        server, client = self.start_pair("send_rate", "-c", "RC", "-s", "64", "-n", OPERATIONS, "--warmup", "200ms", *options)
        for program in (server, client):
            self.assertEqual(program.finish(), 0, program.describe())
        return self.records("server")[0], self.records("client")[0]

    def test_nic_counters_are_in_both_records(self):
        server, client = self.run_pair("--counter_sources", "nic", "--require_counters")
        for record, node in [(server, "server"), (client, "client0")]:
            (report,) = record["counters"]
            self.assertEqual((report["source"], report["node"]), ("nic", node))
            self.assertGreater(report["window_s"], 0.1)
            self.assertTrue(all(count is None for count in report["events"].values()), report)
            raw = report["extra"]["raw"]
            # Both ends are this device: it sends each message once and at least a packet for it. The kernel's counts may
            # be some milliseconds old, and reading them takes long under emulation: an interval that ends late has no more
            # messages than were asked for, since a thread that has sent those sends nothing more.
            at_this_rate = server["result"]["rate_mops"] * 1e6 * report["window_s"]
            operations = min(at_this_rate, int(OPERATIONS))
            self.assertLess(raw["port1/hw_counters/rdma_sends"], 1.25 * at_this_rate)
            for count in ("rdma_sends", "sent_pkts", "rcvd_pkts"):
                self.assertGreater(raw[f"port1/hw_counters/{count}"], 0.75 * operations, (count, report, server["result"]))
            self.assertEqual(report["extra"]["device"], DEVICE)
            self.assertIn("reason", report["extra"]["ethtool"])
            self.assertGreater(report["extra"]["read_pair_ns"], 0)

    def test_all_sources_are_tried_and_say_why_not(self):
        for record in self.run_pair():
            self.assertEqual([report["source"] for report in record["counters"]], SOURCES)
            for report in record["counters"]:
                self.assertTrue(report["blind"], report)
                self.assertNotIn("\n", report["blind"])
            pcm_pcie = record["counters"][0]  # an emulated CPU has no such counters
            self.assertTrue(pcm_pcie["blind"].startswith("nothing counted: pcm-pcie "), pcm_pcie)
            self.assertEqual(pcm_pcie["window_s"], 0)

    def test_a_required_source_that_is_missing_ends_both_sides(self):
        programs = self.start_pair("send_rate", "-D", "30", "--counter_sources", "pcm-pcie", "--require_counters")
        for program in programs:
            self.assertNotEqual(program.finish(), 0, program.describe())
            lines = program.err.read_text().splitlines()
            self.assertEqual(len(lines), 1, program.describe())
            self.assertIn("counters of pcm-pcie are required: pcm-pcie ", lines[0])
        for name in ["server", "client"]:
            (record,) = self.records(name)
            self.assertEqual(record["status"], "failed")
