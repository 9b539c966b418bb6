"""What an installed verbscope must do, wherever it was installed: used by the test of `cmake --install` and by that of packages."""
import json
import pathlib
import re

QUICKSTART_ROWS = 5
PAPER_PERCENT = 3  # README: the simulator is within 3 % of the paper


def quickstart_commands(source, results):
    """The commands of `make quickstart`, with the programs found by PATH and the results in a file of the caller."""
    makefile = (source / "Makefile.cluster").read_text()
    recipe = re.search(r"^quickstart:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE).group(1)
    commands = [line.strip() for line in recipe.splitlines() if line.strip().startswith("build/bin/verbscope")]
    return [command.replace("build/bin/", "").replace("$(RESULTS)/quickstart.jsonl", results) for command in commands]


def check_comparison(test, text):
    """`text` is what quickstart's `compare` prints: every published row is there and near the paper."""
    rows = [line for line in text.splitlines() if line.endswith(" calibrated")]
    test.assertEqual(len(rows), QUICKSTART_ROWS, text)
    for row in rows:
        deviation = float(row.split()[-2])
        test.assertLessEqual(abs(deviation), PAPER_PERCENT, row)


def check_record(test, line, benchmark):
    record = json.loads(line)
    test.assertEqual(record["benchmark"], benchmark)
    test.assertEqual(record["status"], "ok")
    test.assertGreater(record["result"]["rate_mops"], 0)


def program_names(source):
    """What the sources declare as benchmarks, and `verbscope`."""
    names = {"verbscope"}
    rooms = ("lookups/CMakeLists.txt", "microbench/*/CMakeLists.txt", "systems/*/CMakeLists.txt", "harness/*/CMakeLists.txt")
    for path in (found for room in rooms for found in source.glob(room)):
        names |= set(re.findall(r"^verbscope_benchmark\((\w+)", path.read_text(), re.MULTILINE))
    return names


def subcommand_names(source):
    text = (pathlib.Path(source) / "harness/commands/CMakeLists.txt").read_text()
    return re.findall(r"(\w+)\.cpp", text.split("SOURCES")[1].split("LINK")[0])
