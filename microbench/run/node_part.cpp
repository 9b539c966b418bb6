#include "microbench/run/node_part.hpp"

#include <fmt/format.h>

namespace verbscope {

NodePart::NodePart(const Benchmark& its_benchmark, const Plan& its_plan, Side its_side, std::uint32_t its_client,
                   const NodePlace& place)
    : benchmark(its_benchmark),
      plan(its_plan),
      side(its_side),
      client(its_client),
      alone(place.alone),
      huge_pages(place.huge_pages),
      domains(place.uars.exclusive),
      settings(place.qps),
      qps(plan_qps(its_plan.topology, its_side, its_client)) {}

std::uint32_t NodePart::threads() const {
  return threads_per_qp() > 1 ? plan.topology.threads : used_threads(qps);
}

std::string NodePart::name_of(std::uint32_t machine) {
  return machine == 0 ? "server" : fmt::format("client{}", machine - 1);
}

}  // namespace verbscope
