// RECVs: fetched ahead of use, and filled by messages.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "nic_sim/link/packet.hpp"
#include "nic_sim/link/packet_pool.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/nic/completion.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/host_memory.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/receive_events.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

// Fetches RECVs ahead of use, from the queues of QPs and from shared ones.
class RecvFetcher {
 public:
  // `group`: as many RECVs as one DMA read fetches.
  RecvFetcher(PcieBus& bus, std::uint64_t group, const ReceiveEvents& events)
      : bus_(bus), group_(group), events_(events) {}
  RecvFetcher(const RecvFetcher&) = delete;
  RecvFetcher& operator=(const RecvFetcher&) = delete;

  // RECVs were posted, or used: asks for more if there are fewer than two groups ahead.
  void fetch(SimQp& qp);
  void fetch(SimSrq& srq);

  // RECVs of a shared queue are there, as the event says; yields the queue.
  SimSrq& shared_recvs_are_here(std::uint64_t srq_and_count);

 private:
  void fetch(RecvQueue& queue, Engine::Action fetched, std::uint64_t owner, unsigned shift);

  PcieBus& bus_;
  std::uint64_t group_;
  const ReceiveEvents& events_;
};

// Uses RECVs: a message takes one, its bytes fill it, and it completes; those of a QP that has failed complete as
// flushed.

// Where the adapter leaves the packet's payload for the driver to copy; nowhere: it goes to the RECV's buffer.
inline InlineReceive inline_receive(const SimQp& qp, const Packet& packet) {
  const bool fits = packet.verb == Verb::send && packet.first && packet.last && packet.payload <= qp.inline_recv;
  return fits ? qp.inline_place : InlineReceive::nowhere;
}

class RecvConsumer {
 public:
  RecvConsumer(PcieBus& bus, PacketPool& packets, LinkType link, NicCounts& counts, const HostMemory& memory,
               PayloadWriter& payload, CqeWriter& cqes, RecvFetcher& fetcher)
      : ethernet_(facts(link).ethernet),
        bus_(bus),
        packets_(packets),
        counts_(counts),
        memory_(memory),
        payload_(payload),
        cqes_(cqes),
        fetcher_(fetcher) {}
  RecvConsumer(const RecvConsumer&) = delete;
  RecvConsumer& operator=(const RecvConsumer&) = delete;

  // The next RECV is the present message's from now on. It must be fetched.
  void take(SimQp& qp, const Packet& packet);

  // Puts the payload of a SEND, and in front of it the GRH that a datagram has, into the RECV in use.
  ibv_wc_status deliver(SimQp& qp, const Packet& packet);

  // The message that `packet` is of has ended, and with it its RECV.
  void complete(SimQp& qp, const Packet& packet, ibv_wc_status status);

  // The RECV in use and all RECVs of the QP's own queue complete as flushed.
  void flush(SimQp& qp);

 private:
  ibv_wc_status scatter(SimQp& qp, std::uint64_t begin, std::span<const std::byte> data, InlineReceive place);
  void write(std::uint64_t address, std::span<const std::byte> data, std::uint32_t lkey);
  // Rare, and not in the way of what is not.
  [[gnu::noinline]] void write_behind(std::uint64_t address, std::span<const std::byte> data, std::uint32_t lkey);
  [[gnu::noinline]] ibv_wc_status deliver_grh(SimQp& qp, const Packet& packet);
  void complete_flushed(SimQp& qp, std::uint64_t wr_id, std::uint64_t index);

  bool ethernet_;
  PcieBus& bus_;
  PacketPool& packets_;
  NicCounts& counts_;
  const HostMemory& memory_;
  PayloadWriter& payload_;
  CqeWriter& cqes_;
  RecvFetcher& fetcher_;
};

}  // namespace verbscope::sim
