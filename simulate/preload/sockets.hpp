// Sockets in virtual time.
#pragma once

#include <sys/uio.h>

#include <cstdint>

namespace verbscope::simulate {

class Look;

// Data on the network have keys, by which the simulator knows when they can be seen: of a connection and direction, or
// of the address to which datagrams and new connections go. 0: it is no socket of the network, or has no peer.
std::uint64_t key_to_peer(int socket);
std::uint64_t key_of_input(int socket);
// What has come to `fd` is taken when it can be seen.
void settle_input(const Look& look, int fd);

// Sends on a connected socket, as writev(2) does.
ssize_t send_parts(int socket, const iovec* parts, int count);
// When a call on the socket that begins now ends by its time-out SO_RCVTIMEO or SO_SNDTIMEO.
std::int64_t socket_deadline(int socket, int option);

}  // namespace verbscope::simulate
