// `verbscope import`: converts the output of other tools to records.
#include <memory>

#include "common/cli.hpp"
#include "common/files.hpp"
#include "common/terminal.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/shared_options.hpp"
#include "harness/import/import_files.hpp"

namespace verbscope {

Action add_import(CLI::App& command) {
  command.description("convert output of perftest, ucx_perftest and Intel PCM to records");
  command.footer(
      "Examples:\n"
      "  verbscope import ib_write_bw.txt -o results/local/mine.jsonl\n"
      "  verbscope import pcm-pcie.csv --interval 500ms -o results/local/pcm.jsonl");
  struct Options {
    std::vector<std::string> files;
    std::string out;
    std::string interval = "1s";
  };
  auto options = std::make_shared<Options>();
  command
      .add_option("files", options->files,
                  "tables or JSON of perftest, tables of ucx_perftest, CSV of pcm-pcie or pcm-iio")
      ->required();
  command.add_option("-o,--out", options->out, "append the records to this file (default: print them)");
  command.add_option("--interval", options->interval, "interval with which pcm-pcie or pcm-iio ran")->default_str("1s");
  return [options, &command] {
    const Picos interval = parse_duration(options->interval, "--interval");
    if (interval < std::chrono::milliseconds(1)) fail_usage("--interval {}: expected at least 1ms", options->interval);
    ImportRequest request{
        .files = paths_of(options->files), .interval_s = to_seconds(interval), .command_line = {"verbscope", "import"}};
    request.command_line.insert(request.command_line.end(), options->files.begin(), options->files.end());
    if (command.count("--out") == 0) {
      for (const Record& record : import_files(request)) print_text(stdout, dump_json(to_json(record)) + "\n");
      return 0;
    }
    check_output("--out", options->out, FileKind::results, request.files);
    const std::vector<Record> records = import_files(request);
    ResultsWriter writer(options->out, "--out", request.files);
    for (const Record& record : records) writer.append(record);
    print_format(stdout, "{}: {} record{} imported\n", options->out, records.size(), records.size() == 1 ? "" : "s");
    return 0;
  };
}

}  // namespace verbscope
