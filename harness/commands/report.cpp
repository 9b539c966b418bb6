// `verbscope report`: records as one interactive page that opens offline.
#include "analysis/report.hpp"

#include <fstream>
#include <memory>

#include "analysis/points.hpp"
#include "common/error.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/shared_options.hpp"

namespace verbscope {
namespace {

void write_text(const std::string& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text << std::flush;
  if (!file) throw_errno(fmt::format("cannot write {}", path), errno);
}

}  // namespace

Action add_report(CLI::App& command) {
  command.description("records as one interactive page that opens offline");
  struct Options {
    std::vector<std::string> results;
    std::string out = "report.html";
    bool all = false;
  };
  auto options = std::make_shared<Options>();
  add_results(command, options->results);
  command.add_option("-o,--out", options->out, "the page (report.html)");
  add_all(command, options->all);
  return [options] {
    const std::vector<Record> records = load_results(options->results, options->all);
    write_text(options->out, report_page(chosen_records(records, options->all)));
    fmt::print("{}\n", options->out);
    return 0;
  };
}

}  // namespace verbscope
