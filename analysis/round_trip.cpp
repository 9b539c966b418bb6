#include <algorithm>

#include "analysis/loads.hpp"
#include "analysis/points.hpp"
#include "analysis/resource.hpp"
#include "wire/verb.hpp"

namespace verbscope {
namespace {

// Shortest round trip on an idle machine if the steps are unknown. A READ takes about 2 us on each of the adapters of
// Kalia et al., ATC 2016, and an atomic is no faster. A WRITE, for which the responder reads nothing over PCIe, takes
// less.
constexpr double kRoundTripUs = 1.5;
// Round trip of a READ or an atomic, and of an echo (one unreliable message in each direction).
constexpr double kReadTripUs = 2;
// Share of the round trip for operations that complete as soon as they are sent.
constexpr double kSentOnly = 0.3;
// Longest round trip while no resource is full, as a multiple of the idle one. Assumed.
constexpr double kLoadedTrip = 3;

double option(const Record& record, const char* name) {
  return number_at(record.config, name).value_or(0);
}

// True if a thread has one ring of outstanding operations over all of its QPs.
bool is_ring(const Record& record) {
  return record.benchmark == "all_to_all" || text_at(record.config, "wait") == "oldest";
}

enum class Kind { sent_only, write, read, atomic, echo };

// A store whose GETs are READs, if GETs are the majority.
bool gets_by_read(const Record& record) {
  const std::string store = text_at(record.config, "store");
  return record.benchmark == "kv_rate" && store != "herd" && store != "cached" && option(record, "put_percent") < 50;
}

Kind kind_of(const Record& record) {
  const std::string& name = record.benchmark;
  const std::string verb = text_at(record.config, "verb"), design = text_at(record.config, "design");
  if (name == "atomic_rate" || design == "atomic") return Kind::atomic;
  if (name == "read_rate" || name == "kv_atomic" || verb == "read") return Kind::read;
  if (gets_by_read(record)) return Kind::read;
  if (name == "echo_rate" || name == "sequencer" || name == "kv_rate" || is_rpc(record)) return Kind::echo;
  return text_at(record.config, "connection") == "RC" || name == "all_to_all" ? Kind::write : Kind::sent_only;
}

// Duration of one operation on idle machines in picoseconds, and the parts in which units work.
struct Trip {
  double all = 0, requester = 0, responder = 0;
};

class Steps {
 public:
  Steps(const Json& steps, const CpuCosts& costs, const Prediction& prediction, double far)
      : steps_(steps), costs_(costs), prediction_(prediction), far_(far) {}

  Trip trip(Kind kind) const {
    const bool one_way = kind == Kind::sent_only;
    const bool asks = kind == Kind::read || kind == Kind::atomic;
    Trip out = posted(!asks);
    // An operation that completes when sent has not crossed the switch and has no response.
    out.all += one_way ? of("fabric") / 2 : of("fabric") + wire();
    if (one_way) return with_completion(out);
    const Trip answered = arrived(kind);
    out.all += answered.all;
    out.responder += answered.responder;
    if (kind == Kind::echo) {
      const Trip back = posted(true), seen = arrived(kind);
      out.all += back.all + of("fabric") + wire() + seen.all;
      out.requester += back.requester;
      out.responder += seen.responder;
      return out;
    }
    const double handled = of(asks ? "handle_response" : "handle_ack");
    out.all += far_ * of("far_qp_context") + of("fabric") + handled;
    out.responder += handled;
    return with_completion(out);
  }

 private:
  double of(const char* name) const { return number_at(steps_, name).value_or(0); }
  double bytes() const {
    const VerbShape& shape = prediction_.shape;
    return shape.header_only ? 0 : static_cast<double>(shape.payload.value);
  }
  // The payload is serialised twice: into the switch and out of it.
  double wire() const { return 2 * bytes() / prediction_.wire.port_rate.value * 1e12; }

