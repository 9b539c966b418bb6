// Fake benchmarks: shell scripts that follow the protocol of the real ones.
#pragma once

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/paths.hpp"
#include "common/record.hpp"
#include "harness/process/child.hpp"
#include "harness/process/temp_folder.hpp"

namespace verbscope {

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The message that `action` throws, which must be one line.
template <class Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << "more than one line";
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

// The shipped clusters, as messages list them: "cib, cx, cx3".
inline std::string shipped_clusters() {
  return fmt::format("{}", fmt::join(list_configs("clusters"), ", "));
}

// True if a killed process is gone within 10 s. A zombie of init counts as gone.
inline bool is_gone_soon(int pid) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < deadline) {
    const std::string state = read_text("/proc/" + std::to_string(pid) + "/stat");
    if (state.empty() || state.find(") Z ") != std::string::npos) return true;
    usleep(1000);
  }
  return false;
}

inline constexpr const char* kFakeDescription = R"({"benchmark": "send_rate", "options": [
  {"name": "connection", "type": "string", "default": "RC", "allowed": ["RC", "UC", "UD"], "help": "transport"},
  {"name": "size", "type": "integer", "default": 64, "allowed": {"min": 0, "max": 4096}, "help": "payload in bytes"},
  {"name": "post_list", "type": "integer", "default": 1, "allowed": null, "help": "list"},
  {"name": "load", "type": "number", "default": 1.0, "allowed": null, "help": "share"},
  {"name": "validate", "type": "boolean", "default": false, "allowed": null, "help": "check"},
  {"name": "clients", "type": "integer", "default": null, "allowed": null, "help": "machines"},
  {"name": "duration", "type": "duration", "default": null, "allowed": {"zero": false}, "help": "time"},
  {"name": "seed", "type": "integer", "default": 1, "allowed": {"min": 0, "max": 1000}, "help": "seed"}]})";

// The record that a fake writes: 10 Mops over RC with 64 bytes.
inline Record fake_record(const std::string& fabric = "null") {
  Record record;
  record.benchmark = "send_rate";
  record.config = Json{{"connection", "RC"}, {"size", 64}, {"post_list", 1}};
  record.result = Json{{"rate_mops", 10.0}, {"window_ops", 1000}};
  record.environment = make_environment(fabric, {"send_rate"});
  return record;
}

// The script of a successful fake benchmark: it writes its record.
inline constexpr const char* kGood = "cat \"$record\" >> \"$out\"";

// A folder with a program `send_rate`: it handles --describe; other calls run `body` with $out (the record's file),
// $record (a file with a good record), $dir (the folder) and $all (the arguments) set.
class FakeBenchmark {
 public:
  explicit FakeBenchmark(const std::string& body, const std::string& fabric = "null") {
    write_text(folder_.file("record"), dump_json(to_json(fake_record(fabric))) + "\n");
    write_text(folder_.file("description"), kFakeDescription);
    const std::string dir = folder_.file("");
    write_text(folder_.file("send_rate"),
               "#!/bin/sh\ndir='" + dir + "'\nrecord=\"$dir/record\"\nall=\"$*\"\n" +
                   "[ \"$1\" = --describe ] && exec cat \"$dir/description\"\n" +
                   "for a in \"$@\"; do case \"$a\" in --out_json_file=*) out=${a#*=};; esac; done\n" + body + "\n");
    std::filesystem::permissions(binary(), std::filesystem::perms::owner_all);
  }

  std::filesystem::path folder() const { return folder_.file(""); }
  std::filesystem::path binary() const { return folder_.file("send_rate"); }
  std::string file(const std::string& name) const { return folder_.file(name); }

 private:
  TempFolder folder_;
};

}  // namespace verbscope
