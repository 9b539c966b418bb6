// `verbscope predict`: evaluates the closed-form model for an operation or a number of WQEs.
#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>
#include <vector>

#include "analysis/published.hpp"
#include "common/option_values.hpp"
#include "common/terminal.hpp"
#include "harness/commands/command.hpp"
#include "nic_sim/profile/profile.hpp"
#include "pcie_model/render.hpp"

namespace verbscope {
namespace {

struct PredictOptions {
  std::string cluster;
  std::optional<std::uint64_t> wqe_bytes;
  std::optional<int> wqes;
  std::optional<int> pcie_gen, pcie_lanes;
  std::string verb = "send", connection = "UD";
  std::optional<std::uint64_t> size;
  std::uint64_t inline_size = 0, inline_recv = 0, payload_offset = 0;
  bool header_only = false, immediate = false, srq = false, receiver = false, responder = false, json = false;
  int post_list = 1, signal_every = 1, tx_depth = 128, rx_depth = 512;
};

// Names of transports are in capitals.
std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  return text;
}

VerbShape shape_of(const PredictOptions& options) {
  Json json{{"verb", CLI::detail::to_lower(options.verb)},
            {"connection", upper(options.connection)},
            {"header_only", options.header_only},
            {"immediate", options.immediate},
            {"inline_size", options.inline_size},
            {"inline_recv", options.inline_recv},
            {"srq", options.srq},
            {"post_list", options.post_list},
            {"signal_every", options.signal_every},
            {"tx_depth", options.tx_depth},
            {"rx_depth", options.rx_depth},
            {"payload_offset", options.payload_offset}};
  if (options.size) json["size"] = *options.size;
  return shape_from_json(json, "predict");
}

// The published figures that these WQEs reproduce. Empty if the PCIe slot is not the cluster's own.
std::string published_text(const PredictOptions& options, const WqePrediction& prediction) {
  if (options.pcie_gen || options.pcie_lanes) return "";
  std::string text;
  const Json values = to_json(prediction);
  const std::vector<PublishedPoint> published = load_published();
  for (const PublishedPoint* row : find_predicted(published, prediction.cluster, values)) {
    const std::string& key = row->run.result_key;
    text += fmt::format("published: {} {}{} ({} {}), off by {} %\n", key,
                        row->comparison == Comparison::equals ? "= " : "", row->value_text(), row->paper, row->where,
                        percent_text(row->deviation_of(values.at(key).get<double>())));
  }
  return text;
}

std::string predict_wqe_list(const PredictOptions& options, const ClusterWire& cluster) {
  const WqePrediction prediction = predict_wqes(cluster, Bytes(*options.wqe_bytes), options.wqes.value_or(1));
  if (options.json) return pretty_json(to_json(prediction)) + "\n";
  return format_table(prediction) + published_text(options, prediction);
}

// Same checks as in the model, but the messages name the options.
void check_queue(const PredictOptions& o) {
  const bool receives = o.receiver || (o.responder && o.immediate);
  if (receives && o.post_list > o.rx_depth) {
    fail_usage("--post_list {} is more than the receive queue holds (--rx_depth {})", o.post_list, o.rx_depth);
  }
  if (o.receiver || o.responder) return;
  if (o.post_list > o.tx_depth) {
    fail_usage("--post_list {} is more than the send queue holds (--tx_depth {})", o.post_list, o.tx_depth);
  }
  if (o.signal_every > o.tx_depth) {
    fail_usage("--cq_mod {} is more than the send queue holds (--tx_depth {})", o.signal_every, o.tx_depth);
  }
}

std::string predicted_text(const PredictOptions& options, const ClusterWire& cluster) {
  if (options.wqe_bytes) return predict_wqe_list(options, cluster);
  check_queue(options);
  const VerbShape shape = shape_of(options);
  const Prediction prediction = options.receiver    ? predict_receiver(cluster, shape)
                                : options.responder ? predict_responder(cluster, shape)
                                                    : predict_requester(cluster, shape);
  return options.json ? pretty_json(to_json(prediction)) + "\n" : format_table(prediction);
}

int predict(const PredictOptions& options) {
  const ClusterWire cluster = load_profile(options.cluster).wire;
  std::string text;
  try {
    text = predicted_text(options, with_pcie(cluster, options.pcie_gen, options.pcie_lanes));
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    throw UsageError(error.what());  // the model refused the options
  }
  print_text(stdout, text);
  return 0;
}

// Adds the options that select the operation, with the ranges of the benchmarks' options.
std::vector<CLI::Option*> add_operation_options(CLI::App& command, PredictOptions& o) {
  const CLI::Validator depth = whole_number(1, 1 << 20);
  auto* receiver = command.add_flag("--receiver", o.receiver, "model the receiver of SENDs instead of the requester");
  return {
      receiver,
      command
          .add_flag("--responder", o.responder, "model the target of WRITE, READ and atomics instead of the requester")
          ->excludes(receiver),
      command.add_option("--verb", o.verb, "send, write, read, compare_swap or fetch_add")
          ->type_name("WORD")
          ->capture_default_str(),
      command.add_option("-c,--connection", o.connection, "RC, UC or UD")->type_name("WORD")->capture_default_str(),
      command.add_option("-s,--size", o.size, "payload")
          ->transform(bytes_between(0, kLongestMessage))
          ->type_name("BYTES"),
      command.add_option("-I,--inline_size", o.inline_size, "largest payload that is sent inline")
          ->transform(bytes_between(0, 1 << 16))
          ->type_name("BYTES"),
      command.add_flag("--header_only", o.header_only, "model a SEND without payload, with a 4-byte immediate"),
      command.add_option("-l,--post_list", o.post_list, "work requests in one post")
          ->capture_default_str()
          ->transform(depth),
      command.add_option("-Q,--cq_mod,--signal_every", o.signal_every, "signal one of this many work requests")
          ->capture_default_str()
          ->transform(depth),
      command.add_option("-t,--tx_depth", o.tx_depth, "depth of the send queue")
          ->capture_default_str()
          ->transform(depth),
      command.add_option("-r,--rx_depth", o.rx_depth, "depth of the receive queue")
          ->capture_default_str()
          ->transform(depth),
      command.add_flag("--immediate", o.immediate, "model a SEND or WRITE with a 4-byte immediate"),
      command.add_option("--inline_recv", o.inline_recv, "receive payloads up to this size inside the CQE")
          ->transform(bytes_between(0, 1 << 12))
          ->type_name("BYTES"),
      command.add_flag("--srq", o.srq, "post RECVs to a shared receive queue"),
      command.add_option("--payload_offset", o.payload_offset, "offset of the payload from the beginning of a page")
          ->transform(bytes_between(0, 4095))
          ->type_name("BYTES"),
  };
}

}  // namespace

