"""perftest and verbscope, alternated on the same kernel stack: their figures, and the work behind them, counted.

The work that they ask of the stack must be the same: doorbells and packets an operation. Figures are times of an emulated
machine, on a host that may have other things to do: medians must be within 3 % of each other, or their repetitions overlap
(then these times decide nothing), or counts explain the difference. CQEs do, which verbscope has fewer of where a side
answers. So do the operations that the kernel executes in the time of a rate, since verbscope has its queue full beyond the last
that it measures. beside.json has all of it.
"""

import json
import statistics
import unittest
from dataclasses import asdict, dataclass

import counts
from support import SHARED
from tools import TX_DEPTH, Perftest, Verbscope

REPETITIONS = 5
CLOSE = 0.03
THEIRS, OURS = TOOLS = [Perftest(), Verbscope()]


@dataclass(frozen=True)
class Case:
    verb: str
    connection: str
    size: int = 64
    qp: int = 1
    post_list: int = 1
    latency: bool = False
    operations: int = 16384  # of each QP


RATES = [Case("send", "RC"), Case("send", "UC"), Case("send", "UD"), Case("write", "RC"), Case("write", "UC", 1024),
         Case("read", "RC"), Case("write", "RC", qp=4, operations=4096), Case("send", "RC", post_list=16),
         Case("write", "RC", 4096), Case("read", "RC", 1024, qp=2, operations=8192)]
LATENCIES = [Case(verb, connection, latency=True, operations=2000)
             for verb, connection in [("write", "RC"), ("write", "UC"), ("send", "RC"), ("read", "RC")]]


def name_of(case):
    kind = "latency" if case.latency else "rate"
    return f"{kind}_{case.verb}_{case.connection}_{case.size}_q{case.qp}_l{case.post_list}"


def apart(a, b):
    """Every repetition of one is beyond every repetition of the other: of five and five, once in 126 by chance."""
    return max(a) < min(b) or max(b) < min(a)


def compared(theirs, ours):
    return {"difference": statistics.median(ours) / statistics.median(theirs) - 1, "apart": apart(theirs, ours)}


def close(comparison):
    """Within 3 %, or nothing is decided."""
    return abs(comparison["difference"]) <= CLOSE or not comparison["apart"]


class Perftests(unittest.TestCase):
    entries = {}

    def measure(self, case):
        figures = {tool.name: [] for tool in TOOLS}
        for _ in range(REPETITIONS):
            for tool in TOOLS:
                figures[tool.name].append(tool.run(case))
        counted = {}
        for tool in TOOLS:
            with counts.counting():
                tool.run(case)
                counted[tool.name] = {what: calls / (case.operations * case.qp) for what, calls in counts.read().items()}
        # Of latencies each trip is one operation; of rates the kernel executes what is posted, beyond the last that is measured.
        executed = 1 if case.latency else counted[OURS.name]["packets"] / counted[THEIRS.name]["packets"]
        return {"case": asdict(case), "figures": figures, "medians": {name: statistics.median(of) for name, of in figures.items()},
                "each_operation": counted, "as_they_are": compared(figures[THEIRS.name], figures[OURS.name]),
                "with_counts": compared(figures[THEIRS.name], [executed * figure for figure in figures[OURS.name]])}

    def compare(self, case):
        entry = self.measure(case)
        Perftests.entries[name_of(case)] = entry
        (SHARED / "beside.json").write_text(json.dumps(Perftests.entries, indent=1))
        print(json.dumps(entry))
        theirs, ours = (entry["each_operation"][tool.name] for tool in (THEIRS, OURS))
        # verbscope has its queue full beyond the last operation that it measures, and drains it.
        beyond = 0 if case.latency else int(TX_DEPTH) / case.operations
        for what in ("doorbells", "packets"):
            self.assertAlmostEqual(ours[what] / theirs[what], 1, delta=CLOSE + beyond, msg=f"{what} an operation: {entry}")
        differ = any(abs(ours[what] - theirs[what]) > (CLOSE + beyond) * theirs[what] for what in counts.PROBES)
        self.assertTrue(differ or close(entry["as_they_are"]) or close(entry["with_counts"]), entry)


def add_tests():
    for case in RATES + LATENCIES:
        def test(self, case=case):
            self.compare(case)
        setattr(Perftests, f"test_{name_of(case)}", test)


add_tests()
