#!/usr/bin/env -S python3 -B
"""The tree keeps the rules of docs/architecture.md, and the checks can fail: each is run on a planted offence."""

import pathlib
import tempfile
import unittest

import rules as architecture

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = architecture.read_rules(ROOT / "docs/architecture.md")


class Tree:
    """A small source tree: path -> text."""

    def __init__(self, files):
        self.scratch = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.scratch.name)
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def __enter__(self):
        return self.root

    def __exit__(self, *_):
        self.scratch.cleanup()


def include(header):
    return f'#pragma once\n#include "{header}"\n'


class Rules(unittest.TestCase):
    def test_the_table_is_read(self):
        self.assertEqual(RULES["common"], [])
        self.assertEqual(RULES["pcie_model"], ["common", "wire"])
        self.assertIsNone(RULES["tests"])

    def test_simulator_and_model_are_apart(self):
        self.assertFalse(architecture.allowed("nic_sim", "pcie_model", RULES))
        self.assertFalse(architecture.allowed("pcie_model", "nic_sim", RULES))
        self.assertFalse(architecture.allowed("wire", "pcie_model", RULES))
        self.assertTrue(architecture.allowed("nic_sim", "wire", RULES))

    def test_verbs_knows_no_simulator_and_harness_no_benchmark(self):
        self.assertFalse(architecture.allowed("verbs", "nic_sim", RULES))
        self.assertFalse(architecture.allowed("harness/point", "verbs", RULES))
        self.assertFalse(architecture.allowed("harness/sweep", "microbench/bench", RULES))


class Includes(unittest.TestCase):
    def test_the_tree_keeps_the_rules(self):
        self.assertEqual(architecture.check_includes(ROOT, RULES), [])

    def test_there_is_something_to_check(self):
        self.assertGreater(len(list(architecture.source_files(ROOT, RULES))), 20)

    def check(self, user, header):
        with Tree({user: include(header), header: "#pragma once\n"}) as root:
            return architecture.check_includes(root, RULES)

    def test_planted_offences_are_found(self):
        offences = [
            ("nic_sim/bad.hpp", "pcie_model/predict.hpp", "nic_sim must not include"),
            ("pcie_model/bad.cpp", "nic_sim/time/engine.hpp", "pcie_model must not include"),
            ("wire/bad.hpp", "pcie_model/predict.hpp", "wire must not include"),
            ("verbs/bad.cpp", "nic_sim/time/engine.hpp", "verbs must not include"),
            ("harness/sweep/bad.cpp", "microbench/rate/send_rate.hpp", "harness/sweep must not include"),
            ("common/deep/er/bad.hpp", "machine/node.hpp", "common must not include"),
            ("microbench/run/bad.cpp", "tests/helper.hpp", "microbench/run must not include"),
        ]
        for user, header, complaint in offences:
            with self.subTest(user=user):
                found = self.check(user, header)
                self.assertEqual(len(found), 1, found)
                self.assertIn(f"{user}:2: {complaint}", found[0])

    def test_what_the_rules_allow_passes(self):
        self.assertEqual(self.check("nic_sim/good.hpp", "wire/pcie.hpp"), [])
        self.assertEqual(self.check("tests/good.cpp", "microbench/run/runner.hpp"), [])

    def test_a_name_that_is_not_from_the_root_is_refused(self):
        with Tree({"verbs/a.cpp": include("qp.hpp"), "verbs/b.cpp": include("../nic_sim/x.hpp")}) as root:
            self.assertEqual(len(architecture.check_includes(root, RULES)), 2)


class Cycles(unittest.TestCase):
    def test_the_tree_has_none(self):
        self.assertEqual(architecture.check_cycles(ROOT, RULES), [])

    def check(self, *edges):
        files = {f"{user}/a.hpp": "#pragma once\n" for edge in edges for user in edge}
        for i, (user, used) in enumerate(edges):
            files[f"{user}/b{i}.hpp"] = include(f"{used}/a.hpp")
        with Tree(files) as root:
            return architecture.check_cycles(root, RULES)

    def test_two_rooms_that_include_each_other_are_found_whatever_the_table_allows(self):
        self.assertEqual(
            self.check(("nic_sim/link", "nic_sim/nic"), ("nic_sim/nic", "nic_sim/link")),
            ["nic_sim/link includes nic_sim/nic (nic_sim/link/b0.hpp:2); "
             "nic_sim/nic includes nic_sim/link (nic_sim/nic/b1.hpp:2)"])

    def test_a_longer_way_back_is_found(self):
        found = self.check(("machine", "verbs"), ("verbs", "wire"), ("wire", "machine"), ("wire", "common"))
        self.assertEqual(len(found), 1, found)
        self.assertIn("machine includes verbs (machine/b0.hpp:2)", found[0])

    def test_a_room_may_be_reached_by_two_ways(self):
        self.assertEqual(self.check(("machine", "verbs"), ("machine", "wire"), ("verbs", "wire")), [])


