#include "microbench/run/run_cores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "common/terminal.hpp"
#include "machine/threads.hpp"

namespace verbscope {

RunCores::RunCores(const std::vector<int>& named, std::size_t threads, CoreClaims claims) : claims_(std::move(claims)) {
  const std::vector<int> allowed = allowed_cores();
  CoreChoice choice = named.empty() ? claims_.claim_free(allowed, threads) : claims_.claim_named(named, threads);
  if (!choice.contested.empty()) {
    warn(fmt::format("{} core {}, which another run holds: each slows the other",
                     named.empty() ? "no other core is free than" : "--cores names", core_list(choice.contested)));
  }
  threads_ = std::move(choice.cores);
  const auto end = threads_.begin() + static_cast<std::ptrdiff_t>(std::min(threads, threads_.size()));
  std::ranges::copy_if(allowed, std::back_inserter(controller_),
                       [&](int core) { return std::find(threads_.begin(), end, core) == end; });
}

}  // namespace verbscope
