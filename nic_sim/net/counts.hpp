// The network's counters of a node. They are totals since the start; callers take differences.
#pragma once

#include <cstdint>

namespace verbscope {

struct FabricCounts {
  std::uint64_t messages_sent = 0;      // whose last packet left the port, without retransmissions
  std::uint64_t dropped_by_switch = 0;  // packets to this node, by random loss or cut cables
  std::uint64_t credit_waits = 0;       // packets that waited at their port for credits
};

// Further counters on Ethernet: the first five by the network, the others by the adapter. A counter that the mlx5
// driver has too has its name.
struct EthernetCounts {
  std::uint64_t dropped_by_chance = 0;           // packets to this node, also in FabricCounts::dropped_by_switch
  std::uint64_t dropped_full_buffer = 0;         // packets to this node, for lack of buffer
  std::uint64_t rx_pauses = 0;                   // pauses received from the switch
  std::uint64_t rx_pause_ps = 0;                 // their time, summed over ports and priorities
  std::uint64_t tx_pauses = 0;                   // pauses sent to the switch
  std::uint64_t np_ecn_marked_roce_packets = 0;  // marked packets received
  std::uint64_t np_cnp_sent = 0;
  std::uint64_t rp_cnp_handled = 0;
  std::uint64_t rate_limited_ps = 0;  // time that QPs waited for their rate, summed
  std::uint64_t ack_timeout_ps = 0;   // time from the last progress of QPs to their timeouts, summed

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("dropped_full_buffer", self.dropped_full_buffer);
    visit("np_ecn_marked_roce_packets", self.np_ecn_marked_roce_packets);
    visit("np_cnp_sent", self.np_cnp_sent);
    visit("rp_cnp_handled", self.rp_cnp_handled);
    visit("rx_pauses", self.rx_pauses);
    visit("rx_pause_ps", self.rx_pause_ps);
    visit("tx_pauses", self.tx_pauses);
    visit("rate_limited_ps", self.rate_limited_ps);
    visit("ack_timeout_ps", self.ack_timeout_ps);
  }

  EthernetCounts& operator+=(const EthernetCounts& more) {
    dropped_by_chance += more.dropped_by_chance;
    dropped_full_buffer += more.dropped_full_buffer;
    rx_pauses += more.rx_pauses;
    rx_pause_ps += more.rx_pause_ps;
    tx_pauses += more.tx_pauses;
    np_ecn_marked_roce_packets += more.np_ecn_marked_roce_packets;
    np_cnp_sent += more.np_cnp_sent;
    rp_cnp_handled += more.rp_cnp_handled;
    rate_limited_ps += more.rate_limited_ps;
    ack_timeout_ps += more.ack_timeout_ps;
    return *this;
  }
};

}  // namespace verbscope
