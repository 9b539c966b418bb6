#include "harness/point/job_array.hpp"

#include <algorithm>
#include <map>
#include <sstream>

#include "common/cli.hpp"
#include "common/files.hpp"
#include "common/paths.hpp"
#include "common/record.hpp"
#include "common/terminal.hpp"
#include "harness/cluster/shell_quote.hpp"
#include "harness/point/point_runner.hpp"
#include "harness/process/child.hpp"

namespace verbscope {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kTaskVariable = "$SLURM_ARRAY_TASK_ID";

std::filesystem::path parts_folder(const std::filesystem::path& results) {
  return std::filesystem::absolute(results.string() + ".parts");
}

// Makes the path of a file absolute; keeps names of sweeps and fabrics.
std::string absolute_if_file(const std::string& text) {
  return std::filesystem::is_regular_file(text) ? std::filesystem::absolute(text).string() : text;
}

// The command of a task, without the options that depend on its number.
std::vector<std::string> task_command(const RunOptions& options, const std::string& hosts,
                                      const std::filesystem::path& folder, const std::filesystem::path& parts) {
  const auto file = sweep_file(options.sweep);
  std::vector<std::string> words{folder / "verbscope",
                                 "run",
                                 file ? std::filesystem::absolute(*file).string() : options.sweep,
                                 "--hosts",
                                 absolute_if_file(hosts),
                                 "--points",
                                 parts / "points"};
  const auto add = [&words](const char* option, const auto& value) {
    words.push_back(option);
    words.push_back(fmt::format("{}", value));
  };
  if (options.seed) add("--seed", *options.seed);
  if (options.repetitions) add("--repetitions", *options.repetitions);
  for (const std::string& setting : options.set) add("--set", setting);
  for (const std::string& setting : options.vary) add("--vary", setting);
  if (!options.launcher.name.empty()) add("--launcher", options.launcher.name);
  if (!options.launcher.ssh_config.empty()) add("--ssh_config", absolute_if_file(options.launcher.ssh_config));
  add("--timeout", fmt::format("{}ms", options.limits.timeout.count()));
  add("--silence", fmt::format("{}ms", options.limits.silence.count()));
  add("--connect_timeout", fmt::format("{}s", options.launcher.connect_timeout.count()));
  add("--port", options.port);
  add("--jobs", options.jobs);
  add("--retries", options.retries);
  if (options.fail_fast) words.push_back("--fail_fast");
  return words;
}

void write_parts(const RunOptions& options, const std::string& hosts, const std::vector<Point>& points,
                 const std::string& fabric, const std::filesystem::path& folder, const std::filesystem::path& parts) {
  std::error_code error;
  if (!std::filesystem::create_directory(parts, error)) {
    fail("{}: {}", parts.string(), error ? error.message() : "already exists: run verbscope collect, or remove it");
  }
  std::string keys;
  for (const Point& point : points) keys += point_key(point_identity(point, fabric)) + "\n";
  replace_file(parts / "points", keys);
  replace_file(parts / "task.sh", fmt::format("#!/bin/sh\nexec {} --share \"{}/{}\" --out {}\"/{}.jsonl\"\n",
                                              shell_quote(task_command(options, hosts, folder, parts)), kTaskVariable,
                                              options.array, shell_quote({parts.string()}), kTaskVariable));
}

}  // namespace

int run_job_array(const RunOptions& options, const std::string& hosts, const std::vector<Point>& points,
                  const std::string& fabric, const std::filesystem::path& results, const std::filesystem::path& folder,
                  StopSource* stop, std::FILE* out) {
  const std::string sbatch = find_program("sbatch"), scancel = find_program("scancel");
  const std::filesystem::path parts = parts_folder(results);
  write_parts(options, hosts, points, fabric, folder, parts);
  std::vector<std::string> command{sbatch,
                                   "--parsable",
                                   "--wait",
                                   "--job-name=verbscope",
                                   fmt::format("--array=0-{}", options.array - 1),
                                   "--output=" + (parts / "%a.log").string()};
  command.insert(command.end(), options.sbatch.begin(), options.sbatch.end());
  command.push_back(parts / "task.sh");
  std::string job;
  Child child(command, [&job](std::string_view chunk) { job += chunk.substr(0, 100); });
  const WaitEnd end = wait_for_end(child, Clock::time_point::max(), stop);
  job = job.substr(0, job.find_first_of(";\n"));
  if (job.empty()) {
    std::filesystem::remove_all(parts);
    const std::vector<std::string> tail = child.tail();
    fail("--array: {}", tail.empty() ? "sbatch: " + child.end_text() : tail.back());
  }
  if (end == WaitEnd::interrupted) {
    Child cancel({scancel, job});
    wait_for_end(cancel, Clock::now() + std::chrono::seconds(30), nullptr);
    print_error(fmt::format("interrupted: job {} is cancelled", job));
    wait_for_end(child, Clock::now() + std::chrono::seconds(30), nullptr);
  }
  const int status = collect_parts(results, out);
  return end == WaitEnd::interrupted ? kExitInterrupted : status;
}

int collect_parts(const std::filesystem::path& results, std::FILE* out) {
  const std::filesystem::path parts = parts_folder(results);
  if (!std::filesystem::is_directory(parts)) fail("{}: no parts of a job array to collect", parts.string());
  std::map<std::string, Record> records;
  for (const auto& entry : std::filesystem::directory_iterator(parts)) {
    if (entry.path().extension() != ".jsonl") continue;
    Results part = read_results_warning(entry.path());
    for (Record& record : part.records) {
      if (record.config.contains("point")) records[point_key(record.config.at("point"))] = std::move(record);
    }
  }
  std::istringstream keys(read_text_file(parts / "points"));
  std::string missing;
  std::size_t missing_count = 0, failed = 0, found = 0;
  ResultsWriter writer(results, "results");
  for (std::string key; std::getline(keys, key);) {
    const auto record = records.find(key);
    if (record == records.end()) {
      missing += key + "\n";
      ++missing_count;
      continue;
    }
    ++found;
    if (record->second.status == RecordStatus::failed) ++failed;
    writer.append(record->second);
  }
  if (failed > 0) print_error(fmt::format("{} of {} points failed", failed, found));
  print_format(out, "records: {}\n", results.string());
  if (missing_count == 0) {
    std::filesystem::remove_all(parts);
    return failed > 0 ? 1 : 0;
  }
  replace_file(parts / "points", missing);  // the next `verbscope collect` handles only these
  print_error(fmt::format("{} points have no record yet; the output of the tasks is in {}", missing_count,
                          (parts / "*.log").string()));
  return 1;
}

}  // namespace verbscope
