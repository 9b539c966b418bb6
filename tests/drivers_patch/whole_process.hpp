// Whole processes under the preloaded library, with a stand-in for libibverbs: victim.cpp has their scenes.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "drivers_patch/arena.hpp"
#include "drivers_patch/summary.hpp"
#include "tests/common/temp_dir.hpp"

namespace verbscope::driver {

inline const std::string kTestPrograms = VERBSCOPE_BINARY_DIR "/tests";

struct Traced {
  int status = 0;  // as of wait()
  std::string said;
  std::vector<Summary> processes;
  std::uint64_t used = 0;  // bytes of all their files
};

inline std::string text_of(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Bytes of records in the files of traced processes.
inline std::uint64_t used_of(const std::filesystem::path& folder) {
  std::uint64_t used = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    alignas(TraceHeader) char header[sizeof(TraceHeader)] = {};
    if (file.path().extension() != ".trace") continue;
    std::ifstream(file.path(), std::ios::binary).read(header, sizeof header);
    used += reinterpret_cast<const TraceHeader*>(header)->used;
  }
  return used;
}

// Runs `program SCENE` with the fake libibverbs, and with the library unless `traced` is false. `variables`: additional
// environment variables; `under`: a command that runs it; each followed by a blank.
inline Traced run(const std::string& program, const std::string& scene, bool traced = true,
                  const std::string& variables = "", const std::string& under = "") {
  const TempDir folder;
  std::string command = variables + "LD_LIBRARY_PATH=" + kTestPrograms + "/fake_libibverbs ";
  if (traced) {
    command += std::string(kFolderVariable) + "=" + folder.path().string() + " " + kNicVariable +
               "=mlx5 LD_PRELOAD=" + VERBSCOPE_BINARY_DIR "/bin/" + kLibrary + " ";
  }
  Traced result;
  const std::string said = folder.path() / "said";
  result.status =
      std::system((command + "exec " + under + kTestPrograms + "/" + program + " " + scene + " > " + said).c_str());
  result.said = text_of(said);
  result.processes = read_trace_folder(folder.path());
  result.used = used_of(folder.path());
  return result;
}

inline std::vector<std::uint64_t> requests(const Traced& traced) {
  std::vector<std::uint64_t> counts;
  for (const Summary& each : traced.processes) counts.push_back(each.whole.requests());
  return counts;
}

// A folder like /sys that names mlx5 as the driver of a device.
struct Mlx5Folder {
  Mlx5Folder() {
    std::filesystem::create_directory(folder.path() / "device");
    std::filesystem::create_symlink("/sys/bus/pci/drivers/mlx5_core", folder.path() / "device/driver");
    std::ofstream(folder.path() / "hca_type") << "MT4115\n";  // an emulated device on such an adapter has none
  }
  std::string variables() const {
    return std::string(kVerifyVariable) + "=1 FAKE_MLX5=" + folder.path().string() + " ";
  }

  TempDir folder;
};

}  // namespace verbscope::driver
