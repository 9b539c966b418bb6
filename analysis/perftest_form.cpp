#include "analysis/perftest_form.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "analysis/points.hpp"

namespace verbscope {
namespace {

struct TestWords {
  std::string_view kind;   // a benchmark, or a verb if the benchmark has several
  std::string_view words;  // perftest's
};
// If several entries have the same words, reading a perftest test returns the first one.
constexpr std::array<TestWords, 10> kTestWords{{{"write_rate", "RDMA_Write"},
                                                {"read_rate", "RDMA_Read"},
                                                {"send_rate", "Send"},
                                                {"recv_rate", "Send"},
                                                {"fetch_add", "Atomic FETCH_AND_ADD"},
                                                {"compare_swap", "Atomic CMP_AND_SWAP"},
                                                {"write", "RDMA_Write"},
                                                {"write_inline", "RDMA_Write"},
                                                {"read", "RDMA_Read"},
                                                {"send", "Send"}}};
constexpr std::array<std::string_view, 4> kWithVerb{"verb_latency", "atomic_rate", "wqe_cache", "qp_scaling"};

using FactKind = PerftestFact::Kind;
constexpr std::array<PerftestFact, 14> kFacts{{{"Device", "Device", "ib_dev", FactKind::text},
                                               {"Number_of_qps", "Number of qps", "qp", FactKind::number},
                                               {"Transport_type", "Transport type", "transport_type", FactKind::text},
                                               {"Connection_type", "Connection type", "connection", FactKind::text},
                                               {"TX_depth", "TX depth", "tx_depth", FactKind::number},
                                               {"Post_List", "Post List", "post_list", FactKind::number},
                                               {"RX_depth", "RX depth", "rx_depth", FactKind::number},
                                               {"CQ_Moderation", "CQ Moderation", "cq_mod", FactKind::number},
                                               {"Mtu", "Mtu", "mtu", FactKind::number},
                                               {"Link_type", "Link type", "link_type", FactKind::text},
                                               {"GID_index", "GID index", "gid_index", FactKind::number},
                                               {"Max_inline_data", "Max inline data", "inline_size", FactKind::number},
                                               {"Outstand_reads", "Outstand reads", "outs", FactKind::number},
                                               {"TOS", "TOS", "tos", FactKind::number}}};
constexpr std::array<std::string_view, 16> kOtherFacts{
    "Dual-port",      "Using SRQ",   "PCIe relax order", "Lock-free",       "ibv_wr* API",     "Using DDP",
    "Recv Post List", "Buffer size", "GID index2",       "rdma_cm QPs",     "Use ROCm memory", "Data ex. method",
    "WARNING1",       "WARNING2",    "MultiCast_runs",   "Test with events"};

constexpr std::array<PerftestColumn, 17> kColumns{{{"MsgSize", "#bytes"},
                                                   {"sl", "#sl"},
                                                   {"n_iterations", "#iterations"},
                                                   {"BW_peak", "BW peak["},
                                                   {"BW_average", "BW average["},
                                                   {"MsgRate", "MsgRate["},
                                                   {"BW_port1", "BW Port1["},
                                                   {"MsgRate_port1", "MsgRate Port1["},
                                                   {"BW_port2", "BW Port2["},
                                                   {"MsgRate_port2", "MsgRate Port2["},
                                                   {"t_min", "t_min["},
                                                   {"t_max", "t_max["},
                                                   {"t_typical", "t_typical["},
                                                   {"t_avg", "t_avg["},
                                                   {"t_stdev", "t_stdev["},
                                                   {"percentile_99", "99% percentile["},
                                                   {"percentile_99.9", "99.9% percentile["}}};

// Normalises a name: "TX depth", "TX_depth " and "tx-depth" become equal.
std::string bare(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) out += static_cast<char>(std::tolower(c));
  }
  return out;
}

}  // namespace

std::optional<PerftestTest> perftest_test(std::string_view title) {
  std::string words(title);
  std::ranges::replace(words, ' ', '_');
  constexpr std::string_view kEnd = "_Test";
  if (!words.ends_with(kEnd)) return std::nullopt;
  const auto has = [&words](std::string_view part) { return words.find(part) != words.npos; };
  PerftestTest test;
  test.latency = has("_Latency_");
  if (!test.latency && !has("_BW_")) return std::nullopt;
  for (const TestWords& name : kTestWords) {
    std::string theirs(name.words);
    std::ranges::replace(theirs, ' ', '_');
    if (!words.starts_with(theirs + "_")) continue;
    const bool atomic = theirs.starts_with("Atomic");
    test.benchmark = test.latency ? "verb_latency" : atomic ? "atomic_rate" : name.kind;
    if (atomic) test.verb = name.kind;
    if (test.latency && !atomic) test.verb = name.kind.substr(0, name.kind.find('_'));
    test.bidirectional = has("_Bidirectional_");
    test.immediate = words.starts_with("RDMA_Write_Imm_");
    return test;
  }
  return std::nullopt;
}

std::string perftest_title(const Record& record) {
  const bool has_verb = std::ranges::find(kWithVerb, record.benchmark) != kWithVerb.end();
  const std::string kind = has_verb ? text_at(record.config, "verb") : record.benchmark;
  const auto* const found = std::ranges::find(kTestWords, kind, &TestWords::kind);
  if (found == kTestWords.end()) return "";
  const auto latency = record.result.find("latency");
  const bool times = latency != record.result.end() && latency->is_array() && !latency->empty();
  const auto is_set = [&record](const char* key) {
    const auto value = record.config.find(key);
    return value != record.config.end() && value->is_boolean() && value->get<bool>();
  };
  std::string title(found->words);
  if (is_set("write_with_imm")) title += "_Imm";
  if (times) return title + " Latency Test";
  if (is_set("bidirectional")) title += " Bidirectional";
  if (number_at(record.config, "post_list").value_or(1) > 1) title += " Post List";
  return title + " BW Test";
}

std::span<const PerftestFact> perftest_facts() {
  return kFacts;
}

const PerftestFact* perftest_fact(std::string_view name) {
  const std::string wanted = bare(name);
  const auto* const found =
      std::ranges::find_if(kFacts, [&](const PerftestFact& fact) { return bare(fact.key) == wanted; });
  return found == kFacts.end() ? nullptr : found;
}

bool is_perftest_fact(std::string_view name) {
  const std::string wanted = bare(name);
  return perftest_fact(name) != nullptr ||
         std::ranges::any_of(kOtherFacts, [&](std::string_view other) { return bare(other) == wanted; });
}

std::span<const PerftestColumn> perftest_columns() {
  return kColumns;
}

}  // namespace verbscope
