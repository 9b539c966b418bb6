# Starts children in all ways, and prints a line for each: its name, and "ok" if the child did what it should.
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time


def tell(name, good):
    print(name, "ok" if good else "BAD", flush=True)


def code(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def forked(body):
    child = os.fork()
    if child == 0:
        os._exit(body())
    return child


def drain(read):
    total = 0
    while data := read(65536):
        total += len(data)
    return total


tell("system", os.system("exit 3") >> 8 == 3)
tell("popen", os.popen("echo hi; hostname").read() == "hi\nnode0\n")
tell("without the library", subprocess.check_output(["env", "-i", "hostname"]) != b"node0\n")
tell("no such program", subprocess.run("nonesuch 2>/dev/null", shell=True).returncode == 127)

begin = time.monotonic()
child = subprocess.Popen(["sleep", "1000"])
child.kill()
tell("killed", child.wait() == -9 and time.monotonic() - begin < 1)
begin = time.monotonic()
subprocess.run(["sleep", "0.5"])
tell("slept", 0.5 <= time.monotonic() - begin < 0.51)
try:
    subprocess.run(["sleep", "100"], timeout=0.5)
    tell("time-out", False)
except subprocess.TimeoutExpired:
    tell("time-out", True)

copied, _ = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE).communicate(b"x" * 200_000)
tell("cat", len(copied) == 200_000)

ours, theirs = socket.socketpair()
child = forked(lambda: (ours.close(), drain(theirs.recv) // 10_000)[1])
theirs.close()
ours.sendall(b"y" * 1_000_000)
ours.shutdown(socket.SHUT_WR)
tell("socketpair", code(child) == 100)

read_end, write_end = os.pipe()
child = forked(lambda: (os.close(read_end), os.write(write_end, b"z" * 500_000), 0)[2])
os.close(write_end)
tell("pipe", drain(lambda room: os.read(read_end, room)) == 500_000 and code(child) == 0)

tell("posix_spawn", code(os.posix_spawn("/bin/sh", ["sh", "-c", "exit 7"], os.environ)) == 7)
tell("posix_spawn without the library", code(os.posix_spawn("/bin/sh", ["sh", "-c", "exit 8"], {})) == 8)

queue = multiprocessing.Queue()
child = multiprocessing.Process(target=queue.put, args=("from the child",))
child.start()
tell("multiprocessing", queue.get() == "from the child")
child.join()

ended = []
signal.signal(signal.SIGCHLD, lambda number, frame: ended.append(os.waitpid(-1, os.WNOHANG)[0]))
begin = time.monotonic()
child = forked(lambda: time.sleep(0.5) or 0)
while not ended:
    signal.pause()
tell("handler of SIGCHLD", ended == [child] and 0.5 <= time.monotonic() - begin < 0.501)
signal.signal(signal.SIGCHLD, signal.SIG_DFL)

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
begin = time.monotonic()
child = forked(lambda: time.sleep(0.5) or 0)
tell("wait for SIGCHLD", signal.sigwaitinfo([signal.SIGCHLD]).si_pid == child and 0.5 <= time.monotonic() - begin < 0.501)
tell("reaped after SIGCHLD", os.waitpid(child, os.WNOHANG)[0] == child)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])

got = []
signal.signal(signal.SIGUSR1, lambda number, frame: got.append(time.monotonic()))
begin = time.monotonic()
child = forked(lambda: (time.sleep(0.5), os.kill(os.getppid(), signal.SIGUSR1), 0)[2])
signal.pause()
tell("signal of a child", code(child) == 0 and len(got) == 1 and 0.5 <= got[0] - begin < 0.501)
