// RECVs: the fetch ahead of use, delivery of messages into them, and their completion.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "nic_sim/link/packet_pool.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/nic/completion.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/events.hpp"
#include "nic_sim/nic/host_memory.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

// Fetches RECVs ahead of use, from receive queues of QPs and from shared receive queues.
class RecvFetcher {
 public:
  // `group`: number of RECVs per DMA read.
  RecvFetcher(PcieBus& bus, std::uint64_t group, const ReceiveEvents& events)
      : bus_(bus), group_(group), events_(events) {}
  RecvFetcher(const RecvFetcher&) = delete;
  RecvFetcher& operator=(const RecvFetcher&) = delete;

  // Call after RECVs were posted or used: fetches more if fewer than two groups are ahead.
  void fetch(SimQp& qp);
  void fetch(SimSrq& srq);

  // Handles the event shared_recvs_fetched. Returns the queue.
  SimSrq& shared_recvs_fetched(std::uint64_t srq_and_count);

 private:
  void fetch(RecvQueue& queue, Engine::Action fetched, std::uint64_t owner, unsigned shift);

  PcieBus& bus_;
  std::uint64_t group_;
  const ReceiveEvents& events_;
};

// Where the adapter leaves the packet's payload for the driver to copy (inline receive); nowhere: in the RECV's buffer.
inline InlineReceive inline_receive(const SimQp& qp, const Packet& packet) {
  const bool fits = packet.verb == Verb::send && packet.first && packet.last && packet.payload <= qp.inline_recv;
  return fits ? qp.inline_place : InlineReceive::nowhere;
}

// Uses RECVs: each message takes one, fills it and completes it. RECVs of a failed QP complete as flushed.
class RecvConsumer {
 public:
  RecvConsumer(PcieBus& bus, PacketPool& packets, const Profile& profile, NicCounts& counts, const HostMemory& memory,
               PayloadWriter& payload, CqeWriter& cqes, AsyncEvents& events, RecvFetcher& fetcher)
      : ethernet_(facts(profile.wire.link_type).ethernet),
        completion_dma_(std::min(profile.nic.receive_dma, bus.write_latency())),
        bus_(bus),
        packets_(packets),
        counts_(counts),
        memory_(memory),
        payload_(payload),
        cqes_(cqes),
        events_(events),
        fetcher_(fetcher) {}
  RecvConsumer(const RecvConsumer&) = delete;
  RecvConsumer& operator=(const RecvConsumer&) = delete;

  // Assigns the next RECV to the current message. Precondition: that RECV is fetched.
  void take(SimQp& qp, const Packet& packet);

  // How long before the end of a packet's service the unit issues the writes of its payload. At the end it issues that
  // of the completion, if the packet has one.
  Picos payload_issued(bool completes) const { return completes ? completion_dma_ : Picos(0); }

  // Writes the payload of a SEND to the current RECV, behind the GRH of a datagram.
  ibv_wc_status deliver(SimQp& qp, const Packet& packet);

  // Completes the current RECV; `packet` is the last of its message.
  void complete(SimQp& qp, const Packet& packet, ibv_wc_status status);

  // Completes the current RECV and all RECVs of the QP's own queue as flushed.
  void flush(SimQp& qp);

 private:
  ibv_wc_status scatter(SimQp& qp, std::uint64_t begin, std::span<const std::byte> data, InlineReceive place,
                        Picos ago);
  void write(const Region& region, std::uint64_t address, std::span<const std::byte> data, Picos ago);
  // Rare: kept out of the callers' code.
  [[gnu::noinline]] void write_behind(std::uint64_t address, std::span<const std::byte> data, std::uint32_t lkey,
                                      Picos ago);
  [[gnu::noinline]] void tell_limit(SimSrq& srq);
  [[gnu::noinline]] ibv_wc_status deliver_grh(SimQp& qp, const Packet& packet);
  void complete_flushed(SimQp& qp, std::uint64_t wr_id, std::uint64_t index);

  bool ethernet_;
  Picos completion_dma_;
  PcieBus& bus_;
  PacketPool& packets_;
  NicCounts& counts_;
  const HostMemory& memory_;
  PayloadWriter& payload_;
  CqeWriter& cqes_;
  AsyncEvents& events_;
  RecvFetcher& fetcher_;
};

}  // namespace verbscope::sim
