"""The figures of pages, held against what simulated commands print.

Where a table's first heading is a command in backticks, the first cell of each row has options, or lists of options, in backticks,
and each other column whose heading is `Mops` or options in backticks has the rates that the command prints with these options:
as many, separated by commas, as the first cell has options. Behind a line MARK a page says of each of its commands one of the
figures that it prints, its rate or a latency, in the section where the command stands; only `verbscope` may print neither."""

import re

MARK = "<!-- rates stand in their sections -->"
RATE = re.compile(r"(?<!at most )(?<![\d.])([\d.]+) (?:simulated )?Mops")
LATENCIES = re.compile(r"\b(?:mean|p50) ([\d.]+)")


class Figure:
    """A rate that a table has, as it is written there, and the command that prints it."""

    def __init__(self, page, number, words, written):
        self.page, self.number, self.words, self.written = page, number, words, written

    def __str__(self):
        return f"{self.page}:{self.number}: {self.words} ({self.written})"

    def wrong(self, printed):
        """What is wrong with it beside what its command printed; None: nothing."""
        rate = RATE.search(printed)
        if rate is None:
            return "the command prints no rate"
        decimals = len(self.written.partition(".")[2])
        ours = f"{float(rate[1]):.{decimals}f}"
        return None if ours == self.written else f"{self.written} is written, {ours} is printed"


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def in_backticks(cell):
    return re.findall(r"`([^`]*)`", cell)


def figures_of(text, page, programs):
    """Those of the tables of a page."""
    out, headings = [], None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|"):
            headings = None
            continue
        row = cells(line)
        if headings is None:
            headings = row
            continue
        command = in_backticks(headings[0])
        if not command or command[0].split()[0] not in programs or set(row[0]) <= {"-"}:
            continue
        for heading, cell in zip(headings[1:], row[1:]):
            options = in_backticks(heading)
            if not options and heading != "Mops":
                continue
            rates = re.findall(r"[\d.]*\d", cell.partition(":")[0])
            of_rows = in_backticks(row[0])
            rates += ["nothing"] * (len(of_rows) - len(rates))  # which no command prints
            of_rows += ["--no_options_of_this_rate"] * (len(rates) - len(of_rows))
            for of_row, rate in zip(of_rows, rates):
                words = " ".join(["build/bin/" + command[0], of_row, *options])
                out.append(Figure(page, number, words, rate))
    return out


def section_of(text, number):
    """The lines of the section in which a line stands, without blocks of code."""
    lines = text.splitlines()
    begin = max((i for i in range(number) if lines[i].startswith("## ")), default=0)
    end = next((i for i in range(number, len(lines)) if lines[i].startswith("## ")), len(lines))
    section = re.sub(r"^```.*?^```$", "", "\n".join(lines[begin:end]), flags=re.MULTILINE | re.DOTALL)
    return "\n".join(line for line in section.splitlines() if not line.startswith("    "))


def numbers_in(printed):
    """The rate and the latencies that a benchmark prints."""
    numbers = RATE.findall(printed) + LATENCIES.findall(printed)
    lines = printed.splitlines()
    for heading, row in zip(lines, lines[1:]):
        if "trips" in heading and "mean" in heading:
            numbers += re.findall(r"[\d.]*\d", row)
    return [float(number) for number in numbers]


def stands(number, text):
    """Whether the number is in the text, with as many digits as somebody would write."""
    written = [f"{number:.{decimals}f}" for decimals in (1, 2, 3)]
    return any(re.search(rf"(?<![\d.]){re.escape(each)}(?!\d)", text) for each in written)


def wrong_in_section(text, number, words, printed):
    """What is wrong with the section of the command `words` in a line; None: nothing, or no line MARK before it."""
    if MARK not in text.splitlines()[:number]:
        return None
    numbers = numbers_in(printed)
    if not numbers:
        return None if words.startswith("build/bin/verbscope ") else "it prints neither a rate nor a latency"
    if any(stands(each, section_of(text, number)) for each in numbers):
        return None
    return f"its section has none of the figures that it prints: {', '.join(map(str, numbers[:4]))}"
