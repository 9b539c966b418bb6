"""perftest and verbscope, alternated on the same kernel stack: their figures, and the work behind them, counted.

The work that they ask of the stack must be the same: doorbells and packets an operation. Figures are times of an emulated
machine, on a host that may have other things to do: medians must be within 3 % of each other, or their repetitions overlap
(then these times decide nothing), or the counts differ and say why. beside.json has all of it.
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
TOOLS = [Perftest(), Verbscope()]


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
        middle = {name: statistics.median(values) for name, values in figures.items()}
        return {"case": asdict(case), "figures": figures, "medians": middle,
                "difference": middle["verbscope"] / middle["perftest"] - 1, "apart": apart(*figures.values()),
                "each_operation": counted}

    def compare(self, case):
        entry = self.measure(case)
        Perftests.entries[name_of(case)] = entry
        (SHARED / "beside.json").write_text(json.dumps(Perftests.entries, indent=1))
        print(json.dumps(entry))
        theirs, ours = (entry["each_operation"][tool.name] for tool in TOOLS)
        # verbscope has its queue full beyond the last operation that it measures, and drains it.
        beyond = 0 if case.latency else int(TX_DEPTH) / case.operations
        for what in ("doorbells", "packets"):
            self.assertAlmostEqual(ours[what] / theirs[what], 1, delta=CLOSE + beyond, msg=f"{what} an operation: {entry}")
        if abs(entry["difference"]) > CLOSE and entry["apart"]:
            reasons = [what for what in counts.PROBES if abs(ours[what] - theirs[what]) > CLOSE * theirs[what]]
            self.assertTrue(reasons, f"{entry['difference']:+.1%}, and the same work was counted: {entry}")


def add_tests():
    for case in RATES + LATENCIES:
        def test(self, case=case):
            self.compare(case)
        setattr(Perftests, f"test_{name_of(case)}", test)


add_tests()
