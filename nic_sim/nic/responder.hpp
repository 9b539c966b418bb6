// The half of a NIC that answers: its parts, each of which knows only those that its constructor is given. Request
// packets wait in line for the unit of their QP. A SEND takes a RECV; payload and CQE are written; READs and atomics
// are answered, all else is acknowledged on reliable transports, in order.
#pragma once

#include "nic_sim/link/packet_pool.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/net/fabric.hpp"
#include "nic_sim/nic/answers.hpp"
#include "nic_sim/nic/completion.hpp"
#include "nic_sim/nic/congestion.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/host_memory.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/qp_contexts.hpp"
#include "nic_sim/nic/qp_table.hpp"
#include "nic_sim/nic/recvs.hpp"
#include "nic_sim/nic/requests.hpp"
#include "nic_sim/nic/units.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

struct Responder {
  // `node`: of the NIC.
  Responder(Engine& engine, PcieBus& bus, Fabric& fabric, PacketPool& pool, const Profile& profile, NicCounts& counts,
            const QpTable& qps, const WholeNic& whole, QpContexts& contexts, HostMemory& memory, Congestion& congestion,
            PayloadWriter& payload, CqeWriter& cqes, std::uint32_t node, std::uint64_t seed)
      : units(engine, bus, fabric, pool.memory(), counts, qps, congestion, profile.nic.responder_units, contexts,
              whole),
        fetcher(bus, qps, static_cast<std::uint64_t>(profile.wire.recv_prefetch), units),
        recvs(bus, pool, profile.wire.link_type, counts, memory, payload, cqes, fetcher),
        answers(engine, bus, fabric, pool, profile, counts, qps, whole, memory, congestion, node, seed),
        atomics(engine, bus, pool, profile.nic, counts, qps, memory, payload, units, answers),
        executor(profile.nic, counts, whole, payload, recvs, answers, atomics),
        processor(engine, bus, profile.nic, counts, contexts, memory, whole, units, executor, answers) {}

  // Completes all RECVs of the QP's own queue, and the one in use, as flushed.
  void flush(SimQp& qp) {
    recvs.flush(qp);
    units.forget(qp);
  }

  ReceivingUnits units;
  RecvFetcher fetcher;
  RecvConsumer recvs;
  AnswerSender answers;
  AtomicUnit atomics;
  RequestExecutor executor;
  RequestProcessor processor;
};

}  // namespace verbscope::sim
