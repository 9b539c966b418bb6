#include "common/error.hpp"
#include "counters/papi_library.hpp"

namespace verbscope {

namespace {

// For builds without PAPI. open() throws, so nothing else is called.
class NoPapi final : public PapiLibrary {
 public:
  int open(const std::string&, std::optional<int>, bool) override { refuse(); }
  PapiAdd add(int, const std::string&, std::string&) override { refuse(); }
  void start(int) override { refuse(); }
  std::vector<long long> read(int) override { refuse(); }
  void close(int) noexcept override {}
  void forget_thread() noexcept override {}

 private:
  [[noreturn]] static void refuse() { fail("this verbscope was built without PAPI"); }
};

}  // namespace

PapiLibrary& papi_library() {
  static NoPapi library;
  return library;
}

}  // namespace verbscope
