// The out-of-band exchange over TCP: the processes of one run find each other, agree on the parameters, and pass
// endpoints and results. handshake.hpp has the handshake, channel.hpp the part after it.
//
// The secret keeps out strangers and other runs. It is never sent; both sides prove that they have it. Messages after
// the handshake are neither encrypted nor signed.
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
  // Listens on `port` of `address`. 0: the system chooses, see port(); "": every address (tcp_listen).
  ExchangeServer(int port, Terms terms, std::string secret, const std::string& address = "");
  int port() const { return port_; }

  // Waits for `clients` peers and completes the handshake with each, all within `timeout`. Returns them by client
  // number. Drops any other connection with a warning (Reception). A client with other terms is an Error; the accepted
  // clients receive the reason.
  std::vector<Channel> accept(int clients, Picos timeout);

 private:
  Terms terms_;
  std::string secret_;
  Fd socket_;
  int port_ = 0;
};

// Connects to the server, retrying until it listens, and completes the handshake, all within `timeout`.
Channel connect_exchange(const std::string& host, int port, const Terms& terms, const std::string& secret,
                         Picos timeout);

// The secret of the run: `option` if not empty, else VERBSCOPE_SECRET from the environment, else "".
std::string exchange_secret(const std::string& option);

}  // namespace verbscope
