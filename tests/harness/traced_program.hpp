// A program of verbs on a simulated cluster, for the findings of `verbscope trace`: node 0 posts to, or receives from,
// the nodes of its peers, and is traced like a benchmark with --counter_sources driver. Each member is a
// parameter that can be wrong in a program.
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
  int list = 16;          // requests per post
  int turn = 16;          // requests of a QP between two polls
  int signal_every = 16;  // requests per completion
  int threads = 1;
  int qps = 1;       // per thread, used in turn
  int cqs = 1;       // per thread, all polled every turn
  int window = 256;  // outstanding requests per QP
  ibv_mtu mtu = IBV_MTU_4096;
  int reads_at_once = 16;
  int addresses = 4096;                        // used by atomics in turn
  int registers = 0;                           // doorbell registers of the context; 0: as many as there are QPs
  int spare_qps = 0;                           // created before the others
  bool registers_each = false;                 // registers and deregisters memory for each post
  bool receives = false;                       // the peers send
  int recv_list = 16;                          // RECVs per post
  Picos run = std::chrono::microseconds(500);  // virtual time; the first quarter is not measured
};

struct Ran {
  double mops = 0;  // completed requests or received messages per microsecond of virtual time
  driver::Summary program;
};

Ran run_program(const Knobs& knobs);

}  // namespace verbscope::test
