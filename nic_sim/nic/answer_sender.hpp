// Sends what the responder answers: acknowledgements, the data of READs, the results of atomics. All of a QP leave in
// the order of the requests, so one whose data are still being read holds up those behind it.
#pragma once

#include <cstdint>

#include "nic_sim/link/framing.hpp"
#include "nic_sim/link/packet.hpp"
#include "nic_sim/link/packet_pool.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/net/fabric.hpp"
#include "nic_sim/nic/congestion.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/host_memory.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/qp_table.hpp"
#include "nic_sim/nic/whole_nic.hpp"
#include "nic_sim/profile/random.hpp"

namespace verbscope::sim {

class AnswerSender {
 public:
  // `node`: of the NIC, the answers' source.
  AnswerSender(Engine& engine, PcieBus& bus, Fabric& fabric, PacketPool& packets, const Profile& profile,
               NicCounts& counts, const QpTable& qps, const WholeNic& whole, const HostMemory& memory,
               Congestion& congestion, std::uint32_t node, std::uint64_t seed)
      : engine_(engine),
        bus_(bus),
        fabric_(fabric),
        packets_(packets),
        framing_(profile.wire.link_type),
        profile_(profile.nic),
        counts_(counts),
        qps_(qps),
        whole_(whole),
        memory_(memory),
        congestion_(congestion),
        node_(node),
        random_(seed) {}
  AnswerSender(const AnswerSender&) = delete;
  AnswerSender& operator=(const AnswerSender&) = delete;

  // An acknowledgement of either kind of everything up to `sequence`.
  void acknowledge(SimQp& qp, Packet::Kind kind, std::uint32_t sequence);

  // Packet `number` of the response to a READ; its data are read first. `repeats`: the READ was answered before. Yields
  // whether it is the last.
  bool respond(SimQp& qp, const Packet& read, std::uint32_t number, bool repeats);

  // The response to an atomic; the caller puts the 8 bytes of the result into its data.
  Packet& make_atomic_response(const SimQp& qp, const Packet& atomic);

  // Puts an answer behind those of the QP that have not left. It waits there while its reads_left is not 0.
  void send(SimQp& qp, Packet& answer);

  // Whether the region that the request of `answer` named has not been deregistered meanwhile.
  bool still_there(const SimQp& qp, const Packet& answer, std::uint64_t bytes) const {
    return memory_.grants(*qp.pd, answer.rkey, answer.remote_address, bytes, 0);
  }
  // The data of `answer` are in it, and it may leave. Not `there`: their region has gone; the answer refuses, and the
  // QP fails.
  void data_read(SimQp& qp, Packet& answer, bool there);

 private:
  static void response_read(void* sender, std::uint64_t answer);
  static void response_ready(void* sender, std::uint64_t answer);
  static void rate_allows(void* sender, std::uint64_t qp);
  Packet& make(const SimQp& qp, Packet::Kind kind, std::uint32_t sequence, std::uint32_t payload, Bytes extensions);
  void send_ready(SimQp& qp);

  Engine& engine_;
  PcieBus& bus_;
  Fabric& fabric_;
  PacketPool& packets_;
  Framing framing_;
  const NicProfile& profile_;
  NicCounts& counts_;
  const QpTable& qps_;
  const WholeNic& whole_;
  const HostMemory& memory_;
  Congestion& congestion_;
  std::uint32_t node_;
  Random random_;
};

}  // namespace verbscope::sim
