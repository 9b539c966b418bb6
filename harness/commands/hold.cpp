// `verbscope hold`: the remote end of a launcher.
#include "harness/cluster/hold.hpp"

#include "harness/commands/command.hpp"

namespace verbscope {

Action add_hold(CLI::App& command) {
  command.description("run one program for `verbscope run`, which starts this command on other hosts");
  return [] { return hold_program(); };
}

}  // namespace verbscope
