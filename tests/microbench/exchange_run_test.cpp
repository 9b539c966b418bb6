// Server and client of one point in two threads of this process, over TCP, on null devices: the messages between them,
// and what happens when one of them goes away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <future>

#include "common/error.hpp"
#include "common/record.hpp"
#include "exchange/exchange.hpp"
#include "machine/threads.hpp"
#include "microbench/run/host_fabric.hpp"
#include "microbench/run/node_run.hpp"
#include "tests/microbench/test_benchmarks.hpp"
#include "verbs/null/provider.hpp"

namespace verbscope {
namespace {

using namespace std::chrono_literals;
using test::OptionSet;
using test::SendBenchmark;
using testing::HasSubstr;

int free_port() {
  return ExchangeServer(0, Terms{}, "").port();
}

// Two machines in one process: what counts on a machine belongs to one thread of its process.
const std::string kNoCounters = " --counter_sources none";

struct Pair {
  SendBenchmark benchmark;
  std::string port = std::to_string(free_port());
  std::string cores[2] = {std::to_string(allowed_cores().front()), std::to_string(allowed_cores().back())};
  NullProvider server_device, client_device;

  explicit Pair(bool server_sends) : benchmark(server_sends) {}

  std::future<Outcome> serve(const std::string& line) {
    return std::async(std::launch::async, [this, line] {
      const OptionSet set(line + " -p " + port + " --cores " + cores[0] + kNoCounters);
      return ServerFabric(benchmark, set.options, set.table, server_device).run();
    });
  }
  Outcome join(const std::string& line) {
    const OptionSet set(line + " -p " + port + " --cores " + cores[1] + kNoCounters + " 127.0.0.1");
    return ClientFabric(benchmark, set.options, set.table, client_device).run();
  }
};

template <class Body>
std::string failure_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no failure";
}

TEST(ExchangeRun, BothSidesReportTheSameNumberOfMessages) {
  for (const bool server_sends : {true, false}) {
    Pair pair(server_sends);
    auto server = pair.serve("-c UD -s 32 -n 6400 --warmup 5ms");
    const Outcome client = pair.join("-c UD -s 32 -n 6400 --warmup 5ms");
    const Outcome outcome = server.get();
    EXPECT_EQ(outcome.failure, "");
    EXPECT_EQ(client.failure, "");
    EXPECT_GT(outcome.result.at("rate_mops").get<double>(), 0);
    EXPECT_GT(outcome.result.at("messages_expected").get<std::uint64_t>(), 0u);
    EXPECT_EQ(outcome.result.at("lost"), 0);
    ASSERT_EQ(outcome.result.at("clients").size(), 1u);
    EXPECT_EQ(outcome.result.at("clients")[0].at("node"), "client0");
  }
}

// A null device that knows with which rights its memory was registered.
class NotingProvider final : public NullProvider {
 public:
  ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) override {
    (access & IBV_ACCESS_RELAXED_ORDERING) != 0 ? ++relaxed : ++strict;
    return NullProvider::reg_mr(pd, address, length, access);
  }
  int relaxed = 0, strict = 0;
};

// Both sides of a run of WRITEs over TCP, each on a null device.
struct OneSidedRun {
  Outcome server, client;
  NotingProvider server_device, client_device;

  explicit OneSidedRun(const std::string& line) {
    const std::string port = " -p " + std::to_string(free_port()) + kNoCounters;
    auto serving = std::async(std::launch::async, [&] {
      test::OneSidedBenchmark benchmark;
      const OptionSet set(line + port + " --cores " + std::to_string(allowed_cores().front()), &benchmark);
      return ServerFabric(benchmark, set.options, set.table, server_device).run();
    });
    test::OneSidedBenchmark benchmark;
    const OptionSet set(line + port + " --cores " + std::to_string(allowed_cores().back()) + " 127.0.0.1", &benchmark);
    client = ClientFabric(benchmark, set.options, set.table, client_device).run();
    server = serving.get();
  }
};

