// --counter_sources driver in simulated runs of every benchmark, with both post interfaces. The PCIe events that the
// driver's rules give for the requests of a run must be those of the simulated PCIe links, from the start of the run
// until the cluster is idle. The two share the facts of wire/ only.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "common/record.hpp"
#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using test::Ran;
using test::run_program;

std::uint64_t number(const Json& json, const char* key) {
  return json.at(key).get<std::uint64_t>();
}

// What a node's requests ask of memory of its peers.
struct Asked {
  std::uint64_t written_bytes = 0, read_bytes = 0;
};

Asked asked(const Json& whole) {
  Asked all;
  for (const auto& [opcode, bytes] : whole.at("payload_bytes_by_opcode").items()) {
    const bool atomic = opcode.starts_with("ATOMIC_");  // which reads 8 bytes and writes them
    if (atomic || opcode.starts_with("RDMA_WRITE")) all.written_bytes += bytes.get<std::uint64_t>();
    if (atomic || opcode.starts_with("RDMA_READ")) all.read_bytes += bytes.get<std::uint64_t>();
  }
  return all;
}

bool asks_peers(const Json& whole) {
  return asked(whole).written_bytes + asked(whole).read_bytes > 0;
}

// The counts of an event: the range of the driver, and that of the link.
struct Seen {
  std::uint64_t least = 0, most = 0, carried = 0;
};

Seen seen(const Json& whole, const std::string& event) {
  // A driver does not see completions that no thread polled.
  const std::uint64_t exact =
      whole.at("exact").at(event).get<std::uint64_t>() + whole.at("cqes_not_polled").at(event).get<std::uint64_t>();
  // Reads of QP contexts and translations do not belong to requests; no driver sees them.
  const std::uint64_t state = event == "dma_read_lines" ? number(whole, "contexts_and_translations_read_lines") : 0;
  return {.least = exact + whole.at("adapter_decides_least").at(event).get<std::uint64_t>(),
          .most = exact + whole.at("adapter_decides_most").at(event).get<std::uint64_t>(),
          .carried = whole.at("link").at(event).get<std::uint64_t>() - state};
}

// Exact if least and most are equal. `worked_on`: peers read and write this node's memory, which its driver does not
// see.
void expect_agreement(const Json& whole, bool worked_on) {
  for (const auto& [event, value] : whole.at("exact").items()) {
    const Seen it = seen(whole, event);
    EXPECT_GE(it.carried, it.least) << event;
    if (worked_on && !event.starts_with("mmio_")) continue;
    EXPECT_LE(it.carried, it.most) << event;
  }
}

// Of all nodes together nothing is unseen: what one's driver says that it wrote, another's link carried.
void expect_agreement_of_all(const std::vector<Json>& nodes) {
  Seen to_host, to_nic;
  for (const Json& node : nodes) {
    for (const auto& [all, event, bytes] : {std::tuple(&to_host, "payload_bytes_to_host", asked(node).written_bytes),
                                            std::tuple(&to_nic, "payload_bytes_to_nic", asked(node).read_bytes)}) {
      const Seen one = seen(node, event);
      all->least += one.least + bytes;
      all->most += one.most + bytes;
      all->carried += one.carried;
    }
  }
  for (const Seen& all : {to_host, to_nic}) {
    EXPECT_GE(all.carried, all.least);
    EXPECT_LE(all.carried, all.most);
  }
}

class DriverSource : public testing::TestWithParam<const char*> {};

TEST_P(DriverSource, CountsTheSameAsTheSimulatedLinks) {
  for (const char* fabric : {"sim:cib", "sim:cx3"}) {
    for (const char* post : {"", " --wr_api"}) {
      const std::string command =
          fmt::format("{}{} --fabric {} --counter_sources driver -D 30us --warmup 20us --out_json_file -", GetParam(),
                      post, fabric);
      SCOPED_TRACE(command);
      const Ran ran = run_program(command);
      ASSERT_EQ(ran.exit_code, 0) << ran.err;
      const Record record = record_from_json(parse_json_text(ran.out, command), command);
      std::vector<Json> nodes;
      for (const CounterReport& report : record.counters) {
        if (report.source == "driver") nodes.push_back(report.extra.at("whole_run"));
      }
      ASSERT_EQ(nodes.size() * 2, record.counters.size());
      const auto askers = std::ranges::count_if(nodes, asks_peers);
      for (const Json& node : nodes) {
        SCOPED_TRACE(node.dump());
        expect_agreement(node, askers > (asks_peers(node) ? 1 : 0));
      }
      expect_agreement_of_all(nodes);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, DriverSource,
                         testing::Values("send_rate -c UD -s 60 -I 60 -l 16", "send_rate -c RC -s 256",
                                         "recv_rate -c UC -s 32", "write_rate -c UC -s 32 -I 32",
                                         "write_rate -c RC -s 5000 -l 4", "read_rate -s 64", "all_to_all", "read_chain",
                                         "wqe_cache", "qp_scaling", "verb_latency", "echo_rate", "atomic_rate",
                                         "write_visibility", "sequencer", "kv_atomic"));

}  // namespace
}  // namespace verbscope
