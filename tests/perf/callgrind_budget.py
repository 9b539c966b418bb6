#!/usr/bin/env -S python3 -B
"""Counts the instructions that a loop costs per operation, under callgrind, and fails when they are more than the budget.

    callgrind_budget.py --budget 15 --loop 'post_loop' --not-counted 'null_post_send' --operations 10000 40000
                        -- PROGRAM ARGUMENT... -n @N@

The program runs once for each number of operations, which replaces @N@ in its arguments. What a run costs is what the
functions named by --loop cost, with all that they call, without what the functions named by --not-counted cost (both
are regular expressions on the demangled name), nor the lines of files named by --not-counted-file, with all that they
call, wherever the compiler has put them. The cost of an operation is the difference between the two runs over the
difference in operations, so that whatever happens once does not count. Exit 77: there is no valgrind (1 when CI=true).

With --vary FEW MANY all that is done with FEW and with MANY in the place of @V@, and the budget is for the ratio of the
second cost to the first.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


class Profile:
    """Instructions by function, from a callgrind output file, but for those of lines of `not_counted_file`."""

    def __init__(self, text, not_counted_file=None):
        self.own = {}    # function -> instructions executed in it
        self.calls = {}  # (caller, callee) -> instructions executed below the call
        self.names = {}
        self._read(text, not_counted_file)

    def _name(self, kind, text):
        number, name = re.match(r"(\(\d+\))?\s*(.*)", text).groups()
        if number and name:
            self.names[kind, number] = name
        return name or self.names[kind, number]

    def _read(self, text, not_counted_file):
        caller = callee = None
        call_line = counted = False
        for line in text.splitlines():
            if line.startswith("fn="):
                caller = self._name("fn", line[3:])
            elif line.startswith("cfn="):
                callee = self._name("fn", line[4:])
            elif line.startswith(("fl=", "fi=", "fe=")):
                file = self._name("file", line[3:])
                counted = not_counted_file is None or not re.search(not_counted_file, file)
            elif line.startswith(("cfi=", "cfl=")):
                self._name("file", line[4:])
            elif line.startswith("calls="):
                call_line = True
            elif caller and re.match(r"[+*\d-]", line):
                cost = int(line.split()[1]) if counted and len(line.split()) > 1 else 0
                key, costs = ((caller, callee), self.calls) if call_line else (caller, self.own)
                costs[key] = costs.get(key, 0) + cost
                call_line = False

    def loop_cost(self, loop, not_counted):
        """Instructions of the functions that match `loop` and of what they call, without calls to `not_counted`."""
        roots = {name for name in self.own if re.search(loop, name) and not re.search(not_counted, name)}
        if not roots:
            raise SystemExit(f"no function matches {loop!r}; the most expensive are:\n  " + "\n  ".join(self.expensive()))
        called = [cost for (caller, callee), cost in self.calls.items()
                  if caller in roots and callee not in roots and not re.search(not_counted, callee)]
        return sum(self.own[name] for name in roots) + sum(called)

    def expensive(self):
        return [f"{cost:12d} {name}" for name, cost in sorted(self.own.items(), key=lambda item: -item[1])[:12]]


def profile(command, operations, not_counted_file):
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder, "callgrind.out")
        words = [word.replace("@N@", str(operations)) for word in command]
        valgrind = ["valgrind", "--tool=callgrind", "--quiet", f"--callgrind-out-file={output}"]
        done = subprocess.run(valgrind + words, check=False, capture_output=True, text=True, cwd=folder)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(words)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        return Profile(output.read_text(), not_counted_file)


def cost_of_operation(options, command):
    few, many = options.operations
    runs = [profile(command, n, options.not_counted_file) for n in (few, many)]
    costs = [run.loop_cost(options.loop, options.not_counted) for run in runs]
    each = (costs[1] - costs[0]) / (many - few)
    print("\n".join([f"{each:.2f} instructions per operation"] + runs[1].expensive()))
    return each


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=float, required=True, help="instructions per operation, or with --vary a ratio")
    parser.add_argument("--loop", required=True, help="regular expression: the functions that count")
    parser.add_argument("--not-counted", required=True, help="regular expression: the functions that do not")
    parser.add_argument("--not-counted-file", help="regular expression: source files whose lines do not count")
    parser.add_argument("--operations", type=int, nargs=2, required=True)
    parser.add_argument("--vary", nargs=2, help="two values of @V@ to compare")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("skipped: no valgrind (make -f Makefile.cluster deps-test installs it)")
        return 1 if os.environ.get("CI") == "true" else 77
    if options.vary is None:
        spent = cost_of_operation(options, options.command)
    else:
        few, many = ([word.replace("@V@", value) for word in options.command] for value in options.vary)
        spent = cost_of_operation(options, many) / cost_of_operation(options, few)
        print(f"ratio {spent:.2f}")
    print(f"at most {options.budget:g} allowed")
    return 0 if 0 < spent <= options.budget else 1


if __name__ == "__main__":
    sys.exit(main())
