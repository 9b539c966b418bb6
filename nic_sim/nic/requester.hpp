// The half of a NIC that asks: its parts, each of which knows only those that its constructor is given. WQEs are
// fetched, units take QPs with work in turn and send a packet each time, and work requests end when sent (unreliable),
// acknowledged or answered (reliable).
#pragma once

#include "nic_sim/link/packet_pool.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/net/fabric.hpp"
#include "nic_sim/nic/completion.hpp"
#include "nic_sim/nic/confirmation.hpp"
#include "nic_sim/nic/congestion.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/host_memory.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/qp_contexts.hpp"
#include "nic_sim/nic/units.hpp"
#include "nic_sim/nic/wqe_fetcher.hpp"
#include "nic_sim/nic/wqe_processor.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

struct Requester {
  // `units`: they take in the answers. `node`: of the NIC. `seed`: of the WQE cache.
  Requester(Engine& engine, PcieBus& bus, Fabric& fabric, PacketPool& pool, const Profile& profile, NicCounts& counts,
            EthernetCounts& ethernet, const QpTable& qps, const WholeNic& whole, QpContexts& contexts,
            HostMemory& memory, Congestion& congestion, PayloadWriter& payload_writer, CqeWriter& cqes,
            ReceivingUnits& units, std::uint32_t node, std::uint64_t seed)
      : scheduler(engine, profile.nic.requester_units, whole),
        fetcher(engine, bus, profile.nic, counts, qps, contexts, scheduler, seed),
        completer(engine, qps, whole, fetcher, cqes),
        retransmitter(engine, profile.nic, ethernet.ack_timeout_ps, qps, scheduler, fetcher, completer),
        packets(bus, fabric, pool, profile.wire.link_type, counts, qps, memory, congestion, scheduler, completer, node),
        processor(engine, bus, profile.nic, memory, scheduler, fetcher, packets, completer, retransmitter),
        answers(engine, bus, fabric, pool.memory(), profile.nic, counts, qps, memory, payload_writer, units, scheduler,
                fetcher, completer, retransmitter) {}

  // Completes everything from `done` on as flushed.
  void flush(SimQp& qp) {
    forget(qp);
    completer.flush(qp);
  }
  // Forgets the QP before it is destroyed or reset.
  void forget(SimQp& qp) {
    fetcher.forget(qp);
    qp.requester.packet_of_next = 0;
    qp.requester.waiting = qp.requester.waits_for_rnr = false;
    qp.reads.ended = qp.reads.begun;
    answers.forget(qp);
  }

  UnitScheduler scheduler;
  WqeFetcher fetcher;
  SendCompleter completer;
  Retransmitter retransmitter;
  PacketBuilder packets;
  WqeProcessor processor;
  AnswerHandler answers;
};

}  // namespace verbscope::sim
