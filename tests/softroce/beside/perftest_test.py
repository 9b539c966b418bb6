"""perftest and verbscope, alternated on the same kernel stack: the work that each asks of it, counted, and the figures.

The counts must be those of the same work: that is exact, whatever else the machine does. Figures are times of an emulated
machine; they must be within 3 % of each other, or their repetitions overlap (then nothing is decided), or the counts say
why they are not. What came of each case is in beside.json.
"""

import json
import statistics
import unittest
from dataclasses import asdict, dataclass

import kernel_counts
from support import SHARED
from tools import Perftest, Verbscope

REPETITIONS = 5
CLOSE = 0.03


@dataclass(frozen=True)
class Case:
    verb: str
    connection: str
    size: int = 64
    qp: int = 1
    post_list: int = 1
    cq_mod: int = 32
    latency: bool = False
    operations: int = 4096


RATES = [Case("send", "RC"), Case("send", "UC"), Case("send", "UD"), Case("write", "RC"), Case("write", "UC", 1024),
         Case("read", "RC"), Case("write", "RC", qp=4), Case("send", "RC", post_list=16), Case("write", "RC", 4096),
         Case("read", "RC", 1024, qp=2)]
LATENCIES = [Case(verb, connection, size, latency=True, operations=1024)
             for verb, connection, size in [("write", "RC", 64), ("write", "UC", 64), ("send", "RC", 64), ("read", "RC", 64)]]


def name_of(case):
    kind = "latency" if case.latency else "rate"
    return f"{kind}_{case.verb}_{case.connection}_{case.size}_q{case.qp}_l{case.post_list}"


def apart(a, b):
    """Every repetition of one is beyond every repetition of the other: of five and five, once in 126 by chance."""
    return max(a) < min(b) or max(b) < min(a)


class Beside(unittest.TestCase):
    results = {}

    def compare(self, case):
        tools = [Perftest(), Verbscope()]
        figures = {tool.name: [] for tool in tools}
        counts = {}
        for _ in range(REPETITIONS):
            for tool in tools:
                before = kernel_counts.read()
                figures[tool.name].append(tool.run(case))
                after = kernel_counts.read()
                posted = case.operations * case.qp
                per_operation = {name: (after[name] - before[name]) / posted for name in after}
                counts.setdefault(tool.name, []).append(per_operation)
        medians = {name: statistics.median(values) for name, values in figures.items()}
        ratio = medians["verbscope"] / medians["perftest"]
        typical = {name: {key: statistics.median(each[key] for each in of_tool) for key in of_tool[0]}
                   for name, of_tool in counts.items()}
        entry = {"case": asdict(case), "figures": figures, "medians": medians, "ratio": ratio,
                 "apart": apart(*figures.values()), "counts_per_operation": typical}
        Beside.results[name_of(case)] = entry
        (SHARED / "beside.json").write_text(json.dumps(Beside.results, indent=1))
        print(json.dumps(entry))
        different = {key: (typical["perftest"][key], typical["verbscope"][key]) for key in kernel_counts.PROBES
                     if abs(typical["perftest"][key] - typical["verbscope"][key]) > CLOSE * typical["perftest"][key]}
        if abs(ratio - 1) > CLOSE and entry["apart"]:
            self.assertTrue(different, f"{ratio - 1:+.1%}, and the same work was counted: {entry}")
        return different


def add_tests():
    for case in RATES + LATENCIES:
        def test(self, case=case):
            different = self.compare(case)
            # Both were asked for the same operations, in the same lists.
            self.assertNotIn("packets", different, different)
            self.assertNotIn("doorbells", different, different)
        setattr(Beside, f"test_{name_of(case)}", test)


add_tests()