  Trip posted(bool carries) const {
    const bool gathers = carries && bytes() > 0 && !prediction_.shape.inlined;
    const bool blueflame = prediction_.method == PostMethod::blueflame || prediction_.method == PostMethod::none;
    Trip out;
    out.requester = of(blueflame ? "blueflame_wqe" : "doorbell_wqe") + (gathers ? of("gather") : 0);
    const double lines = std::max(1.0, prediction_.pcie.mmio_wc_lines);
    const double rung = blueflame ? lines * costs_.wc_line : costs_.doorbell;
    out.all = (costs_.post_call + costs_.post_wqe + rung) * 1e3;
    out.all += far_ * of("far_qp_context") + of("mmio") + (blueflame ? 0 : of("dma_read")) +
               (gathers ? of("dma_read") : 0) + out.requester;
    return out;
  }

  // Until the response leaves the responder, or a thread sees the message.
  Trip arrived(Kind kind) const {
    Trip out;
    out.responder = of("receive") + (kind == Kind::read     ? of("read_request")
                                     : kind == Kind::atomic ? of("atomic_packet")
                                                            : 0);
    out.all = out.responder + far_ * of("far_qp_context");
    if (kind == Kind::read) out.all += of("dma_read") + of("read_response");
    if (kind == Kind::atomic) out.all += of("dma_read") + of("atomic_operation");
    if (kind == Kind::echo) out.all += of("dma_write") + (costs_.poll_call + costs_.poll_cqe) * 1e3;
    return out;
  }

  Trip with_completion(Trip trip) const {
    trip.all += of("dma_write") + (costs_.poll_call + costs_.poll_cqe) * 1e3;
    return trip;
  }

