#include "drivers_patch/trace_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "common/error.hpp"
#include "common/fd.hpp"
#include "drivers_patch/arena.hpp"

namespace verbscope::driver {
namespace {

constexpr const char* kExtension = ".trace";

// A file mapped for reading.
class Mapping {
 public:
  Mapping(const std::string& path, std::size_t bytes) : bytes_(bytes) {
    const Fd file(check(fmt::format("open {}", path), open(path.c_str(), O_RDONLY | O_CLOEXEC)));
    memory_ = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.get(), 0);
    if (memory_ == MAP_FAILED) throw_errno(fmt::format("mmap {}", path), errno);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { munmap(memory_, bytes_); }

  const TraceHeader& header() const { return *static_cast<const TraceHeader*>(memory_); }

 private:
  void* memory_;
  std::size_t bytes_;
};

// True if the file is complete enough to be read: its magic number is written last.
bool is_ready(const std::filesystem::path& path) {
  std::uint64_t mark = 0;
  std::ifstream file(path, std::ios::binary);
  return file.read(reinterpret_cast<char*>(&mark), sizeof mark) && mark == kMagic;
}

}  // namespace

Summary read_trace_file(const std::filesystem::path& path) {
  const auto bytes = std::filesystem::file_size(path);
  if (bytes < Arena::kFirst) fail("{}: no file of a traced process: {} bytes", path.string(), bytes);
  const Mapping mapping(path.string(), bytes);
  const TraceHeader& header = mapping.header();
  if (header.magic != kMagic) fail("{}: no file of a traced process", path.string());
  if (header.layout != kLayout) fail("{}: written by another build of {}", path.string(), kLibrary);
  if (header.capacity > bytes) {
    fail("{}: cut off: {} of {} bytes", path.string(), bytes, header.capacity.load());
  }
  return summarize(header);
}

std::vector<Summary> read_trace_folder(const std::filesystem::path& folder) {
  std::vector<Summary> summaries;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == kExtension && is_ready(entry.path())) {
      summaries.push_back(read_trace_file(entry.path()));
    }
  }
  std::ranges::sort(summaries, {}, &Summary::began_ns);
  return summaries;
}

}  // namespace verbscope::driver
