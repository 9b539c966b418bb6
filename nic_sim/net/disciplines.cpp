#include <array>

#include "common/error.hpp"
#include "nic_sim/net/discipline.hpp"

namespace verbscope::sim {
namespace {

struct Row {
  FlowControl kind;
  std::unique_ptr<Discipline> (*make)(const BufferLimits& limits);
};
constexpr std::array kRows{Row{FlowControl::tail_drop, &make_tail_drop}, Row{FlowControl::pfc, &make_pfc}};

}  // namespace

std::unique_ptr<Discipline> make_discipline(FlowControl kind, const BufferLimits& limits) {
  for (const Row& row : kRows) {
    if (row.kind == kind) return row.make(limits);
  }
  fail("flow control {}: no discipline of an Ethernet switch", static_cast<int>(kind));
}

}  // namespace verbscope::sim
