#include <algorithm>
#include <cmath>
#include <functional>

#include "analysis/explain.hpp"
#include "analysis/loads.hpp"
#include "analysis/points.hpp"
#include "analysis/shape_loads.hpp"

namespace verbscope {
namespace {

// From this load on, latency affects the rate even beside a full resource. Assumed.
constexpr double kMinRelevantLatency = 0.5;

// Returns a load as it is after the change, for the machine under test and for its peers.
using Scaling = std::function<double(const Load&, bool of_peer)>;

class Adviser {
 public:
  Adviser(const Record& record, const std::optional<Prediction>& prediction, const Diagnosis& diagnosis)
      : record_(record), prediction_(prediction), diagnosis_(diagnosis), binding_(diagnosis.limits.front()) {}

  std::vector<Advice> all() {
    if (prediction_ && !binding_.of_peer && !waits_for_responses()) {
      const double window = number_at(record_.config, "window").value_or(prediction_->shape.send_queue_depth);
      for (const ShapeChange& change : shape_changes(*prediction_, static_cast<int>(window))) {
        if (delays_window(change)) continue;
        const std::size_t before = out_.size();
        add_shape_change(change);
        if (out_.size() > before) out_.back().other_payload = change.after.shape.payload != prediction_->shape.payload;
      }
      add_fewer_misses();
      add_recvs();
    }
    if (binding_.load.resource == Resource::wqe_cache) add_fewer_outstanding();
    add_program_changes();
    std::ranges::stable_sort(out_, std::greater{}, &Advice::factor);
    return std::move(out_);
  }

 private:
  // True if operations do not consume the limiting resource, so that no other form of the operation helps.
  bool waits_for_responses() const {
    const Resource limit = binding_.load.resource;
    return limit == diagnosis_.loads.waited_for || limit == Resource::outstanding || limit == Resource::wqe_cache ||
           (is_held_while_waiting(limit) && limit != Resource::qp_context_cache);
  }

  // True if the program waits for its whole window, latency matters, and the change completes more operations at once:
  // the window then completes later.
  bool delays_window(const ShapeChange& change) const {
    const bool whole = record_.benchmark == "wqe_cache" || text_at(record_.config, "wait") == "all";
    const VerbShape &before = prediction_->shape, &after = change.after.shape;
    return whole && diagnosis_.latency >= kMinRelevantLatency &&
           (after.post_list > before.post_list || after.signal_every > before.signal_every);
  }

  // True if an adapter re-reads WQEs because more are outstanding than its cache holds.
  bool rereads_wqes() const { return wqes_reread_per_op(record_) > kRereadCounts; }

  // `smaller`: the operation moves less data, which also relieves resources that the model does not scale.
  void add(const std::string& change, const Scaling& scaled, Json options, bool smaller) {
    add(change, scaled, diagnosis_.latency, std::move(options), smaller);
  }
  void add(const std::string& change, const Scaling& scaled, double latency, Json options, bool smaller) {
    const auto [factor, fullest] = diagnosis_.outcome(scaled, latency);
    if (factor < kWorthwhile) return;
    const bool at_least = smaller && scaled(fullest.load, fullest.of_peer) == fullest.load.utilisation;
    out_.push_back({.change = change, .factor = factor, .at_least = at_least, .options = std::move(options)});
  }

  // It is unknown how long another operation would hold tags and locks.
  static bool is_not_scaled(const Load& load) {
    return is_held_while_waiting(load.resource) && load.resource != Resource::qp_context_cache;
  }

  // One unit works for one QP at a time: more QPs use more units.
  static bool is_of_one_qp(Resource resource) {
    return resource == Resource::requester_unit || resource == Resource::responder_unit;
  }

  void add_shape_change(const ShapeChange& change) {
    const ShapeLoads of_shapes(record_, diagnosis_.loads, *prediction_);
    add(
        change.text,
        [&](const Load& load, bool of_peer) {
          if (is_not_scaled(load)) return 0.0;
          return of_peer ? load.utilisation : of_shapes.after(load, change.after);
        },
        change.options, is_shorter(change.after));
  }

