// Random machines for fits of many parameters, whose figures are formulas. A rate is that of the slowest part: cores,
// requester units, responder units, PCIe or the port. A latency is a sum of times. A miss in a cache takes more time.
// In short intervals some rates are too high, if the port limits them.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "harness/learn/robust_fit.hpp"

namespace verbscope {

class RandomMachine {
 public:
  explicit RandomMachine(std::uint64_t seed) : random_(seed) {
    core_ = times("host.core_ns", ParameterGroup::cpu, 8, 10, 50, 50);
    path_ = times("nic.path_ns", ParameterGroup::path, 6, 50, 250, 300);
    requester_ = units("nic.requester_units", ParameterGroup::requester, 8, 6, 30, 110);
    responder_ = units("nic.responder_units", ParameterGroup::responder, 4, 8, 20, 80);
    to_nic_ = add({.name = "link.tlp_share", .start = 0.9, .low = 0.3, .high = 1, .group = ParameterGroup::pcie}, 0.15);
    to_host_ =
        add({.name = "link.host_share", .start = 0.9, .low = 0.3, .high = 1, .group = ParameterGroup::pcie}, 0.15);
    port_ =
        add({.name = "fabric.port_share", .start = 0.95, .low = 0.5, .high = 1, .group = ParameterGroup::port}, 0.1);
    gap_ = add({.name = "fabric.packet_gap_bytes",
                .start = 30,
                .low = 1,
                .high = 500,
                .offset = 30,
                .group = ParameterGroup::port},
               kSpread);
    for (std::size_t i = 0; i < kCaches; ++i) {
      cache_sizes_.push_back(add({.name = "nic.entries",
                                  .start = size_of_cache(i),
                                  .low = 8,
                                  .high = 1e6,
                                  .integer = true,
                                  .group = ParameterGroup::caches},
                                 1));
      misses_.push_back(add(
          {.name = "nic.miss_ns", .start = 150, .low = 5, .high = 3000, .offset = 50, .group = ParameterGroup::caches},
          kSpread));
    }
    for (std::size_t i = 0; i < kRows; ++i) rows_.push_back(random_row());
  }

  const std::vector<FitParameter>& parameters() const { return parameters_; }
  const std::vector<double>& truth() const { return truth_; }
  std::size_t simulations() const { return simulations_; }

  LogFigures simulate() {
    return [this](const std::vector<FitTrial>& trials) {
      simulations_ += trials.size();
      std::vector<double> out;
      for (const FitTrial& trial : trials) out.push_back(simulated(trial));
      return out;
    };
  }

  // Adds all rows with figures of the true values, 1 % noise, and 2 % that a disturbance slowed down.
  void measure(RobustFit& fit) {
    for (const Row& row : rows_) {
      double measured = figure(row, truth_) + 0.01 * normal_(random_);
      if (chance(0.02)) measured += (row.latency ? 1 : -1) * between(0.1, 0.5);
      fit.add_row(RowUse::fitted, measured, kAllProperties);
    }
  }

 private:
  static constexpr std::size_t kRows = 240, kCaches = 3;
  static constexpr double kSpread = 0.5;  // of the logarithms of true values around the start
  static constexpr double kPcieBytesPerNs = 12, kPortBytesPerNs = 7;
  static constexpr double kSimulationNoise = 0.002;
  static constexpr double kTooHigh = 0.04;  // the logarithm of a rate in a short interval
  // The slowest resource limits, and one that is nearly as slow counts a little: the power of a p-norm.
  static constexpr double kSharpness = 20;

  struct Part {
    std::size_t parameter;
    double times;
  };
  using Sum = std::vector<Part>;
  struct Row {
    bool latency;
    double threads, qps, bytes;  // one unit at a time serves a QP
    Sum core, requester, responder, path;
    std::size_t cache;
    double entries;  // that the row needs in the cache, 0: it needs none
  };
  struct Units {
    std::size_t count;
    std::vector<std::size_t> times;
  };

  static double size_of_cache(std::size_t cache) { return 200 * std::pow(4, cache); }
  bool chance(double probability) { return uniform_(random_) < probability; }
  double between(double low, double high) { return low + (high - low) * uniform_(random_); }

