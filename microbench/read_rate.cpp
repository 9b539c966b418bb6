// READs, outbound (the server posts, the clients' memory is worked on) or inbound (the other way round). The rate is
// that of the completions where they are posted.
#include "microbench/frame/runner.hpp"
#include "microbench/paths/one_sided.hpp"

namespace verbscope {

namespace {

class ReadRate final : public OneSided {
 public:
  ReadRate() : OneSided(Verb::read) {}

  Description describe() const override {
    return {"read_rate", "Rate of READs over RC, posted by the server (out) or to it (in)."};
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
  verbscope::ReadRate benchmark;
  return verbscope::benchmark_main(benchmark, argc, argv);
}