Action add_predict(CLI::App& command) {
  command.description("print the closed-form model of one operation");
  command.footer(
      "Examples:\n  verbscope predict --cluster cib --connection UD --size 60 --inline_size 60 --post_list 16\n  "
      "verbscope predict --cluster cib --wqe_bytes 65 --wqes 10");
  auto options = std::make_shared<PredictOptions>();
  PredictOptions& o = *options;
  command.add_option("--cluster", o.cluster, "a name in configs/clusters, or a profile's path")->required();
  auto* wqe_bytes = command.add_option("--wqe_bytes", o.wqe_bytes, "model WQEs of this size instead of an operation")
                        ->transform(bytes_between(1, 1024))
                        ->type_name("BYTES");
  command.add_option("--wqes", o.wqes, "number of WQEs, with --wqe_bytes")
      ->default_str("1")
      ->needs(wqe_bytes)
      ->transform(whole_number(1, 32768));
  for (CLI::Option* const option : add_operation_options(command, o)) option->excludes(wqe_bytes);
  command.add_option("--pcie_gen", o.pcie_gen, "PCIe generation (default: the cluster's)");
  command.add_option("--pcie_lanes", o.pcie_lanes, "number of PCIe lanes (default: the cluster's)");
  command.add_flag("--json", o.json, "print JSON");
  return [options] { return predict(*options); };
}

}  // namespace verbscope