  // Four of five true values differ from the start. Returns the index.
  std::size_t add(const FitParameter& parameter, double spread) {
    const double factor = chance(0.8) ? std::exp(spread * normal_(random_)) : 1;
    const double value = parameter.start * factor;
    parameters_.push_back(parameter);
    truth_.push_back(std::clamp(parameter.integer ? std::round(value) : value, parameter.low, parameter.high));
    return truth_.size() - 1;
  }
  std::vector<std::size_t> times(const std::string& name, ParameterGroup group, int count, double low, double high,
                                 double offset) {
    std::vector<std::size_t> out;
    for (int i = 0; i < count; ++i) {
      out.push_back(
          add({.name = name, .start = between(low, high), .low = 1, .high = 2000, .offset = offset, .group = group},
              kSpread));
    }
    return out;
  }
  Units units(const std::string& name, ParameterGroup group, double count, int services, double low, double high) {
    const std::size_t number =
        add({.name = name, .start = count, .low = 1, .high = 128, .integer = true, .group = group}, 0.4);
    return {number, times("nic.service_ns", group, services, low, high, 50)};
  }

  // The first time, and some of the others, once or several times.
  Sum random_sum(const std::vector<std::size_t>& times) {
    constexpr std::array kTimes{1.0, 1.0, 1.0, 0.25, 2.0, 4.0};
    Sum out{{times.front(), 1}};
    for (std::size_t i = 1; i < times.size(); ++i) {
      if (chance(0.37)) out.push_back({times[i], kTimes.at(random_() % kTimes.size())});
    }
    return out;
  }
  Row random_row() {
    constexpr std::array kThreads{1.0, 2.0, 4.0, 12.0}, kQps{1.0, 4.0, 16.0, 64.0};
    Row row{.latency = chance(0.2),
            .threads = kThreads.at(random_() % kThreads.size()),
            .qps = kQps.at(random_() % kQps.size()),
            .bytes = 16 * std::pow(2, 8 * uniform_(random_) * uniform_(random_)),
            .core = random_sum(core_),
            .requester = random_sum(requester_.times),
            .responder = random_sum(responder_.times),
            .path = {},
            .cache = random_() % kCaches,
            .entries = 0};
    for (const std::size_t each : path_) row.path.push_back({each, chance(0.5) ? 1.0 : 2.0});
    if (chance(0.3)) row.entries = size_of_cache(row.cache) * std::exp(1.2 * normal_(random_));
    return row;
  }

  double figure(const Row& row, const std::vector<double>& values, double too_high = 0) const {
    const auto sum = [&](const Sum& parts) {
      double ns = 0;
      for (const Part& part : parts) ns += part.times * values[part.parameter];
      return ns;
    };
    const double hits = row.entries > 0 ? std::min(1.0, values[cache_sizes_[row.cache]] / row.entries) : 1;
    const double requester = sum(row.requester) + (1 - hits) * values[misses_[row.cache]];
    const double responder = sum(row.responder);
    const double to_nic = row.bytes / (kPcieBytesPerNs * values[to_nic_]);
    const double to_host = row.bytes / (kPcieBytesPerNs * values[to_host_]);
    const double port = (row.bytes + values[gap_]) / (kPortBytesPerNs * values[port_]);
    if (row.latency) return std::log(sum(row.path) + sum(row.core) + requester + responder + to_nic + port);
    double powers = 0;
    for (const double ns : {sum(row.core) / row.threads, requester / std::min(row.qps, values[requester_.count]),
                            responder / std::min(row.qps, values[responder_.count]), to_nic, to_host, port})
      powers += std::pow(ns, kSharpness);
    return too_high * std::pow(port, kSharpness) / powers - std::log(powers) / kSharpness;
  }

  // With noise that depends on the values, as that of a simulation does.
  double simulated(const FitTrial& trial) const {
    std::vector<double> values;
    std::uint64_t bits = 1315423911U * (trial.row + 1) + trial.seed;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      values.push_back(rounded_value(parameters_[i], trial.values[i]));
      bits = 31 * bits + std::bit_cast<std::uint64_t>(values.back());
    }
    const bool too_high = trial.interval == SimulatedInterval::shortened && trial.row % 2 == 0;
    return figure(rows_[trial.row], values, too_high ? kTooHigh : 0) + kSimulationNoise * noise(bits);
  }

  // Between -1 and 1: the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
  static double noise(std::uint64_t bits) {
    bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
    bits ^= bits >> 31U;
    return 2 * static_cast<double>(bits >> 11U) / static_cast<double>(1ULL << 53U) - 1;
  }

  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  std::vector<FitParameter> parameters_;
  std::vector<double> truth_;
  std::vector<std::size_t> core_, path_, cache_sizes_, misses_;
  Units requester_, responder_;
  std::size_t to_nic_ = 0, to_host_ = 0, port_ = 0, gap_ = 0;
  std::vector<Row> rows_;
  std::size_t simulations_ = 0;
};

}  // namespace verbscope