TEST(ExchangeRun, TargetServerReportsTheRateOfItsClients) {
  const OneSidedRun run("--direction in -q 2 -D 30ms --warmup 5ms");
  EXPECT_EQ(run.server.failure, "");
  EXPECT_EQ(run.client.failure, "");
  const double rate = run.server.result.at("rate_mops");
  EXPECT_GT(rate, 0);
  EXPECT_EQ(run.server.result.at("clients")[0].at("result").at("rate_mops"), rate);
  EXPECT_EQ(run.server.result.at("threads")[0].at("node"), "client0");
  EXPECT_NEAR(run.server.result.at("window_ops").get<double>(),
              rate * 1e6 * run.server.result.at("window_s").get<double>(), 1);
}

TEST(ExchangeRun, RateBothWaysIsTheSumOfBothSides) {
  for (const char* length : {"-D 30ms", "-n 6400"}) {
    const OneSidedRun run(std::string("-b -q 2 --warmup 5ms ") + length);
    EXPECT_EQ(run.server.failure, "");
    EXPECT_EQ(run.client.failure, "");
    const Json& result = run.server.result;
    const double in = run.client.result.at("rate_mops");
    EXPECT_GT(in, 0);
    EXPECT_EQ(result.at("rate_in_mops"), in);
    EXPECT_GT(result.at("rate_out_mops"), 0);
    EXPECT_DOUBLE_EQ(result.at("rate_mops").get<double>(), result.at("rate_out_mops").get<double>() + in);
    EXPECT_EQ(result.at("threads").size(), 2u);
  }
}

TEST(ExchangeRun, MemoryThatIsNotPolledHasRelaxedOrderingInTheRecord) {
  const Json buffers = Json::array({"buffers"}), region = Json::array({"region"}), none = Json::array();
  const auto told = [](const Outcome& outcome, const char* side) {
    return outcome.environment.at(side).at("relaxed_ordering");
  };
  const OneSidedRun usual("--verb write -n 6400 --warmup 0");
  EXPECT_EQ(told(usual.server, "server"), buffers);
  EXPECT_EQ(told(usual.client, "client"), region);
  EXPECT_EQ(usual.server_device.relaxed, 1);
  EXPECT_EQ(usual.client_device.relaxed, 1);
  EXPECT_EQ(usual.server_device.strict + usual.client_device.strict, 0);
  const OneSidedRun strict("--verb write -n 6400 --warmup 0 --disable_pcie_relaxed");
  EXPECT_EQ(told(strict.server, "server"), none);
  EXPECT_EQ(told(strict.client, "client"), none);
  EXPECT_EQ(strict.server_device.relaxed + strict.client_device.relaxed, 0);
}

TEST(RelaxedOrdering, IsNeverSetForPolledMemory) {
  Operation op;
  op.verb = Verb::read;
  op.relaxed_ordering = true;
  const auto relaxed = [&op](const std::string& line) {
    test::OneSidedBenchmark benchmark;
    const OptionSet set("--verb read --wait all --window 8 " + line, &benchmark);
    return (benchmark.region(op, Side::client, 1).access & IBV_ACCESS_RELAXED_ORDERING) != 0;
  };
  EXPECT_TRUE(relaxed(""));
  EXPECT_FALSE(relaxed("--seen_by memory"));
}

TEST(ExchangeRun, ClientsMeasureExactlyTheirIters) {
  const OneSidedRun run("--direction in -q 3 -n 6400 --warmup 5ms");
  EXPECT_EQ(run.server.failure, "");
  EXPECT_EQ(run.server.result.at("ops"), 3 * 6400);
}

TEST(ExchangeRun, TargetClientRunsLongerThanItsTimeout) {
  // Nothing completes at the client; the server's signs of life keep it from giving up.
  const OneSidedRun run("--direction out -D 2500ms --timeout 1500ms --warmup 0");
  EXPECT_EQ(run.server.failure, "");
  EXPECT_EQ(run.client.failure, "");
  EXPECT_EQ(run.client.result.at("ops"), 0);
}

