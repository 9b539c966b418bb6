#!/usr/bin/env python3
"""Files of other tools become records, which the other commands read; exported again they have the numbers that they had.

usage: import_test.py FOLDER_OF_PROGRAMS SOURCE
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BIN, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
FILES = SOURCE / "tests/harness/imported"


def run(*words, check=True):
    return subprocess.run([BIN / "verbscope", *map(str, words)], check=check, capture_output=True, text=True, timeout=60)


def imported(*files):
    return [json.loads(line) for line in run("import", *(FILES / name for name in files)).stdout.splitlines()]


def table_rows(text):
    """The rows of perftest's tables, by what their cells say."""
    return [line.split() for line in text.splitlines() if re.match(r"^ *\d+ +\d+ ", line)]


class Import(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_a_bandwidth_table(self):
        small, medium, large = imported("ib_write_bw.txt")
        self.assertEqual((small["benchmark"], small["status"], small["environment"]["fabric"]), ("write_rate", "imported", "verbs"))
        expected = {"size": 2, "qp": 4, "connection": "RC", "tx_depth": 128, "mtu": 4096, "ib_dev": "mlx5_0", "inline_size": 0,
                    "bidirectional": False}
        self.assertEqual(expected, {key: small["config"][key] for key in expected})
        self.assertEqual([one["result"]["rate_mops"] for one in (small, medium, large)], [2.588087, 0.381081, 0.002915])
        # MB are 2^20 bytes there, bits 8 a byte.
        self.assertAlmostEqual(large["result"]["bandwidth_gbit_per_s"], 23319.97 * 2**20 * 8 / 1e9, places=9)
        self.assertEqual(medium["result"]["ops"], 20000)

    def test_gigabits_both_ways(self):
        small, large = imported("ib_send_bw_gbits.txt")
        self.assertEqual((large["benchmark"], large["config"]["bidirectional"], large["config"]["gid_index"]), ("send_rate", True, 3))
        self.assertAlmostEqual(large["result"]["bandwidth_gbit_per_s"], 171.54)
        self.assertAlmostEqual(small["result"]["bandwidth_gbit_per_s"], 0.081664)

    def test_latency(self):
        small, _ = imported("ib_read_lat.txt")
        self.assertEqual((small["benchmark"], small["config"]["verb"], small["config"]["size"]), ("verb_latency", "read", 2))
        self.assertAlmostEqual(small["result"]["lat_p50_ns"], 1910)
        self.assertAlmostEqual(small["result"]["lat_p99_9_ns"], 4550)
        self.assertAlmostEqual(small["result"]["rate_mops"], 1 / 1.92)
        timed, = imported("ib_write_lat_duration.txt")
        self.assertAlmostEqual(timed["result"]["lat_mean_ns"], 1920)
        self.assertAlmostEqual(timed["result"]["rate_mops"], 1 / (2 * 1.92))  # perftest halves the ping-pong

    def test_json_valid_or_not(self):
        loose, = imported("ib_write_bw_4.5.json")
        self.assertRaises(json.JSONDecodeError, json.loads, (FILES / "ib_write_bw_4.5.json").read_text())
        self.assertEqual((loose["config"]["qp"], loose["config"]["post_list"], loose["config"]["ib_dev"]), (2, 16, "mlx5_0"))
        self.assertEqual(loose["result"]["rate_mops"], 14.469531)
        # 14.469531 million times 64 B are 7.41 Gb/s, and 883 MB/s: the document does not say which of them it has.
        self.assertTrue(loose["config"]["report_gbits"])
        valid, = imported("ib_read_lat.json")
        self.assertAlmostEqual(valid["result"]["lat_p99_ns"], 1700)
        one_line = self.folder / "one_line.json"
        one_line.write_text(json.dumps(json.loads((FILES / "ib_read_lat.json").read_text())))
        self.assertEqual(imported(one_line)[0]["result"], valid["result"])

    def test_ucx(self):
        latency, bandwidth = imported("ucx_perftest.txt")
        self.assertEqual((latency["benchmark"], latency["config"]["test"], latency["config"]["size"]),
                         ("ucx_perftest", "tag match latency", 8))
        self.assertAlmostEqual(latency["result"]["lat_mean_ns"], 1088)
        self.assertAlmostEqual(latency["result"]["lat_p50_ns"], 1067)
        self.assertAlmostEqual(bandwidth["result"]["bandwidth_gbit_per_s"], 23198.42 * 2**20 * 8 / 1e9)
        self.assertNotIn("lat_mean_ns", bandwidth["result"])  # what a post takes is no latency

    def test_a_number_that_no_double_holds_is_none(self):
        changed = self.folder / "changed.txt"
        changed.write_text((FILES / "ib_write_bw_4.5.json").read_text().replace("Mtu: 4096", "Mtu: 1e999"))
        loose, = imported(changed)
        self.assertNotIn("mtu", loose["config"])
        self.assertEqual(loose["config"]["qp"], 2)
        changed.write_text((FILES / "ucx_perftest.txt").read_text().replace(" 7.01 ", " 1e999 "))
        self.assertEqual([one["config"]["test"] for one in imported(changed)], ["tag match bandwidth"])

    def test_pcm(self):
        first, second = imported("pcm-pcie.csv")
        # Half a second, two groups of events that divide it evenly; both sockets.
        self.assertAlmostEqual(first["result"]["dma_read_lines_per_s"], 2e6)
        self.assertAlmostEqual(second["result"]["dma_read_lines_per_s"], 4.0001e6)
        self.assertEqual(second["config"]["interval"], 1)
        self.assertEqual(first["counters"][0]["events"]["mmio_wc_lines"], None)
        iio, = imported("pcm-iio.csv")
        self.assertEqual(iio["result"]["payload_bytes_to_nic_per_s"], 12800 + 200 + 80)

    def test_pcm_beside_one_run_counts_its_operations(self):
        results = self.folder / "both.jsonl"
        run("import", FILES / "ib_write_bw_4.5.json", FILES / "pcm-pcie.csv", "-o", results)
        row, = json.loads(run("compare", results, "--json").stdout)
        # 4.0001 million lines a second in the busy interval, 14.469531 million operations; the other interval has half.
        self.assertAlmostEqual(row["events_per_op"]["dma_read_lines"]["measured"], 4.0001 / 14.469531, places=6)

    def test_the_file_tells_what_was_skipped(self):
        done = run("import", FILES / "ib_write_bw.txt")
        self.assertIn("ib_write_bw.txt: skipped 2 of ", done.stderr)
        self.assertIn("Conflicting CPU frequency", done.stderr)
        self.assertEqual(run("import", FILES / "ib_read_lat.txt").stderr, "")

    def test_files_with_nothing_known_are_refused(self):
        for text, part in [("", "no row of results"), ("\n\n", "no row of results"), ("hello\n", '"hello"'),
                           (" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n", "no row of results"),
                           ("Skt,PCIRdCur,Cat\n0,1,2\n", "pcm-pcie"), ("{\n}\n", '"{"'), ("{test_info: {", '"{test_info: {"')]:
            path = self.folder / "some.txt"
            path.write_text(text)
            done = run("import", path, check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""), text)
            self.assertIn("some.txt: nothing to import", done.stderr)
            self.assertIn(part, done.stderr)
            run("import", path, "-o", self.folder / "none.jsonl", check=False)
            self.assertFalse((self.folder / "none.jsonl").exists())
        results = self.folder / "r.jsonl"
        run("import", FILES / "ib_read_lat.txt", "-o", results)
        self.assertIn("needs no import", run("import", results, check=False).stderr)

    def test_repetitions_are_kept_apart(self):
        records = imported("ib_read_lat.json", "ib_read_lat.json")
        self.assertEqual([one["config"]["point"]["repetition"] for one in records], [0, 1])

    def test_other_commands_read_the_records(self):
        results = self.folder / "r.jsonl"
        every = ["ib_write_bw.txt", "ib_send_bw_gbits.txt", "ib_read_lat.txt", "ib_write_bw_4.5.json", "ucx_perftest.txt", "pcm-pcie.csv"]
        run("import", *(FILES / name for name in every), "-o", results)
        self.assertIn("2.59", run("compare", results).stdout)
        self.assertIn("verbs (imported)", run("compare", results).stdout)
        self.assertIn("imported", run("compare", results, "--json").stdout)
        run("explain", results)
        page = run("report", results, "-o", self.folder / "r.html", check=False)
        if "without the chart library" not in page.stderr:
            self.assertEqual((page.returncode, page.stderr), (0, ""))
        run("plot", results, "--where", "benchmark=write_rate", "-x", "size", "-y", "rate_mops", "-o", self.folder / "p.svg")
        run("plot", results, "--where", "benchmark=pcm_pcie", "-x", "interval", "-y", "dma_read_lines_per_s", "-o", self.folder / "q.svg")
        other = self.folder / "other.jsonl"
        text = (FILES / "ib_write_bw.txt").read_text().replace("0.381081", "0.190540")
        (self.folder / "slow.txt").write_text(text)
        run("import", self.folder / "slow.txt", "-o", other)
        self.assertIn("-50", run("diff", results, other, check=False).stdout)

    def test_exported_tables_have_the_numbers_that_were_imported(self):
        for name in ["ib_write_bw.txt", "ib_send_bw_gbits.txt", "ib_read_lat.txt"]:
            results, table = self.folder / f"{name}.jsonl", self.folder / f"{name}.out"
            run("import", FILES / name, "-o", results)
            run("export", results, "--view", "perftest_table", "-o", table)
            self.assertEqual(table_rows(table.read_text()), table_rows((FILES / name).read_text()))
            title = next(line.strip() for line in (FILES / name).read_text().splitlines() if line.endswith(" Test"))
            self.assertIn(title, table.read_text())
            self.assertEqual(imported(FILES / name)[0]["result"], json.loads(run("import", table).stdout.splitlines()[0])["result"])

    def test_exported_documents_have_the_numbers_that_were_imported(self):
        for name in ["ib_write_bw_4.5.json", "ib_read_lat.json"]:
            results = self.folder / f"{name}.jsonl"
            run("import", FILES / name, "-o", results)
            lines = run("export", results, "--view", "perftest").stdout
            theirs = dict(re.findall(r'"?([\w.]+)"? ?: "?([^,"\n{]+)"?', (FILES / name).read_text()))
            ours = dict(re.findall(r'"([\w.]+)": "?([^,"\n{]+)"?', lines))
            kept = set(theirs) & set(ours)
            self.assertLessEqual({"MsgSize", "n_iterations", "Number_of_qps", "test"}, kept)
            self.assertEqual({key: theirs[key] for key in kept}, {key: ours[key] for key in kept})

    def test_simulated_figures_stay_simulated(self):
        measured, results = self.folder / "sim.jsonl", self.folder / "back.jsonl"
        subprocess.run([BIN / "send_rate", "--fabric", "sim:cx6", "-b", "-s", "4096", "-q", "2", "--threads", "2", "-D", "50us",
                        "--warmup", "50us", "--out_json_file", measured], check=True, capture_output=True, timeout=60)
        record = json.loads(measured.read_text())
        for view in ("perftest", "perftest_table"):
            exported = self.folder / view
            run("export", measured, "--view", view, "-o", exported)
            self.assertIn(("Send_Bidirectional_BW_Test", "Send Bidirectional BW Test")[view == "perftest_table"], exported.read_text())
            back = json.loads(run("import", exported).stdout)
            self.assertEqual((back["environment"]["fabric"], back["environment"]["simulated"]), ("sim:cx6", True))
            self.assertEqual((back["config"]["qp"], back["config"]["bidirectional"]), (4, True))
            self.assertAlmostEqual(back["result"]["rate_mops"], record["result"]["rate_mops"], delta=1e-6)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