class Links(unittest.TestCase):
    def test_the_tree_keeps_the_rules(self):
        self.assertEqual(architecture.check_links(ROOT, RULES), [])

    def test_a_planted_upward_link_is_found(self):
        files = {
            "verbs/CMakeLists.txt": "verbscope_library(vs_verbs SOURCES\n  a.cpp LINK vs_nic_sim)",
            "verbs/a.cpp": "",
            "nic_sim/CMakeLists.txt": "verbscope_library(vs_nic_sim SOURCES b.cpp)",
            "nic_sim/b.cpp": "",
        }
        with Tree(files) as root:
            self.assertEqual(architecture.check_links(root, RULES),
                             ["verbs/CMakeLists.txt: vs_verbs (verbs) must not link vs_nic_sim (nic_sim)"])

    def test_a_planted_link_that_nothing_needs_is_found(self):
        files = {
            "verbs/CMakeLists.txt": "verbscope_library(vs_verbs SOURCES a.cpp)\ntarget_link_libraries(vs_verbs PUBLIC vs_common)",
            "verbs/a.cpp": "",
            "common/CMakeLists.txt": "verbscope_library(vs_common SOURCES b.cpp)",
            "common/b.cpp": "",
        }
        with Tree(files) as root:
            self.assertEqual(architecture.check_links(root, RULES),
                             ["verbs/CMakeLists.txt: vs_verbs links vs_common and includes nothing of common"])


class Pages(unittest.TestCase):
    TOUR = "docs/tour.md"
    PAGES = ["README.md", *(str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs").glob("*.md")))]

    def test_the_files_that_pages_name_exist(self):
        for page in self.PAGES:
            self.assertEqual(architecture.check_files_named(ROOT, page), [])

    def test_a_source_that_is_named_without_its_folder_exists(self):
        files = {"docs/x.md": "`switch.cpp` and `port.hpp`\n", "nic_sim/net/switch.cpp": ""}
        with Tree(files) as root:
            self.assertEqual(architecture.check_files_named(root, "docs/x.md"),
                             ["docs/x.md: no file is called port.hpp"])

    def test_what_pages_quote_is_in_the_files(self):
        for page in self.PAGES:
            self.assertEqual(architecture.check_quotes(ROOT, page), [])
        block = "```cpp wire/a.hpp\nint a();\n```\n"
        for source, complaints in {"int a();\nint b();\n": [], "int a(int);\n": ["docs/x.md: wire/a.hpp does not say: int a(); ..."]}.items():
            with Tree({"docs/x.md": block, "wire/a.hpp": source}) as root:
                self.assertEqual(architecture.check_quotes(root, "docs/x.md"), complaints)

    def test_the_tour_keeps_its_rules(self):
        self.assertEqual(architecture.check_tour(ROOT, self.TOUR), [])

    def check(self, *stops):
        rows = "".join(f"| {number} | `{function}` | `{name}` | It goes on. |\n" for number, function, name in stops)
        sources = {
            "nic_sim/a.cpp": "void Fabric::send(Packet& packet) {\n  depart(packet);\n}\n",
            "nic_sim/b.hpp": "class Ring {\n public:\n  void push(int entry) {\n  }\n};\n",
        }
        with Tree({self.TOUR: rows, **sources}) as root:
            return architecture.check_files_named(root, self.TOUR) + architecture.check_tour(root, self.TOUR)

    def test_functions_of_a_source_and_of_a_class_in_a_header_are_found(self):
        self.assertEqual(self.check((1, "Fabric::send", "nic_sim/a.cpp"), (2, "Ring::push", "nic_sim/b.hpp")), [])

    def test_planted_offences_are_found(self):
        self.assertEqual(self.check((1, "Fabric::send", "nic_sim/c.cpp")),
                         ["docs/tour.md: nic_sim/c.cpp does not exist"])
        self.assertEqual(self.check((1, "depart", "nic_sim/a.cpp")),
                         ["docs/tour.md: stop 1: nic_sim/a.cpp defines no depart"])
        self.assertEqual(self.check((1, "Ring::pop", "nic_sim/b.hpp")),
                         ["docs/tour.md: stop 1: nic_sim/b.hpp defines no Ring::pop"])
        self.assertEqual(self.check((1, "Fabric::send", "nic_sim/a.cpp"), (3, "Ring::push", "nic_sim/b.hpp")),
                         ["docs/tour.md: the stops are not numbered from 1 on"])
        self.assertEqual(self.check(), ["docs/tour.md: the stops are not numbered from 1 on"])


class ContinuousIntegration(unittest.TestCase):
    def test_it_runs_the_command_that_the_readme_gives(self):
        command = "make -f Makefile.cluster test"
        self.assertIn(f"exec {command}\n", (ROOT / ".ci/run").read_text())
        self.assertIn(command, (ROOT / "README.md").read_text())


if __name__ == "__main__":
    unittest.main()
