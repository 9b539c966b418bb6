// The network addresses of the nodes. Programs know node N as 10.1.0.(1 + N), the address of port 1 of its adapter (as
// in its GIDs for RoCE v2), and by the name "nodeN". Sockets use the host's loopback network instead, in which the
// simulation has an address for each node. A node also has a loopback network of its own: its localhost is its own
// address. Other addresses are what they are outside of the simulation.
#pragma once

#include <sys/socket.h>

#include <cstdint>

#include "simulate/channel/addresses.hpp"

namespace verbscope::simulate {

// An address for the kernel.
struct KernelAddress {
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr_storage storage;
  socklen_t bytes;
  bool of_node;  // false: as the program has given it
};
KernelAddress to_kernel(const sockaddr* address, socklen_t bytes);
// The address to which `socket` is bound. Nodes reach each other by IPv4 only. An IPv6 socket for which the program has
// set IPV6_V6ONLY gets no connections from other nodes.
KernelAddress to_bind(int socket, const sockaddr* address, socklen_t bytes);
// Gives a socket without an address that of its node.
void bind_to_node(int socket);

// Replaces an address of the kernel by that which the program knows.
void to_program(sockaddr* address, socklen_t bytes);

}  // namespace verbscope::simulate
