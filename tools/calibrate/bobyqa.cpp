#include "tools/calibrate/bobyqa.hpp"

#include <algorithm>
#include <exception>
#include <nlopt.hpp>

#include "common/error.hpp"

namespace verbscope {
namespace {

// What NLopt calls: it keeps the best point itself, since NLopt loses it when an evaluation throws or the limit is met.
struct Search {
  const Objective& objective;
  nlopt::opt& optimiser;
  Minimum best;
  std::exception_ptr thrown;

  static double evaluate(const std::vector<double>& x, std::vector<double>& /*gradient*/, void* data) {
    auto& search = *static_cast<Search*>(data);
    try {
      const double value = search.objective(x);
      ++search.best.evaluations;
      if (search.best.at.empty() || value < search.best.value) {
        search.best.at = x;
        search.best.value = value;
      }
      return value;
    } catch (...) {
      search.thrown = std::current_exception();
      search.optimiser.force_stop();
      return 0;
    }
  }
};

}  // namespace

int first_evaluations(std::size_t numbers) {
  return 2 * static_cast<int>(numbers) + 1;
}

Minimum minimise(const Objective& objective, const std::vector<double>& start, const Box& box, double step,
                 const SearchLimit& limit) {
  nlopt::opt optimiser(nlopt::LN_BOBYQA, static_cast<unsigned>(start.size()));
  Search search{.objective = objective, .optimiser = optimiser, .best = {}, .thrown = nullptr};
  optimiser.set_min_objective(Search::evaluate, &search);
  optimiser.set_lower_bounds(box.lower);
  optimiser.set_upper_bounds(box.upper);
  std::vector<double> steps, tolerances;
  for (std::size_t i = 0; i < start.size(); ++i) {
    const double room = std::max(box.upper[i] - start[i], start[i] - box.lower[i]);
    const double near = std::min(box.upper[i] - start[i], start[i] - box.lower[i]);
    steps.push_back(std::min({step, room, near > 0 ? near : room}));
    tolerances.push_back(steps.back() / 100);
  }
  optimiser.set_initial_step(steps);
  optimiser.set_xtol_abs(tolerances);
  optimiser.set_maxeval(limit.evaluations);
  optimiser.set_maxtime(limit.seconds);
  std::vector<double> x = start;
  double value = 0;
  try {
    optimiser.optimize(x, value);
  } catch (const nlopt::roundoff_limited&) {  // the best point stands
  } catch (const nlopt::forced_stop&) {
  } catch (const std::exception& error) {
    fail("BOBYQA: {}", error.what());
  }
  if (search.thrown) std::rethrow_exception(search.thrown);
  return search.best;
}

}  // namespace verbscope
