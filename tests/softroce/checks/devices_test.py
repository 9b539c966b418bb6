"""The machine has its device, and asking a benchmark for what the device has not is refused in one clear line."""

import re
import subprocess

from support import DEVICE, BenchmarkTest


class Devices(BenchmarkTest):
    def test_ibv_devinfo_shows_rxe0(self):
        shown = subprocess.run(["ibv_devinfo", "-d", DEVICE], capture_output=True, text=True, timeout=60, check=True).stdout
        self.assertRegex(shown, r"hca_id:\s+rxe0")
        self.assertIn("PORT_ACTIVE", shown)

    def refusal(self, *options):
        """The one line on standard error with which send_rate refuses."""
        program = self.start("refused", "send_rate", *options)
        self.assertNotEqual(program.finish(), 0, program.describe())
        lines = program.err.read_text().splitlines()
        self.assertEqual(len(lines), 1, program.describe())
        return lines[0]

    def test_unknown_device_is_refused_with_those_there_are(self):
        line = self.refusal("-d", "mlx5_7")
        self.assertIn("mlx5_7", line)
        self.assertIn(DEVICE, line)

    def test_unknown_port_of_the_device_is_refused(self):
        line = self.refusal("-d", f"{DEVICE}:9")
        self.assertIn("9", line)
        self.assertIn(DEVICE, line)

    def test_inline_over_the_limit_is_refused_with_what_the_device_offers(self):
        line = self.refusal("-d", DEVICE, "-c", "RC", "-s", "20000", "-I", "20000")
        self.assertRegex(line, r"inline.*\b20000\b.*up to (\d+)")
        offered = int(re.search(r"up to (\d+)", line).group(1))
        self.assertTrue(0 < offered < 20000, line)
