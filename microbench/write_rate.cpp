// WRITEs, outbound (the server posts, the clients' memory is worked on) or inbound (the other way round). The rate is
// that of the completions where they are posted.
#include "microbench/frame/runner.hpp"
#include "microbench/paths/one_sided.hpp"

namespace verbscope {

namespace {

class WriteRate final : public OneSided {
 public:
  WriteRate() : OneSided(Verb::write) {}

  Description describe() const override {
    return {"write_rate", "Rate of WRITEs over RC or UC, posted by the server (out) or to it (in)."};
  }

  void options(OptionTable& table) override {
    add_direction(table);
    add_window(table);
    add_region(table);
  }
};

}  // namespace

}  // namespace verbscope

int main(int argc, char** argv) {
  verbscope::WriteRate benchmark;
  return verbscope::benchmark_main(benchmark, argc, argv);
}
