// The size of a packet on the wire, header by header.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/units.hpp"
#include "nic_sim/link/packet.hpp"
#include "wire/packet.hpp"

namespace verbscope::sim {

class Framing {
 public:
  explicit Framing(LinkType type) : around_(facts(type).around), facts_(&facts(type)) {}

  bool ethernet() const { return facts_->ethernet; }

  // `extensions`: transport headers after the BTH. `global`: with InfiniBand's GRH; on RoCE every packet has an IP
  // header.
  std::uint32_t bytes(std::uint32_t payload, Bytes extensions, bool global) const {
    Bytes bytes = around_ + extensions + Bytes(round_up(payload, kPayloadPad.value));
    if (ethernet()) {
      bytes = std::max(bytes, facts_->least_frame) + facts_->between;
    } else if (global) {
      bytes += kGrh;
    }
    return static_cast<std::uint32_t>(bytes.value);
  }

 private:
  Bytes around_;
  const LinkFacts* facts_;
};

}  // namespace verbscope::sim
