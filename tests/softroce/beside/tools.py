"""perftest and verbscope on one case: a server and a client of each, on the same cores, the same device and the same counts."""

import json
import time

from support import ADDRESS, BIN, DEVICE, SHARED, Program, listens, wait_for

GID_INDEX = "1"  # the IPv4 address of dummy0
FIRST_PORT = 21000
TX_DEPTH = "128"  # of rates


def completions(case):
    """-Q of a rate: perftest takes no other than the length of its lists, where it posts lists."""
    return str(case.post_list if case.post_list > 1 else 32)


class Tool:
    """One of the two; run(case) gives its figure: millions of operations a second, or microseconds."""

    ports = iter(range(FIRST_PORT, FIRST_PORT + 2000))

    def run_pair(self, name, posting, other, client_posts):
        """Runs both ends, the one that posts on core 0; returns their programs, ended well."""
        port = next(Tool.ports)
        ends = {"posting": [*posting, "-p", str(port)], "other": [*other, "-p", str(port)]}
        server, client = ("other", "posting") if client_posts else ("posting", "other")
        ends[client].append(ADDRESS)
        folder = SHARED / "beside" / f"{name}-{port}"
        core = {"posting": "0", "other": "1"}
        started = []
        for end in (server, client):
            command = ["taskset", "-c", core[end], *ends[end]] if self.pinned else [*ends[end], "--cores", core[end]]
            started.append(Program(folder, end, command))
            if end == server:
                wait_for(f"the server to listen: {started[0].describe()}",
                         lambda: listens(port) or started[0].process.poll() is not None)
        statuses = [program.finish() for program in started]
        if statuses != [0, 0]:
            raise AssertionError("\n".join(program.describe() for program in started))
        return started[0] if server == "posting" else started[1], folder


class Perftest(Tool):
    name, pinned = "perftest", True

    def run(self, case):
        kind = "lat" if case.latency else "bw"
        # It does not inline on a device that it does not know.
        command = [f"ib_{case.verb}_{kind}", "-d", DEVICE, "-x", GID_INDEX, "-c", case.connection, "-s", str(case.size),
                   "-n", str(case.operations), "-F"]
        if not case.latency:
            command += ["-N", "-q", str(case.qp), "-Q", completions(case), "-t", TX_DEPTH]
            command += ["-l", str(case.post_list)] if case.post_list > 1 else []
        end, _ = self.run_pair(self.name, command, command, client_posts=True)
        for line in end.out.read_text().splitlines():
            words = line.split()
            if words and words[0] == str(case.size) and len(words) >= 5:
                # bytes, iterations, then: peak, average, rate of messages; or: shortest, longest, typical, average ...
                return float(words[4])
        raise AssertionError(f"no figure in what {end.describe()} said")


class Verbscope(Tool):
    name, pinned = "verbscope", False

    def run(self, case):
        program = "verb_latency" if case.latency else f"{case.verb}_rate"
        command = [BIN / program, "-d", DEVICE, "-x", GID_INDEX, "-c", case.connection, "-s", str(case.size), "-n",
                   str(case.operations), "--warmup", "0", "--counter_sources", "none", "--clients", "1"]
        if case.latency:
            command += ["--verb", case.verb, "-Q", "1"]
        else:
            command += ["-q", str(case.qp), "-Q", completions(case), "-t", TX_DEPTH, "-l", str(case.post_list)]
        record = SHARED / f"record-{time.monotonic_ns()}.json"
        # Here the server posts, and has the record.
        self.run_pair(self.name, [*command, "--out_json_file", record], command, client_posts=False)
        result = json.loads(record.read_text())["result"]
        return result["lat_p50_ns"] / 1000 if case.latency else result["rate_mops"]
