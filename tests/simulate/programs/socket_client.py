# Sends to socket_server.py, and prints the virtual time of the fastest round trip.
import socket
import time

peer = socket.create_connection(("node0", 5000))
print(socket.gethostname(), peer.getsockname()[0], peer.getpeername(), flush=True)
fastest = None
for _ in range(50):
    begin = time.monotonic_ns()
    peer.sendall(b"x" * 100)
    left = 100
    while left > 0:
        left -= len(peer.recv(left))
    spent = time.monotonic_ns() - begin
    fastest = spent if fastest is None else min(fastest, spent)
print("round trip", fastest, "ns")
