# Uses the names and addresses of nodes, and prints a line for each use, as children.py does.
import asyncio
import os
import socket


def tell(name, good):
    print(name, "ok" if good else "BAD", flush=True)


tell("names", socket.gethostbyname("node1") == "10.1.0.2" and socket.getnameinfo(("10.1.0.2", 80), 0)[0] == "node1")
tell("own name", os.uname().nodename == socket.gethostname() == "node0")
tell("getaddrinfo", socket.getaddrinfo("node1", 80)[0][4][0] == "10.1.0.2")
try:
    socket.getaddrinfo("10.1.0.77.invalid", 80)
    tell("no such name", False)
except socket.gaierror:
    tell("no such name", True)

listener = socket.socket(socket.AF_INET6)
listener.bind(("::", 6000))
listener.listen()
client = socket.create_connection(("localhost", 6000))
_, address = listener.accept()
tell("IPv6 and IPv4", address[0] == "::ffff:10.1.0.1" and client.getpeername() == ("10.1.0.1", 6000))

receiver, sender = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
receiver.bind(("127.0.0.1", 7000))
sender.sendto(b"datagram", ("node0", 7000))
data, address = receiver.recvfrom(100)
tell("datagram", data == b"datagram" and address[0] == "10.1.0.1")
receiver.settimeout(0.1)
try:
    receiver.recvfrom(100)
    tell("time-out", False)
except TimeoutError:
    tell("time-out", True)


async def talk():
    async def serve(reader, writer):
        writer.write((await reader.readline()).upper())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, None, 6100)  # one socket for IPv4, and one for IPv6
    reader, writer = await asyncio.open_connection("node0", 6100)
    writer.write(b"abc\n")
    answer = await reader.readline()
    writer.close()
    server.close()
    return answer


tell("asyncio", asyncio.run(talk()) == b"ABC\n")