TEST(ExchangeRun, DifferentOptionsFailBothSidesWithBothValues) {
  Pair pair(true);
  auto server = pair.serve("-l 16");
  EXPECT_THAT(failure_of([&] { pair.join("-l 4"); }), HasSubstr("post_list"));
  EXPECT_THAT(failure_of([&] { server.get(); }), HasSubstr("post_list"));
}

// A benchmark with an option of its own that is called much like a common one, as atomic_rate's is.
class CountingBenchmark final : public SendBenchmark {
 public:
  CountingBenchmark() : SendBenchmark(true) {}
  void options(OptionTable& table) override { table.integer("--counters", counters_, 1u, 1u << 20, ""); }

 private:
  unsigned counters_ = 1;
};

Json must_agree(const std::string& line) {
  CountingBenchmark benchmark;
  const OptionSet set(line, &benchmark);
  return make_terms(benchmark, set.options, set.table).parameters;
}

TEST(ExchangeRun, TermsHaveTheLoadButNotTheLocalOptions) {
  EXPECT_NE(must_agree("-s 16"), must_agree("-s 32"));
  EXPECT_NE(must_agree("--counters 1"), must_agree("--counters 2"));
  EXPECT_EQ(must_agree("--counter_sources nic"), must_agree("--counter_sources none"));
  EXPECT_EQ(must_agree("--cores 0"), must_agree("--cores 1"));
}

// A client that plays its part until everybody runs, and then goes.
class Deserter {
 public:
  Deserter(const std::string& port, const std::string& line)
      : channel_(connect_exchange("127.0.0.1", std::stoi(port), terms(line), "", 10s)) {
    NullProvider device;
    const OptionSet set(line + " host");
    const SendBenchmark benchmark(true);
    const Plan plan = make_plan(set.options, FabricFacts{}, benchmark.draft());
    NodeRun node(benchmark, plan, Side::client, 0, {&device, "null0", {1}, -1, {}, false});
    channel_.send("endpoints", node.endpoints(), 10s);
    channel_.receive("endpoints", 10s);
    channel_.send("ready", Json::object(), 10s);
    channel_.receive("go", 10s);
  }
  Channel& channel() { return channel_; }

 private:
  static Terms terms(const std::string& line) {
    const OptionSet set(line);
    return make_terms(SendBenchmark(true), set.options, set.table);
  }
  Channel channel_;
};

TEST(ExchangeRun, ServerFailsWithAMessageIfAClientDies) {
  Pair pair(true);
  auto server = pair.serve("-c UD -D 60");
  { Deserter client(pair.port, "-c UD -D 60"); }
  ASSERT_EQ(server.wait_for(20s), std::future_status::ready) << "the server hangs";
  EXPECT_THAT(failure_of([&] { server.get(); }), HasSubstr("closed the connection"));
}

TEST(ExchangeRun, RunContinuesIfAClientMayLeave) {
  Pair pair(true);
  pair.benchmark.clients_may_leave = true;
  auto server = pair.serve("-c UD -D 500ms --warmup 5ms --clients 2");
  auto deserter =
      std::async(std::launch::async, [&] { Deserter(pair.port, "-c UD -D 500ms --warmup 5ms --clients 2"); });
  const Outcome client = pair.join("-c UD -D 500ms --warmup 5ms");
  deserter.get();
  const Outcome outcome = server.get();
  EXPECT_EQ(client.failure, "");
  EXPECT_EQ(outcome.failure, "");
  EXPECT_EQ(outcome.result.at("clients_gone"), 1);
  EXPECT_EQ(outcome.result.at("clients").size(), 1u);
  EXPECT_GT(outcome.result.at("rate_mops").get<double>(), 0);
}

TEST(ExchangeRun, RunFailsIfTheLastClientHasLeft) {
  Pair pair(true);
  pair.benchmark.clients_may_leave = true;
  auto server = pair.serve("-c UD -D 60");
  { Deserter client(pair.port, "-c UD -D 60"); }
  ASSERT_EQ(server.wait_for(20s), std::future_status::ready) << "the server hangs";
  EXPECT_THAT(failure_of([&] { server.get(); }), HasSubstr("all clients have left"));
}

