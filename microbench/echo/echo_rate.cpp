// Request and response: the clients ask, the server answers with the bytes that it got. The rate is that of the
// responses that the clients have.
#include "common/environment.hpp"
#include "microbench/echo/ends.hpp"
#include "microbench/echo/places.hpp"
#include "microbench/loop/payload.hpp"
#include "microbench/run/runner.hpp"
#include "pcie_model/together.hpp"

namespace verbscope {

namespace {

constexpr std::uint32_t kDefaultEcho = 32;  // bytes
constexpr std::uint32_t kTag = 8;           // bytes: what tells a response from another
// The time after which a request without a response is given up: long after an echo, and on RC, whose requests are sent
// again from where they lie, long after a retransmission.
constexpr Picos kGiveUp = std::chrono::milliseconds(100);
constexpr Picos kSimGiveUp = std::chrono::milliseconds(1);

// Each level has those before it, in the order of the published figure (Kalia et al., SIGCOMM 2014, section 3.2.2).
enum class Optimise : std::uint8_t { as_given, none, unreliable, unsignaled, inlined };

class EchoRate final : public Benchmark {
 public:
  Description describe() const override {
    return {"echo_rate", "Rate of requests and responses by WRITE or SEND, with each optimisation switched on in turn.",
            "--mode send_send -c UD -s 32 -I 32"};
  }

  void options(OptionTable& table) override {
    table_ = &table;
    table.choice<EchoMode>("--mode", echo_.mode,
                           {{"write_write", EchoMode::write_write},
                            {"write_send", EchoMode::write_send},
                            {"send_send", EchoMode::send_send}},
                           "verbs of request and response; write_send answers over UD");
    table.choice<Optimise>("--optimise", optimise_,
                           {{"as_given", Optimise::as_given},
                            {"none", Optimise::none},
                            {"unreliable", Optimise::unreliable},
                            {"unsignaled", Optimise::unsignaled},
                            {"inline", Optimise::inlined}},
                           "each with those before it; sets -c, -Q and -I where they are not given");
    table.integer("--window", echo_.outstanding, 1u, 4096u, "requests outstanding on a QP");
  }

  void adjust(Options& o) override {
    if (o.fabric == "null") fail_usage("--fabric null: it moves no bytes, so nobody answers");
    if (o.header_only) fail_usage("--header_only: a response is told from another by its bytes");
    if (o.post_list != 1) fail_usage("--post_list {}: echo_rate posts one request at a time", o.post_list);
    o.size = o.size.value_or(kDefaultEcho);
    if (*o.size < kTag) fail_usage("--size {}: an echo has at least {} bytes, which number it", *o.size, kTag);
    if (o.events && echo_.requests_written()) {
      fail_usage("--events: a request by WRITE is seen in memory, which raises no event");
    }
    optimise(o);
    echo_.give_up = is_simulated(o.fabric) && !facts(o.connection).reliable ? kSimGiveUp : kGiveUp;
  }

  Traffic traffic() const override {
    return {.verb = echo_.requests_written() ? Verb::write : Verb::send,
            .driver = Side::client,
            .counted = Side::client,
            .label = "echoes",
            .datagrams_beside = echo_.mode == EchoMode::write_send};
  }

  std::optional<OperationCount> operation_count() const override {
    return OperationCount{Side::client, echo_.mode == EchoMode::write_write ? "writes_received" : "messages_received"};
  }

  QueueNeeds needs(const Operation& op, Side) const override {
    return {.send_depth = op.tx_depth,
            .recv_depth = op.rx_depth,
            .inline_bytes = op.inline_limit,
            .completions = op.tx_depth + op.rx_depth};
  }

  RegionNeeds region(const Operation& op, Side side, std::uint32_t qps) const override {
    return {.bytes = qps * echo_slice_bytes(echo_, op.payload, side)};
  }

  std::optional<Transport> companion(const Operation&) const override {
    return echo_.mode == EchoMode::write_send ? std::optional(Transport::ud) : std::nullopt;
  }

  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    return setup.side == Side::client ? make_echo_client(setup, echo_) : make_echo_server(setup, echo_);
  }

  Prediction predict(const ClusterWire& cluster, const Operation& op, int ports) const override {
    VerbShape response = verb_shape(op, ports);
    response.payload_offset = Bytes(offset_before_end(op.payload));
    const Prediction request =
        echo_.requests_written() ? predict_responder(cluster, response) : predict_receiver(cluster, response);
    if (echo_.mode == EchoMode::write_send) {
      response.verb = Verb::send;
      response.transport = Transport::ud;
    }
    return predict_together("echo server", {{predict_requester(cluster, response)}, {request}});
  }

  Prediction predict_run(const ClusterWire& cluster, const Operation& op, int ports,
                         const Json& result) const override {
    if (!echo_.requests_written()) {
      const std::uint64_t clients = !facts(op.transport).connected ? result.at("clients").size() : 1;
      check_recv_groups(cluster, op, echo_recvs(op, clients * echo_.outstanding), clients * echo_.outstanding);
    }
    return predict(cluster, op, ports);
  }

 private:
  void optimise(Options& o) const {
    if (optimise_ == Optimise::as_given) return;
    if (optimise_ >= Optimise::unreliable && !table_->given("--connection")) {
      o.connection = echo_.requests_written() ? Transport::uc : Transport::ud;
    }
    if (optimise_ < Optimise::unsignaled) o.cq_mod = o.cq_mod.value_or(1);
    if (optimise_ == Optimise::inlined && !table_->given("--inline_size")) o.inline_size = *o.size;
  }

  const OptionTable* table_ = nullptr;
  EchoOptions echo_;
  Optimise optimise_ = Optimise::as_given;
};

}  // namespace

}  // namespace verbscope

int main(int argc, char** argv) {
  verbscope::EchoRate benchmark;
  return verbscope::benchmark_main(benchmark, argc, argv);
}
