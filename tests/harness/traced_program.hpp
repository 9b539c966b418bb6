// A program of verbs on a simulated cluster, for the findings of `verbscope trace`: node 0 posts to, or receives from,
// the nodes of its peers, and is traced as a benchmark is under --counter_sources driver. What may be wrong with such a
// program is a knob each.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "drivers_patch/summary.hpp"
#include "nic_sim/profile/profile.hpp"

namespace verbscope::test {

struct Knobs {
  const char* cluster = "cib";
  ibv_qp_type type = IBV_QPT_UD;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  std::uint32_t size = 32;
  bool inlined = true;
  int list = 16;          // requests a post
  int turn = 16;          // requests of a QP between two polls
  int signal_every = 16;  // requests a completion
  int threads = 1;
  int qps = 1;       // of each thread, which take turns
  int cqs = 1;       // of each thread, each of which is polled every turn
  int window = 256;  // requests of a QP under way
  ibv_mtu mtu = IBV_MTU_4096;
  int reads_at_once = 16;
  int addresses = 4096;                        // that atomics take turns at
  int registers = 0;                           // doorbell registers of the context; 0: as many as there are QPs
  int spare_qps = 0;                           // made before the others
  bool registers_each = false;                 // each post's memory is registered for it, and deregistered
  bool receives = false;                       // the peers send
  int recv_list = 16;                          // RECVs a post
  Picos run = std::chrono::microseconds(500);  // of virtual time, of which the first quarter does not count
};

struct Ran {
  double mops = 0;  // requests that were done, or messages that came, a microsecond of virtual time
  driver::Summary program;
};

Ran run_program(const Knobs& knobs);

}  // namespace verbscope::test