  const Json& steps_;
  const CpuCosts& costs_;
  const Prediction& prediction_;
  double far_;  // share of uses that find a QP's context far from the units
};

// The trip in picoseconds on machines whose steps are unknown.
Trip usual_trip(Kind kind) {
  switch (kind) {
    case Kind::sent_only:
      return {.all = kRoundTripUs * kSentOnly * 1e6};
    case Kind::write:
      return {.all = kRoundTripUs * 1e6};
    case Kind::read:
    case Kind::atomic:
    case Kind::echo:
      break;
  }
  return {.all = kReadTripUs * 1e6};
}

Trip trip_of(const Record& record, const Prediction* prediction, double qps) {
  const CounterReport* report = counters_of(record, "server");
  const Kind kind = kind_of(record);
  if (report == nullptr || prediction == nullptr) return usual_trip(kind);
  const auto steps = report->extra.find("steps_ps");
  if (steps == report->extra.end()) return usual_trip(kind);
  const double near = number_at(report->extra, "near_qp_contexts").value_or(0);
  const CpuCosts costs = cpu_costs(report->extra);
  return Steps(*steps, costs, *prediction, qps > near ? 1 - near / qps : 0).trip(kind);
}

}  // namespace

CpuCosts cpu_costs(const Json& extra) {
  CpuCosts out;
  const auto costs = extra.find("cpu_costs_ps");
  if (costs == extra.end()) return out;
  const auto take = [&costs](double& cost, const char* name) {
    if (const auto ps = number_at(*costs, name)) cost = *ps / 1e3;
  };
  take(out.post_call, "post_call");
  take(out.post_wqe, "post_wqe");
  take(out.wc_line, "wc_line");
  take(out.doorbell, "doorbell");
  take(out.poll_call, "poll_call");
  take(out.poll_cqe, "poll_cqe");
  take(out.post_recv_wqe, "post_recv_wqe");
  return out;
}

double cpu_cost_ns(const Prediction& prediction, const CpuCosts& costs) {
  const VerbShape& shape = prediction.shape;
  const double list = std::max(shape.post_list, 1);
  const double poll = costs.poll_call + costs.poll_cqe;
  if (prediction.role == "receiver") return costs.post_call / list + costs.post_recv_wqe + poll;
  return costs.post_call / list + costs.post_wqe + prediction.pcie.mmio_wc_lines * costs.wc_line +
         prediction.pcie.mmio_doorbells * costs.doorbell + poll / std::max(shape.signal_every, 1);
}

double max_outstanding_reads(const Record& record) {
  return number_at(record.config, "outs").value_or(kMaxReads);
}

double threads_of_clients(const Record& record) {
  double threads = 0;
  for (const Json& client : record.result.value("clients", Json::array())) {
    threads += static_cast<double>(client.value("result", Json::object()).value("threads", Json::array()).size());
  }
  return threads;
}

RoundTrip round_trip(const Record& record, const Prediction* prediction) {
  const std::string& name = record.benchmark;
  RoundTrip out;
  out.ring = is_ring(record);
  // The options say nothing about the messages of a replicated store.
  if (name == "verb_latency" || name == "write_visibility" || name == "raft_kv") return out;
  const Kind kind = kind_of(record);
  out.returns = kind == Kind::read || kind == Kind::atomic;
  const bool clients_post = name == "atomic_rate" || text_at(record.config, "direction") == "in";
  double machines = clients_post ? std::max(1.0, option(record, "clients")) : 1;
  double each = option(record, option(record, "window") > 0 ? "window" : "tx_depth");
  if (out.returns && !out.ring && name != "sequencer") {
    out.reads_are_full = each > max_outstanding_reads(record);
    each = std::min(each, max_outstanding_reads(record));
  }
  double trips = 1, qps = std::max(1.0, option(record, "qp")) * std::max(1.0, option(record, "threads"));
  const bool threads_ask =
      name == "sequencer" || name == "echo_rate" || name == "kv_atomic" || name == "kv_rate" || is_rpc(record);
  if (threads_ask) {  // the clients' threads, as many as there are QPs for
    const bool of_a_thread = name == "echo_rate" || name == "kv_rate";
    const bool of_all = name == "sequencer" || is_rpc(record);
    const double each_thread = of_all        ? option(record, "outstanding")
                               : of_a_thread ? option(record, "window")
                                             : each * option(record, "qp");
    machines = 1;
    const bool alike = text_at(record.config, "serve") == "all";  // the rate is that of the server's own calls
    out.operations = each_thread * (alike ? option(record, "threads") : threads_of_clients(record));
  }
  if (name == "kv_atomic") {
    out.locked = option(record, "put_percent") / 100;
    trips = 1 + out.locked;  // a PUT takes two: the lock, then the WRITE together with the unlock
  } else if (gets_by_read(record)) {
    const double reads = number_at(record.result, "index_reads_per_get").value_or(1) +
                         number_at(record.result, "value_reads_per_get").value_or(0);
    const double puts = option(record, "put_percent") / 100;
    trips = (1 - puts) * reads + puts;  // a PUT's request and its response are one trip
  } else if (!threads_ask) {
    // The server's connected QPs are divided among the clients; on UD each client has as many of its own.
    const double sharing = text_at(record.config, "connection") == "UD" ? 1 : machines;
    out.operations = each * option(record, "threads") * (out.ring ? 1 : option(record, "qp")) / sharing;
    out.burst = std::min(1.0, std::max(1.0, option(record, "post_list")) / std::max(1.0, each));
  }
  if (name == "all_to_all") qps *= std::max(1.0, option(record, "vms"));
  if (out.operations <= 0) return out;
  const Trip trip = trip_of(record, prediction, qps);
  const double rate = number_at(record.result, "rate_mops").value_or(0) / machines;
  out.load = rate * trip.all * 1e-6 * trips / out.operations;
  if (trip.all > 0) {
    out.requester_share = trip.requester / trip.all;
    out.responder_share = trip.responder / trip.all;
  }
  out.max_latency = kLoadedTrip * (out.load + out.burst);
  return out;
}

std::string outstanding_option(const Record& record) {
  if (record.config.contains("outstanding")) return "outstanding";
  return number_at(record.config, "window").value_or(0) > 0 ? "window" : "tx_depth";
}

bool keeps_one_outstanding(const Record& record) {
  return record.benchmark == "verb_latency" || record.benchmark == "write_visibility";
}

}  // namespace verbscope
