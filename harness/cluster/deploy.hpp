// Programs on other hosts: what is missing there is copied, found again by the hash of its content.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/cluster/launcher.hpp"

namespace verbscope {

// A program of this machine, with the SHA-256 of its content.
struct Program {
  std::string name;
  std::filesystem::path path;
  std::string hash;
};

// Throws when one of the programs is not in the folder.
std::vector<Program> hash_programs(const std::filesystem::path& folder, const std::vector<std::string>& names);

// The paths of the programs on each host.
class Deployment {
 public:
  // Brings the programs, `verbscope` among them, to ~/.cache/verbscope/HASH/NAME of the host, where they are not yet,
  // and asks that `verbscope` for its version: an architecture that is not this one, a missing library and a full disk
  // are errors, one line with the host's name. Returns the number of programs that were copied. Needs no root there.
  std::size_t deploy(Launcher& launcher, const Host& host, const std::vector<Program>& programs, StopSource* stop);

  // The program's absolute path on the host; null when it was not deployed there.
  const std::string* path(const Host& host, const std::string& program) const;

 private:
  std::map<std::pair<std::string, std::string>, std::string> paths_;  // by host and program
};

// Removes ~/.cache/verbscope of the host. Throws as above.
void remove_deployed(Launcher& launcher, const Host& host, StopSource* stop);

}  // namespace verbscope
