// A peer that dies: on a real device a process that is killed, in the simulator side b, whose objects go all at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tests/conformance/side.hpp"

namespace verbscope::conformance {

// The addresses by which a survivor reaches the victim's QPs and memory.
struct VictimAddress {
  std::uint32_t rc = 0;  // numbers of its QPs
  std::uint32_t uc = 0;
  std::uint32_t ud = 0;
  std::uint32_t rkey = 0;
  std::uint64_t memory = 0;  // Side::kMemory bytes, every access

  std::uint32_t qp(ibv_qp_type type) const { return type == IBV_QPT_RC ? rc : type == IBV_QPT_UC ? uc : ud; }
};

class Victim {
 public:
  virtual ~Victim() = default;
  virtual VictimAddress address() const = 0;
  // Its connected QPs go to RTS towards these of the survivor, and have RECVs.
  virtual void connect(std::uint32_t rc, std::uint32_t uc) = 0;
  virtual void die() = 0;
};

// `b` is the side that dies in the simulator; elsewhere a process is started.
std::unique_ptr<Victim> make_victim(Side& a, Side& b);

// The victim's process: talks with the survivor over standard input and output until it is killed or the survivor is
// gone.
int be_the_victim();

}  // namespace verbscope::conformance
