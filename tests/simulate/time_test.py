#!/usr/bin/env -S python3 -B
"""Virtual time of programs: clocks, sleeps, timers, signals, the time stamp counter, and threads that wait.

Arguments: path of verbscope.
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

from simulated import simulate

HERE = pathlib.Path(__file__).resolve().parent
VERBSCOPE = sys.argv.pop(1)
PYTHON = pathlib.Path(sys.executable).resolve()  # not a script that starts it


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)

    def build(self, source, compiler, *options):
        program = pathlib.Path(self.scratch.name) / source.replace(".", "_")
        if not program.exists():
            subprocess.run([compiler, "-O1", "-o", program, HERE / source, "-pthread", *options], check=True)
        return program

    def run_once(self, *command):
        words = list(map(str, command))
        programs = [words] if "::" not in words else [words[:words.index("::")], words[words.index("::") + 1:]]
        return simulate(VERBSCOPE, *programs).stdout

    def run_equally(self, *command):
        """The lines that a program prints, the same in each of three runs."""
        printed = [sorted(self.run_once(*command).splitlines()) for _ in range(3)]
        self.assertEqual(printed[0], printed[1])
        self.assertEqual(printed[0], printed[2])
        self.assertTrue(printed[0])
        self.assertNotIn("wrong", " ".join(printed[0]))
        return printed[0]

    def times(self, lines):
        """The last time in us of each line's text, without its value."""
        return {line.split(maxsplit=1)[1].rsplit(" ", 1)[0]: float(line.split()[0]) for line in lines}


class Threads(Programs):
    def test_posix_threads_wait_in_virtual_time(self):
        lines = self.run_equally(self.build("threads.c", "cc"))
        at = self.times(lines)
        self.assertGreaterEqual(at["timed out"], at["created"] + 500)
        self.assertGreaterEqual(at["no semaphore"], at["timed out"] + 300)
        self.assertGreaterEqual(at["and then"], at["it still runs"] + 40)
        self.assertLess(at["joined the cancelled"], 10_000)  # the cancelled thread would have waited for ever
        self.assertLess(at["joined the sleeper"], 10_000)    # and this one for 100 s
        self.assertEqual(sum("last at the barrier" in line for line in lines), 1)
        self.assertEqual(sum(" once 0" in line for line in lines), 1 + 1)  # once, and thread 0 after it

    def test_threads_of_cpp_wait_in_virtual_time(self):
        lines = self.run_equally(self.build("threads.cpp", "c++", "-std=c++20"))
        at = self.times(lines)
        self.assertGreaterEqual(at["timed out"], 300)
        self.assertGreaterEqual(at["result"], at["no result yet"] + 800)
        self.assertEqual(sum("threw" in line for line in lines), 2)


class Timers(Programs):
    def test_timers_ring_at_their_virtual_times(self):
        lines = self.run_equally(self.build("timers.c", "cc"))
        at = self.times(lines)
        self.assertAlmostEqual(at["alarm ended sleep, left"], 2_000_000, delta=10)
        self.assertAlmostEqual(at["setitimer"], 2_000_000 + 250_000 + 2 * 100_000, delta=10)
        self.assertAlmostEqual(at["timer"], at["interrupted"] + 30_000 + 3 * 10_000, delta=10)
        self.assertAlmostEqual(at["busy"], at["timer"] + 700, delta=21)  # a busy thread asks every 20 us
        self.assertEqual(sum("SIGEV_THREAD 42" in line for line in lines), 3)
        self.assertAlmostEqual(at["sigwait"], at["mask has it"] + 1_000_000, delta=100)
        self.assertAlmostEqual(at["no signal"], at["sigwait"] + 5_000, delta=100)

    def test_the_counter_is_read_where_a_fault_is_handled(self):
        lines = self.run_once(self.build("timers.c", "cc"))
        for expected in ("action is kept", "fault", "once", "mask has it 1"):
            self.assertIn(expected, lines)

    def test_signals_from_outside_do_not_make_a_pipe_look_ready(self):
        lines = self.run_once(self.build("signals_from_outside.c", "cc"))
        self.assertIn("2000 bytes, signals", lines)

    def test_output_of_nodes_appears_in_the_order_of_virtual_time(self):
        def printing(interval_s):
            return [PYTHON, "-u", "-c", f"import time\nfor _ in range(30):\n  time.sleep({interval_s}); print(time.monotonic())"]

        printed = simulate(VERBSCOPE, printing(0.007), printing(0.011), printing(0.013), options=["--start_gap", "1us"]).stdout
        times = [float(line) for line in printed.splitlines()]
        self.assertEqual(len(times), 90)
        self.assertEqual(times, sorted(times))

    def test_python_sleeps_in_virtual_time(self):
        program = "import time; a = time.monotonic(); time.sleep(3600); print(time.monotonic() - a, int(time.time()))"
        slept, shown = self.run_once(PYTHON, "-c", program).split()
        self.assertAlmostEqual(float(slept), 3600, delta=1e-3)
        self.assertEqual(int(shown), 1767225600 + 3600)  # begins on 2026-01-01


class Loops(Programs):
    def test_threads_that_watch_memory_go_on_when_it_is_written(self):
        lines = self.run_equally(self.build("watching.c", "cc"))
        at = self.times(lines)
        self.assertLess(at["passed"] - at["begin"], 40)  # 40 changes, each at most as far as a clock is read ahead
        self.assertAlmostEqual(at["rung"], 700, delta=21)
        for expected in ("trapped 2 blocked 1", "cores 1"):
            self.assertIn(expected, " ".join(lines))

    def test_a_loop_that_counts_is_known_by_its_cpu_time(self):
        line = self.run_once(self.build("watching.c", "cc"), "counts")
        self.assertIn("counted 1", line)
        self.assertGreaterEqual(float(line.split()[0]), 2000)


class Counters(Programs):
    def test_the_counter_is_virtual_wherever_it_is_read(self):
        library = self.build("counter_library.c", "cc", "-shared", "-fPIC")
        lines = self.run_equally(self.build("counter.c", "cc"), library)
        spans = [float(line.split()[1]) for line in lines if line.startswith(("program", "library"))]
        self.assertEqual(len(spans), 3)
        for span in spans:
            self.assertAlmostEqual(span / spans[0], 1, delta=1e-5)  # each slept for 100 ms
        for expected in ("processor 0", "bytes 310f310f f9010f", "own hlt"):
            self.assertIn(expected, lines)

    def test_watching_memory_is_timed_equally_in_repeats(self):
        program = self.build("ping_pong.c", "cc", "-libverbs")
        lines = self.run_equally(program, 0, "::", program, 1)
        self.assertEqual(len(lines), 2)


if __name__ == "__main__":
    unittest.main()
