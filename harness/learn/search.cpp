#include "harness/learn/search.hpp"

#include "harness/learn/starts.hpp"

namespace verbscope {
namespace {

constexpr int kAlternativeSteps = 4, kLastSteps = 10;
constexpr int kRounds = 3;  // over all alternatives: one depends on another, and on the last steps
constexpr auto kFresh = RobustFit::Until::little_gained_with_fresh_derivatives;

}  // namespace

void search_roughly(RobustFit& fit, int steps) {
  hold_units(fit);
  fit.improve(0);
  fit.scan_caches();
  fit.improve(steps);
}

void search_thoroughly(RobustFit& fit, int steps) {
  fit.improve(steps, kFresh);
  fit.set_loss(Loss::cauchy);
  fit.correct();
  fit.scan_caches();
  fit.improve(steps);
}

std::vector<LearnedInterval> finish_search(RobustFit& fit) {
  fit.correct();
  fit.scan_caches();
  fit.improve(kLastSteps, kFresh);
  TriedAlternatives tried;
  for (int round = 0; round < kRounds; ++round) {
    tried = improve_with_alternatives(fit, kAlternativeSteps);
    const double scale = fit.scale(), before = fit.cost(scale);
    fit.improve(kLastSteps, kFresh);
    fit.correct();
    if (!tried.better && fit.cost(scale) > before - kScanGain) break;
  }
  fit.refresh();
  return profile_intervals(fit, tried.worse);
}

}  // namespace verbscope