  // True if the adapter has less to move or to gather for the operation.
  bool is_shorter(const Prediction& after) const {
    return after.wqe_lines < prediction_->wqe_lines || after.shape.payload < prediction_->shape.payload ||
           (after.shape.inlined && !prediction_->shape.inlined);
  }

  // A change that avoids the adapter's reads beyond those of the model.
  void add_no_misses(const std::string& change, Json options) {
    const std::optional<PciePerOp> counted = events_per_op(record_);
    if (!prediction_ || !counted || !std::isfinite(counted->bytes_to_nic)) return;
    const double rate = number_at(record_.result, "rate_mops").value_or(0) * 1e6;
    const double extra = counted->bytes_to_nic - prediction_->pcie.bytes_to_nic;
    const double extra_load = std::max(0.0, extra) * rate / prediction_->wire.pcie.bandwidth().value;
    const auto without = [&](const Load& load, bool of_peer) {
      if (is_not_scaled(load) || (!of_peer && load.resource == Resource::qp_context_cache)) return 0.0;
      if (of_peer) return load.utilisation;
      if (load.resource == Resource::pcie_to_nic) return load.utilisation - extra_load;
      return load.utilisation - (load.waited - waited_for_recvs(load));
    };
    add(change, without, std::move(options), false);
  }

  // Reduces the outstanding operations to a power of two whose WQEs fit into the cache.
  void add_fewer_outstanding() {
    const std::string key = outstanding_option(record_);
    const double now = number_at(record_.config, key).value_or(0);
    const double fits =
        std::exp2(std::floor(std::log2(std::max(1.0, outstanding_per_qp(now) * diagnosis_.loads.wqes_fit))));
    if (key == "outstanding" || now < 2) return;
    if (fits >= now || fits < number_at(record_.config, "post_list").value_or(1)) return;
    const auto without = [](const Load& load, bool) { return load.utilisation - load.rereading; };
    const std::string change = fmt::format(
        "{:g} operations outstanding on a QP instead of {:g}, so that their WQEs stay in the NIC's cache", fits, now);
    add(change, without, diagnosis_.loads.trip.load, Json{{key, fits}}, false);
  }

  // Outstanding operations per QP if `now` are allowed: the adapter limits READs and atomics.
  double outstanding_per_qp(double now) const {
    const bool ring = text_at(record_.config, "wait") == "oldest";
    const bool reads = prediction_ && (prediction_->shape.verb == Verb::read || facts(prediction_->shape.verb).atomic);
    return reads && !ring ? std::min(now, max_outstanding_reads(record_)) : now;
  }

  // Translations depend on memory, all other state on QPs. The adapter's miss counters decide which to reduce.
  void add_fewer_misses() {
    const double contexts = extra_per_op(record_, "qp_context_misses").value_or(0);
    const double translations = extra_per_op(record_, "translation_misses").value_or(0);
    if (translations < std::max(contexts, kRereadCounts)) {
      add_no_misses("fewer active QPs or WQEs, so that their state stays in the adapter's caches", Json::object());
    } else if (text_at(record_.config, "pages") == "4k") {
      add_no_misses("pages of 2 MB instead of 4 KB, so that translations stay in the adapter's cache",
                    {{"pages", "2m"}});
    } else {
      add_no_misses("less memory, so that its translations stay in the adapter's cache", Json::object());
    }
  }

  // The part of a unit's waiting time for RECVs, as opposed to misses of QP contexts and translations. The counts
  // decide, because each of them costs one read over PCIe.
  double waited_for_recvs(const Load& load) const {
    if (load.resource != Resource::responder_unit && load.resource != Resource::responder_units) return 0;
    const auto times = [this](const char* key) { return extra_per_op(record_, key).value_or(0); };
    const double recvs = times("recv_waits");
    const double all = recvs + times("qp_context_misses") + times("translation_misses");
    return recvs > 0 ? load.waited * recvs / all : 0;
  }

  void add_recvs() {
    const auto without = [this](const Load& load, bool of_peer) {
      return of_peer ? load.utilisation : load.utilisation - waited_for_recvs(load);
    };
    add("more RECVs posted (rx_depth), so that no message waits for one", without, Json::object(), false);
  }

