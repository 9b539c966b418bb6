// Copies missing programs to other hosts. Programs there are identified by the hash of their content.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/cluster/launcher.hpp"

namespace verbscope {

// A program on this machine, with the SHA-256 of its content.
struct Program {
  std::string name;
  std::filesystem::path path;
  std::string hash;
};

// Throws if one of the programs is not in the folder. `stop` may be null.
std::vector<Program> hash_programs(const std::filesystem::path& folder, const std::vector<std::string>& names,
                                   StopSource* stop);

// Records which programs are where on each host.
class Deployment {
 public:
  // Copies the programs that the host does not have yet, which must include `verbscope`, to
  // ~/.cache/verbscope/HASH/NAME there, then runs `verbscope --version` on it. Reports another architecture, a missing
  // library or a full disk as one line with the host's name. Returns the number of copied programs. Needs no root
  // privileges.
  std::size_t deploy(Launcher& launcher, const Host& host, const std::vector<Program>& programs, StopSource* stop);

  // The program's absolute path on the host; null if it was not deployed there.
  const std::string* path(const Host& host, const std::string& program) const;

 private:
  std::map<std::pair<std::string, std::string>, std::string> paths_;  // by host and program
};

// Removes ~/.cache/verbscope on the host. Throws one line with the host's name.
void remove_deployed(Launcher& launcher, const Host& host, StopSource* stop);

}  // namespace verbscope
