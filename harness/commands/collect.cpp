// `verbscope collect`: joins the records of the tasks of a job array.
#include <memory>

#include "harness/commands/command.hpp"
#include "harness/point/job_array.hpp"

namespace verbscope {

Action add_collect(CLI::App& command) {
  command.description("join the records of a job array");
  command.footer("Example:\n  verbscope collect results/local/send_grid.jsonl");
  auto results = std::make_shared<std::string>();
  command.add_option("results", *results, "the results file of a run with --array")->required();
  return [results] { return collect_parts(*results, stdout); };
}

}  // namespace verbscope
