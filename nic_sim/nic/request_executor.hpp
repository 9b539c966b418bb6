// Does what a request asks for, or says why not: payload into memory or a RECV, atomics, completions, acknowledgements.
#pragma once

#include "nic_sim/link/packet.hpp"
#include "nic_sim/nic/answer_sender.hpp"
#include "nic_sim/nic/atomic_unit.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/judgement.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/payload_writer.hpp"
#include "nic_sim/nic/recv_consumer.hpp"
#include "nic_sim/nic/whole_nic.hpp"
#include "nic_sim/profile/profile.hpp"

namespace verbscope::sim {

class RequestExecutor {
 public:
  RequestExecutor(const NicProfile& profile, NicCounts& counts, const WholeNic& whole, PayloadWriter& payload,
                  RecvConsumer& recvs, AnswerSender& answers, AtomicUnit& atomics)
      : profile_(profile),
        counts_(counts),
        whole_(whole),
        payload_(payload),
        recvs_(recvs),
        answers_(answers),
        atomics_(atomics) {}
  RequestExecutor(const RequestExecutor&) = delete;
  RequestExecutor& operator=(const RequestExecutor&) = delete;

  // The packet is as expected: it takes effect; but the response to a READ is the unit's work, packet by packet. False:
  // an atomic that waits for its slot in front of its unit's line.
  bool take(SimQp& qp, Packet& packet);

  // `verdict`, which is neither take nor repeat, is said to the packet.
  void refuse(SimQp& qp, const Packet& packet, Verdict verdict);

 private:
  void take_payload(SimQp& qp, Packet& packet);
  void finish_message(SimQp& qp, const Packet& packet);
  void fail_message(SimQp& qp, const Packet& packet, ibv_wc_status status);

  const NicProfile& profile_;
  NicCounts& counts_;
  const WholeNic& whole_;
  PayloadWriter& payload_;
  RecvConsumer& recvs_;
  AnswerSender& answers_;
  AtomicUnit& atomics_;
};

}  // namespace verbscope::sim
