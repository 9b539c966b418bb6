"""What the kernel's soft-RoCE did, counted by probes at its functions: the same on a busy machine as on a quiet one."""

import functools
import pathlib
import subprocess

TRACING = pathlib.Path("/sys/kernel/tracing")
# A name of ours: the function of rdma_rxe or ib_uverbs whose calls it counts.
PROBES = {
    "doorbells": "rxe_post_send",  # a system call that tells of work requests in a send queue
    "packets": "rxe_xmit_packet",  # requests, responses, acknowledgements
    "completions": "rxe_cq_post",  # CQEs written
}


@functools.cache
def start():
    """Sets the probes, once a machine."""
    subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACING], check=True, timeout=60)
    for name, function in PROBES.items():
        with (TRACING / "kprobe_events").open("a") as events:
            events.write(f"p:beside/{name} {function}\n")
        (TRACING / f"events/beside/{name}/enable").write_text("1")
    (TRACING / "tracing_on").write_text("0")  # calls are counted, and not written down


def read():
    """Calls of each since the first time that it was asked."""
    start()
    counts = {}
    for line in (TRACING / "kprobe_profile").read_text().splitlines():
        name, hits, *_ = line.split()
        counts[name.split("/")[-1]] = int(hits)
    return {name: counts[name] for name in PROBES}