TEST(ExchangeRun, FailedClientSendsItsReasonToTheServer) {
  Pair pair(true);
  auto server = pair.serve("-c UD -D 60");
  Deserter client(pair.port, "-c UD -D 60");
  client.channel().send_failure("client0: the cat sat on the card");
  ASSERT_EQ(server.wait_for(20s), std::future_status::ready) << "the server hangs";
  EXPECT_THAT(failure_of([&] { server.get(); }), HasSubstr("the cat sat on the card"));
}

// The server checks its clients now and then: usually the connection is closed by then, and the reason was sent before.
TEST(ExchangeRun, ServerReadsTheReasonOfAClosedClient) {
  for (const std::string line : {"-c UD -D 60", "-c UD -D 60 --warmup 0"}) {
    Pair pair(true);
    auto server = pair.serve(line);
    { Deserter(pair.port, line).channel().send_failure("client0: the cat sat on the card"); }
    ASSERT_EQ(server.wait_for(20s), std::future_status::ready) << "the server hangs";
    EXPECT_THAT(failure_of([&] { server.get(); }), HasSubstr("gave up: client0: the cat sat on the card"));
  }
}

class NoMemory final : public SendBenchmark {
 public:
  NoMemory() : SendBenchmark(true) {}
  RegionNeeds region(const Operation&, Side, std::uint32_t) const override { throw std::bad_alloc(); }
};

TEST(ExchangeRun, ServerGetsTheReasonOfAnyException) {
  Pair pair(true);
  auto server = pair.serve("-c UD -D 60");
  const OptionSet set("-c UD -D 60 -p " + pair.port + kNoCounters + " 127.0.0.1");
  NoMemory benchmark;
  EXPECT_THROW(ClientFabric(benchmark, set.options, set.table, pair.client_device).run(), std::bad_alloc);
  ASSERT_EQ(server.wait_for(20s), std::future_status::ready) << "the server hangs";
  EXPECT_THAT(failure_of([&] { server.get(); }), HasSubstr("gave up: std::bad_alloc"));
}

TEST(ExchangeRun, ClientChecksItsDeviceBeforeItConnects) {
  for (const auto& [line, says] : std::vector<std::pair<std::string, std::string>>{
           {"-d mlx5_7", "no RDMA device \"mlx5_7\": found null0"},
           {"-d null0:9", "null0"},
           {"-x 200", "GID index 200"},
           {"-c UD -s 8192", "--size 8192 is over the MTU of 4096 bytes"}}) {
    Pair pair(true);  // nobody serves
    EXPECT_THAT(failure_of([&, &arguments = line] { pair.join(arguments + " --timeout 20s"); }),
                testing::AllOf(HasSubstr(says), testing::Not(HasSubstr("waited"))));
  }
}

TEST(ExchangeRun, ControllerSleepsWhileThreadsMeasure) {
  SendBenchmark benchmark(true);
  NullProvider device;
  const OptionSet set("--fabric null -D 2s --warmup 0" + kNoCounters);
  const std::vector<int> cores = allowed_cores();
  rusage before{}, after{};
  getrusage(RUSAGE_THREAD, &before);
  const auto began = std::chrono::steady_clock::now();
  ServerFabric(benchmark, set.options, set.table, device).run();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  getrusage(RUSAGE_THREAD, &after);
  // Four checks of progress per second; the rest is for phase changes, the start and the end.
  EXPECT_GT(after.ru_nvcsw, before.ru_nvcsw);
  EXPECT_LT(static_cast<double>(after.ru_nvcsw - before.ru_nvcsw), 4 * took.count() + 16);
  EXPECT_EQ(allowed_cores(), cores) << "the calling thread runs where it did";
}

TEST(ExchangeRun, ServerFailsWithoutClients) {
  Pair pair(true);
  auto server = pair.serve("--timeout 200ms");
  EXPECT_THAT(failure_of([&] { server.get(); }), HasSubstr("client"));
}

}  // namespace
}  // namespace verbscope