  // Changes around the operation: threads, QPs, peers, outstanding operations, and the placement of locks.
  void add_program_changes() {
    const Resource limit = binding_.load.resource;
    const bool fixed = record_.config.contains("machines");  // this option sets the number of clients
    if (binding_.of_peer && !is_of_one_qp(limit)) {
      if (fixed || !can_double_clients() || (limit == Resource::cpu && has_thread_per_qp())) return;
      return add_doubled("clients", "clients",
                         [](const Load& load, bool of_peer) { return load.utilisation / (of_peer ? 2 : 1); });
    }
    if (limit == Resource::atomic_slot) return add_even_lock_placement();
    // More QPs, threads or outstanding operations also mean more WQEs. If WQEs are re-read, or twice as many would be,
    // the gain cannot be predicted.
    if (rereads_wqes() || diagnosis_.loads.waiting_wqes_fit < 2) return;
    if (is_of_one_qp(limit) || limit == Resource::wqe_fetch) return add_doubled_qps();
    if (limit == Resource::cpu) return add_doubled_threads();
    if (limit == Resource::driver_lock) return add_separate_queues();
    if (limit == Resource::workers) {
      return add_doubled("worker threads", "workers", [](const Load& load, bool) {
        return load.resource == Resource::workers ? load.utilisation / 2 : load.utilisation;
      });
    }
    if (limit == Resource::log_device) return add_log_changes();
    if (limit == Resource::credits)
      return add_doubled("credits", "credits", [](const Load& load, bool) { return load.utilisation; });
    if (limit != Resource::outstanding) return;
    if (diagnosis_.loads.trip.reads_are_full) return add_doubled_qps();
    const std::string key = outstanding_option(record_);
    if (may_fill(key))
      add_doubled("operations outstanding", key, [](const Load& load, bool) { return load.utilisation; });
  }

  // Without syncs an operation takes the rest of its time. With twice as many outstanding, a sync serves twice as many
  // appends.
  void add_log_changes() {
    const auto same = [](const Load& load, bool) { return load.utilisation; };
    add("the log in memory, which a crash of the machine loses", same,
        diagnosis_.latency * (1 - diagnosis_.loads.waited_share), Json{{"log", "dram"}}, false);
    add_doubled("operations outstanding", "outstanding", same);
  }

  // Each client needs a connected QP of the server, except for sequencer and kv_rate, where clients have their own.
  bool can_double_clients() const {
    if (record_.benchmark == "sequencer" || record_.benchmark == "kv_rate" ||
        text_at(record_.config, "connection") == "UD")
      return true;
    const auto option = [&](const std::string& name) { return number_at(record_.config, name).value_or(1); };
    return 2 * option("clients") <= std::ceil(option("threads") / option("threads_per_qp")) * option("qp");
  }

  // If true, more clients do not reduce the work of each thread.
  bool has_thread_per_qp() const {
    const auto option = [&](const std::string& name) { return number_at(record_.config, name).value_or(1); };
    return text_at(record_.config, "connection") != "UD" &&
           threads_of_clients(record_) >= std::ceil(option("threads") / option("threads_per_qp")) * option("qp");
  }

  // Two units share the work of one, if the other units have less to do.
  double load_with_doubled_qps(const Load& load, bool of_peer) const {
    if (!is_of_one_qp(load.resource)) return load.utilisation;
    const bool requester = load.resource == Resource::requester_unit;
    const Load* all = find_load(of_peer ? diagnosis_.loads.peers : diagnosis_.loads.server,
                                requester ? Resource::requester_units : Resource::responder_units);
    return std::max(load.utilisation / 2, all == nullptr ? 0 : all->utilisation);
  }
  void add_doubled_qps() {
    if (record_.config.value("batching", false)) return;  // more QPs would split each batch of responses
    const bool in_all = number_at(record_.config, "connections").value_or(0) > 0;
    const bool to_each = number_at(record_.config, "vms").value_or(0) > 0;
    add_doubled(in_all    ? "connections"
                : to_each ? "QPs a thread to each machine"
                          : "QPs a thread",
                in_all    ? "connections"
                : to_each ? "vms"
                          : "qp",
                [this](const Load& load, bool of_peer) { return load_with_doubled_qps(load, of_peer); });
  }

