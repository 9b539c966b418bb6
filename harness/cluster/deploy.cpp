#include "harness/cluster/deploy.hpp"

#include <fcntl.h>
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <sstream>

#include "common/error.hpp"
#include "common/record.hpp"
#include "harness/cluster/launcher.hpp"
#include "harness/process/child.hpp"
#include "harness/process/temp_folder.hpp"

namespace verbscope {
namespace {

constexpr std::chrono::seconds kQueryLimit{60};
constexpr std::chrono::seconds kCopyLimit{600};

// Marks our answers, because a login script may print too.
constexpr std::string_view kAnswer = "verbscope-deploy";

// Prints the host's architecture, its cache folder, and which of the programs HASH/NAME in the arguments it has
// unchanged.
constexpr const char* kQueryScript =
    "d=$HOME/.cache/verbscope; echo verbscope-deploy $(uname -m); echo verbscope-deploy \"$d\"; "
    "for p; do [ \"$(sha256sum 2>/dev/null < \"$d/$p\" | cut -c1-64)\" = \"${p%/*}\" ] && echo verbscope-deploy "
    "\"$p\"; "
    "done 2>/dev/null; :";

// Stores its compressed input as HASH/NAME ($1). Writes a temporary file, checks it, and renames it, so that no other
// process sees a part. The file is removed if the input ends early, which happens when the connection is lost, or at a
// signal (not every shell runs the EXIT trap then).
constexpr const char* kCopyScript =
    "set -e; umask 077; d=$HOME/.cache/verbscope; mkdir -p \"$d\"; t=; trap 'rm -f \"$t\"' EXIT; "
    "trap 'exit 1' HUP INT TERM PIPE; t=$(mktemp -p \"$d\"); gzip -dc > \"$t\"; "
    "[ \"$(sha256sum < \"$t\" | cut -c1-64)\" = \"${1%/*}\" ] || "
    "{ echo 'the copy differs from what was sent' >&2; exit 1; }; chmod 700 \"$t\"; mkdir -p \"$d/${1%/*}\"; "
    "mv -f \"$t\" \"$d/$1\"";

constexpr const char* kRemoveScript = "rm -rf \"$HOME/.cache/verbscope\"";

std::vector<std::string> script(const char* text, const std::vector<std::string>& arguments) {
  std::vector<std::string> words{"sh", "-c", text, "sh"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

std::vector<std::string> marked_lines(const std::string& output) {
  std::vector<std::string> out;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kAnswer)) out.push_back(line.substr(std::min(line.size(), kAnswer.size() + 1)));
  }
  return out;
}

// Runs a local tool to its end. `on_output` receives its output.
void run_tool(const std::vector<std::string>& command, const std::string& what, const Child::OutputHook& on_output,
              StopSource* stop) {
  Child tool(command, on_output);
  const WaitEnd end = wait_for_end(tool, std::chrono::steady_clock::now() + kCopyLimit, stop);
  if (end == WaitEnd::interrupted) throw InterruptedError(what + ": interrupted");
  if (end == WaitEnd::timeout) fail("{}: not finished after {} s", what, kCopyLimit.count());
  if (!tool.succeeded()) fail("{}: {}", what, tool.end_and_last_line());
}

void copy(Launcher& launcher, const Host& host, const Program& program, StopSource* stop) {
  const TempFolder folder;
  const std::string packed = folder.file("packed");
  run_tool({"/bin/sh", "-c", "exec gzip -1 -c < \"$1\" > \"$2\"", "sh", program.path.string(), packed}, "gzip", {},
           stop);
  Fd input(check("open " + packed, open(packed.c_str(), O_RDONLY | O_CLOEXEC)));
  remote_call(launcher, host, "copy " + program.name, script(kCopyScript, {program.hash + "/" + program.name}),
              kCopyLimit, stop, std::move(input));
}

}  // namespace

std::vector<Program> hash_programs(const std::filesystem::path& folder, const std::vector<std::string>& names,
                                   StopSource* stop) {
  std::vector<Program> out;
  std::vector<std::string> command{find_program("sha256sum"), "--"};
  for (const std::string& name : names) {
    if (!std::filesystem::is_regular_file(folder / name))
      fail("{} does not exist and cannot be deployed; build it first", (folder / name).string());
    out.push_back({name, folder / name, ""});
    command.push_back((folder / name).string());
  }
  std::string output;
  run_tool(
      command, "sha256sum", [&output](std::string_view chunk) { output += chunk; }, stop);
  std::istringstream lines(output);
  for (Program& program : out) {
    std::string line;
    std::getline(lines, line);
    program.hash = line.substr(0, line.find(' '));
    if (program.hash.size() != 64) fail("sha256sum printed no hash for {}", program.path.string());
  }
  return out;
}

std::size_t Deployment::deploy(Launcher& launcher, const Host& host, const std::vector<Program>& programs,
                               StopSource* stop) {
  std::vector<std::string> wanted;
  for (const Program& program : programs) wanted.push_back(program.hash + "/" + program.name);
  std::vector<std::string> answers =
      marked_lines(remote_call(launcher, host, "query", script(kQueryScript, wanted), kQueryLimit, stop));
  if (answers.size() < 2 || !answers[1].starts_with('/')) fail("host {}: it returned no home folder", host.name);
  utsname here{};
  check("uname", uname(&here));
  if (answers[0] != here.machine) {
    fail("host {}: its architecture is {}, but these programs are for {}", host.name, answers[0], here.machine);
  }
  std::size_t copied = 0;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    paths_[{host.name, programs[i].name}] = answers[1] + "/" + wanted[i];
    if (std::ranges::find(answers, wanted[i]) != answers.end()) continue;
    copy(launcher, host, programs[i], stop);
    ++copied;
  }
  const std::string version = build_info().version;
  const std::string output =
      remote_call(launcher, host, "start verbscope", {*path(host, "verbscope"), "--version"}, kQueryLimit, stop);
  if (output.find(version) == std::string::npos)
    fail("host {}: the deployed verbscope is not version {}", host.name, version);
  return copied;
}

const std::string* Deployment::path(const Host& host, const std::string& program) const {
  const auto found = paths_.find({host.name, program});
  return found == paths_.end() ? nullptr : &found->second;
}

void remove_deployed(Launcher& launcher, const Host& host, StopSource* stop) {
  remote_call(launcher, host, "clean", script(kRemoveScript, {}), kQueryLimit, stop);
}

}  // namespace verbscope
