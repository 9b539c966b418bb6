"""What the kernel's soft-RoCE did, counted by probes at its functions: the same on a busy host as on a quiet one."""

import contextlib
import pathlib
import subprocess

TRACING = pathlib.Path("/sys/kernel/tracing")
# A name of ours: the function of rdma_rxe whose calls it counts.
PROBES = {
    "doorbells": "rxe_post_send",  # a system call that tells of work requests in a send queue
    "packets": "rxe_xmit_packet",  # requests, responses, acknowledgements
    "completions": "rxe_cq_post",  # CQEs written
}


def switch(on):
    (TRACING / "events/beside/enable").write_text("1" if on else "0")


@contextlib.contextmanager
def counting():
    """Within it calls are counted, and a read() gives those since it began. Each costs time: runs that are timed are outside."""
    if not (TRACING / "events").exists():
        subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACING], check=True, timeout=60)
    (TRACING / "tracing_on").write_text("0")  # calls are counted, and not written down
    (TRACING / "kprobe_events").write_text("".join(f"p:beside/{name} {function}\n" for name, function in PROBES.items()))
    switch(True)
    try:
        yield
    finally:
        switch(False)
        (TRACING / "kprobe_events").write_text("")


def read():
    """Calls of each function."""
    words = [line.split() for line in (TRACING / "kprobe_profile").read_text().splitlines()]
    hits = {name.split("/")[-1]: int(count) for name, count, *_ in words}
    return {name: hits[name] for name in PROBES}