  // True if about as many operations were outstanding as option `key` allows (Little's law: rate times latency). PUTs
  // of kv_atomic wait for locks and for earlier atomics on their QP, so more of them only wait longer.
  bool may_fill(const std::string& key) const {
    const bool locks = record_.benchmark != "kv_rate" && number_at(record_.result, "put_mops").value_or(0) > 0;
    if (keeps_one_outstanding(record_) || locks) return false;
    const std::optional<double> latency = number_at(record_.result, "lat_mean_ns");
    if (!latency) return true;
    const double under_way = number_at(record_.result, "rate_mops").value_or(0) * *latency * 1e-3;
    const auto option = [&](const std::string& name) { return number_at(record_.config, name).value_or(1); };
    return under_way >= option(key) * option("qp") * option("threads") / 2;
  }

  // Doubles an option that also doubles the outstanding operations.
  void add_doubled(const std::string& what, const std::string& key, const Scaling& scaled) {
    const double now = number_at(record_.config, key).value_or(0);
    if (now < 1) return;
    // Additional clients share the same QPs, unless each client has its own.
    const std::string& name = record_.benchmark;
    const bool own = name == "kv_atomic" || name == "sequencer" || name == "kv_rate";
    const bool same_window = diagnosis_.loads.trip.ring && (key == "qp" || key == "vms" || key == "connections");
    const double latency = diagnosis_.latency / ((key == "clients" && !own) || same_window ? 1 : 2);
    add(fmt::format("{:g} {} instead of {:g}", 2 * now, what, now), scaled, latency, Json{{key, 2 * now}}, false);
  }

  // Each thread brings its own QPs, so resources of one thread or one QP double, too.
  void add_doubled_threads() {
    const double now = number_at(record_.config, "threads").value_or(0);
    if (now < 1) return;
    add(
        fmt::format("{:g} threads instead of {:g}", 2 * now, now),
        [this](const Load& load, bool of_peer) {
          if (load.resource == Resource::cpu && !of_peer) return load.utilisation / 2;
          return load_with_doubled_qps(load, of_peer);
        },
        diagnosis_.latency / 2, Json{{"threads", 2 * now}}, false);
  }

  // With its own queues, a thread never waits for the lock.
  void add_separate_queues() {
    const auto without = [](const Load& load, bool of_peer) {
      return load.resource == Resource::driver_lock && !of_peer ? 0 : load.utilisation;
    };
    const double sharing = number_at(record_.config, "threads_per_qp").value_or(1);
    const std::string registers = text_at(record_.config, "uars");
    if (sharing > 1) {
      add(fmt::format("QPs of its own for each thread instead of one for {:g}", sharing), without,
          Json{{"threads_per_qp", 1}}, false);
    } else if (!registers.empty() && registers != "exclusive" && prediction_ &&
               facts(prediction_->wire.family).several_doorbell_registers) {
      add("a doorbell register of its own for each thread", without, Json{{"uars", "exclusive"}}, false);
    }
  }

  void add_even_lock_placement() {
    const double mean = diagnosis_.loads.atomic_slot_mean;
    const double factor = mean > 0 ? binding_.load.utilisation / mean : 1;
    if (factor < kWorthwhile) return;
    out_.push_back(
        {.change = "locks at addresses that use all slots of the atomic unit evenly", .factor = factor, .options = {}});
  }

  const Record& record_;
  const std::optional<Prediction>& prediction_;
  const Diagnosis& diagnosis_;
  const Limit& binding_;
  std::vector<Advice> out_;
};

}  // namespace

std::vector<Advice> advise(const Record& record, const std::optional<Prediction>& prediction,
                           const Diagnosis& diagnosis) {
  if (diagnosis.limits.empty()) return {};
  return Adviser(record, prediction, diagnosis).all();
}

}  // namespace verbscope
