# Echoes what one client sends, and waits by epoll, poll and select in turn.
import select
import socket
import time

listener = socket.socket()
listener.bind(("", 5000))
listener.listen()
print(socket.gethostname(), listener.getsockname(), flush=True)
peer, address = listener.accept()
print("from", address[0], "at", peer.getsockname(), flush=True)
peer.setblocking(False)
epoll, poll = select.epoll(), select.poll()
epoll.register(peer, select.EPOLLIN)
poll.register(peer, select.POLLIN)
waits = [epoll.poll, poll.poll, lambda: select.select([peer], [], [])[0]]
total = rounds = 0
while True:
    assert waits[rounds % 3]()
    data = peer.recv(1000)
    if not data:
        break
    rounds += 1
    total += len(data)
    peer.send(data)
begin = time.monotonic_ns()
assert select.select([listener], [], [], 0.25) == ([], [], [])
print("received", total, "waited", (time.monotonic_ns() - begin) // 1_000_000, "ms")
