// The out-of-band exchange over TCP: how the processes of one run find each other, agree on what they run, and pass
// endpoints and results. The handshake is in handshake.hpp, what follows it in channel.hpp.
//
// The secret keeps strangers and other runs apart. It does not cross; both sides prove that they know it. What follows
// the handshake is neither encrypted nor signed.
#pragma once

#include <string>
#include <vector>

#include "common/fd.hpp"
#include "common/units.hpp"
#include "exchange/channel.hpp"
#include "exchange/terms.hpp"

namespace verbscope {

class ExchangeServer {
 public:
  // Listens on `port` (0: the system picks, port() reports) of `address` ("" is every address; tcp_listen).
  ExchangeServer(int port, Terms terms, std::string secret, const std::string& address = "");
  int port() const { return port_; }

  // Waits for `clients` peers and shakes hands with each, all within `timeout`; their order is that of their numbers.
  // Whoever connects and is no client of this run is dropped with a warning (Reception). A client with other terms ends
  // it with an Error; peers already accepted are told.
  std::vector<Channel> accept(int clients, Picos timeout);

 private:
  Terms terms_;
  std::string secret_;
  Fd socket_;
  int port_ = 0;
};

// Connects to the server, retrying while nobody listens, and shakes hands, all within `timeout`.
Channel connect_exchange(const std::string& host, int port, const Terms& terms, const std::string& secret,
                         Picos timeout);

// The secret of the run: `option` when not empty, else the environment's VERBSCOPE_SECRET, else "".
std::string exchange_secret(const std::string& option);

}  // namespace verbscope
