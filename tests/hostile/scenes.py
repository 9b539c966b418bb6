"""What needs more than a command line: two writers, files that go meanwhile, signals, output that nobody takes."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

LONG = {"schema": "verbscope.sweep/1", "benchmark": "send_rate", "fixed": {"duration": "200ms", "warmup": "1ms"},
        "vary": {"size": [8, 9, 10, 11, 12, 13, 14, 15]}}
MANY = {"schema": "verbscope.sweep/1", "benchmark": "send_rate", "fixed": {"duration": "1ms", "warmup": "0"},
        "vary": {"size": list(range(1, 200))}}


class Place:
    """A folder with the fixtures and a sweep, and a temporary folder beside it."""

    def __init__(self, binaries, fixtures, sweep):
        self.whole = tempfile.TemporaryDirectory()
        self.folder, self.scratch = pathlib.Path(self.whole.name) / "w", pathlib.Path(self.whole.name) / "tmp"
        shutil.copytree(fixtures, self.folder)
        self.scratch.mkdir()
        (self.folder / "long.json").write_text(json.dumps(sweep))
        self.command = [str(binaries / "verbscope"), "run", "long.json", "--hosts", "null", "--out", "out.jsonl"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.whole.cleanup()

    def start(self, **streams):
        streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **streams}
        return subprocess.Popen(self.command, cwd=self.folder, env={**os.environ, "TMPDIR": str(self.scratch)}, **streams)

    def records(self, name="out.jsonl"):
        path = self.folder / name
        if not path.exists():
            return []
        lines = path.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]  # the last line may be half written

    def wait_for(self, what, seconds=30):
        end = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < end, "it did not come to that"
            time.sleep(0.01)


def two_writers(binaries, fixtures):
    """The second is refused at once, whatever it is; killed, the first leaves no lock."""
    with Place(binaries, fixtures, LONG) as place:
        first = place.start()
        place.wait_for(lambda: (place.folder / "out.jsonl").exists() and any(place.scratch.iterdir()))
        for command in (place.command, [str(binaries / "send_rate"), "--fabric", "null", "-D", "1ms", "--out_json_file", "out.jsonl"]):
            second = subprocess.run(command, cwd=place.folder, capture_output=True, text=True, timeout=30, check=False)
            assert second.returncode == 1 and "another program is writing to it" in second.stderr, second
        first.kill()
        first.communicate()
        place.wait_for(lambda: subprocess.run(command, cwd=place.folder, capture_output=True, timeout=30, check=False).returncode == 0)


def renamed_or_deleted(binaries, fixtures):
    """It is said, the status is 1, and every record is in one of the two files, or went with the one that was deleted."""
    for deleted in (True, False):
        with Place(binaries, fixtures, LONG) as place:
            run = place.start()
            place.wait_for(lambda: len(place.records()) >= 2)
            if deleted:
                (place.folder / "out.jsonl").unlink()
            else:
                (place.folder / "out.jsonl").rename(place.folder / "old.jsonl")
            _, err = run.communicate(timeout=60)
            assert run.returncode == 1 and b"was deleted or renamed" in err, (run.returncode, err)
            sizes = [record["config"]["size"] for record in place.records("old.jsonl") + place.records()]
            assert sizes == [8, 9, 10, 11, 12, 13, 14, 15][8 - len(sizes):] and (deleted or len(sizes) == 8), sizes


def signals(binaries, fixtures):
    """A run that is told to stop ends in time with what it has, and 130; any other signal that can be caught ends it as
    signals do. No temporary folder is left, and no process."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGALRM, signal.SIGABRT):
        with Place(binaries, fixtures, LONG) as place:
            run = place.start()
            place.wait_for(lambda: place.records() and any(place.scratch.iterdir()))
            run.send_signal(number)
            run.communicate(timeout=20)
            stops = number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
            assert run.returncode == (130 if stops else -number), (number, run.returncode)
            assert not list(place.scratch.iterdir()), (number, list(place.scratch.iterdir()))
            assert all(record["status"] == "ok" for record in place.records()), number


def blocked_output(binaries, fixtures):
    """Nobody reads standard output, or a results file that is a pipe: a signal ends the run all the same."""
    for number in (signal.SIGINT, signal.SIGTERM):
        for blocked in ("stdout", "results"):
            with Place(binaries, fixtures, MANY) as place:
                read, write = os.pipe()
                os.set_blocking(write, False)
                try:
                    while blocked == "stdout":
                        os.write(write, b"x" * 4096)
                except BlockingIOError:
                    os.set_blocking(write, True)
                if blocked == "results":
                    os.mkfifo(place.folder / "out.jsonl")
                run = place.start(stdout=write)
                os.close(write)
                time.sleep(2)
                assert run.poll() is None, run.communicate()
                run.send_signal(number)
                try:
                    run.communicate(timeout=20)
                except subprocess.TimeoutExpired:
                    run.kill()
                    raise AssertionError(f"{blocked}: it did not end") from None
                finally:
                    os.close(read)
                assert run.returncode == 130, (blocked, run.returncode)
                assert not list(place.scratch.iterdir()), blocked


def all_scenes():
    return two_writers, renamed_or_deleted, signals, blocked_output
