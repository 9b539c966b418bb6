#include "harness/learn/learn.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "analysis/keys.hpp"
#include "analysis/points.hpp"
#include "common/cli.hpp"
#include "common/files.hpp"
#include "common/paths.hpp"
#include "common/terminal.hpp"
#include "harness/evidence/evidence.hpp"
#include "harness/learn/lab.hpp"
#include "harness/learn/learn_report.hpp"
#include "harness/learn/learned.hpp"
#include "harness/learn/learner.hpp"
#include "harness/learn/survey.hpp"
#include "harness/process/stop.hpp"
#include "harness/sweep/parallel.hpp"
#include "harness/sweep/progress.hpp"

namespace verbscope {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPointsPerRound = 40, kDoubtfulPerRound = 8;
constexpr int kRoughSteps = 8, kFirstSteps = 20, kNextSteps = 6;
// A start does not go on if the error of its rough fit is larger than this times the best one's.
constexpr double kMuchWorse = 4;

constexpr int kUsualCores = 8;                                // if no host states them
constexpr std::size_t kFewestFigures = 5;                     // to fit anything
constexpr std::size_t kSurveyed = 30;                         // records that choose the profile to start from
constexpr std::size_t kJudged = 5;                            // every n-th record judges the fit
constexpr double kSecondsPerRun = 0.04, kRunsPerPoint = 350;  // of the simulations of a fit, on one CPU

// Measures points, or returns the records of earlier calls, and appends new ones to the file.
class Measurements {
 public:
  Measurements(const Lab& lab, std::filesystem::path file, double budget, std::size_t points, std::FILE* out)
      : lab_(lab), budget_(budget), points_(points), out_(out) {
    if (std::filesystem::exists(file)) {
      for (Record& record : read_results_warning(file).records) keep(std::move(record));
    }
    earlier_ = known_.size();
    writer_.emplace(file);
  }

  std::size_t earlier() const { return earlier_; }
  std::size_t count() const { return count_; }
  double seconds() const { return seconds_; }
  bool over() const { return seconds_ >= budget_ || count_ >= points_; }

  // Empty if interrupted.
  std::optional<Record> operator()(const Point& point, std::size_t server) {
    ++count_;
    const std::string key = key_of(point.benchmark, point.params, lab_.servers()[server]);
    if (const auto found = known_.lower_bound(key); found != known_.end() && found->first == key) {
      Record record = std::move(found->second);
      known_.erase(found);
      return record;
    }
    const Clock::time_point begin = Clock::now();
    std::optional<Record> record = lab_.measure(point, server);
    seconds_ += std::chrono::duration<double>(Clock::now() - begin).count();
    if (!record) return record;
    writer_->append(*record);
    if (record->status == RecordStatus::failed) print_format(out_, "failed: {}\n", record->reason);
    return record;
  }

 private:
  static std::string key_of(const std::string& benchmark, Json params, const std::string& server) {
    for (const char* key : {"duration", "warmup", "longest"}) params.erase(key);
    return benchmark + " " + dump_json(params) + " " + server;
  }

  void keep(Record record) {
    const Json* const params = value_at(record.config, "point.params");
    if (params == nullptr || server_of(record).empty() || record.status == RecordStatus::failed) return;
    known_.emplace(key_of(record.benchmark, *params, server_of(record)), std::move(record));
  }

  const Lab& lab_;
  double budget_;
  std::size_t points_;
  std::FILE* out_;
  std::multimap<std::string, Record> known_;  // each counts once: a doubtful point is measured again
  std::optional<ResultsWriter> writer_;
  std::size_t earlier_ = 0, count_ = 0;
  double seconds_ = 0;
};

std::filesystem::path records_of(const LearnOptions& options) {
  std::filesystem::path out = options.out;
  return out.replace_extension(".jsonl");
}

CandidateFacts candidate_facts(const ToldFacts& told) {
  return {.cores = told.values.value("host.cores", kUsualCores),
          .mtu = told.values.value("wire.mtu_bytes", std::uint64_t{4096}),
          .max_inline = std::min<std::uint64_t>(256, told.values.value("wire.max_inline_bytes", std::uint64_t{256}))};
}

std::string figure_text(const Record& record) {
  const std::optional<double> figure = measured_value(record);
  if (!figure) return "failed: " + record.reason;
  return is_latency(figure_key(record)) ? fmt::format("{:.3g} us", *figure / 1e3) : fmt::format("{:.3g} Mops", *figure);
}

class Learning {
 public:
  Learning(const LearnOptions& options, LearnPrograms& programs, StopSource* stop, std::FILE* out)
      : options_(options), programs_(programs), jobs_(job_count(options.jobs)), stop_(stop), out_(out) {}

  int from_records() {
    ToldFacts told;
    std::vector<MeasuredFigure> figures = figures_of(options_.records);
    if (!options_.rows.empty()) {
      told = told_by_profile(read_json_file(find_config("clusters", options_.cluster)), options_.cluster);
      for (MeasuredFigure& each : row_figures()) figures.push_back(std::move(each));
    }
    for (const Record& record : options_.records) {
      if (told.values.empty()) told = told_by_record(record);
    }
    leave_out(slow_hosts(figures, survey_points(candidate_facts(told))));
    std::erase_if(figures,
                  [&](const MeasuredFigure& each) { return std::ranges::find(slow_, each.server) != slow_.end(); });
    if (figures.size() < kFewestFigures) {
      fail("{}: {} records with a rate or latency, expected at least {}", options_.given, figures.size(),
           kFewestFigures);
    }
    if (figures.size() > options_.points) {
      std::vector<MeasuredFigure> drawn;
      for (const std::size_t i : draw_numbers(figures.size(), options_.points, options_.seed))
        drawn.push_back(figures[i]);
      figures = std::move(drawn);
    }
    std::vector<MeasuredFigure> some;
    for (const std::size_t i : draw_numbers(figures.size(), kSurveyed, options_.seed)) some.push_back(figures[i]);
    start(told, candidate_facts(told), some);
    print_format(out_, "{}: {} measurements, about {} of simulation\n", options_.given, figures.size(),
                 simulation_text(static_cast<double>(figures.size()), learner().start().seconds));
    const std::vector<std::size_t> judges = draw_numbers(figures.size(), figures.size() / kJudged, options_.seed + 1);
    for (std::size_t i = 0; i < figures.size(); ++i) add(figures[i], std::ranges::binary_search(judges, i));
    fit_starts();
    return conclude(options_.given);
  }

  int from_measurements() {
    const Lab lab(options_.hosts, options_.launcher, programs_,
                  options_.disturb ? std::optional(Disturbance{.seed = *options_.disturb}) : std::nullopt, stop_);
    const ToldFacts told = lab.told();
    Measurements measure(lab, records_of(options_), options_.budget_seconds, options_.points, out_);
    const CandidateFacts facts = candidate_facts(told);
    announce(lab, measure);
    if (!lab.software_device().empty()) return software(lab, measure, facts);
    const Survey survey = survey_of(lab.servers(), survey_points(facts), std::ref(measure));
    if (survey.interrupted) return kExitInterrupted;
    leave_out(survey.slow);
    servers_ = survey.good;
    const std::vector<MeasuredFigure> surveyed = figures_of(survey.records);
    start(told, facts, surveyed);
    for (const MeasuredFigure& each : surveyed) add(each, false);
    for (const MeasuredFigure& each : figures_of(options_.records)) add(each, false);
    const std::size_t left = options_.points - std::min(options_.points, measure.count());
    if (!measure_all(lab, measure, learners_.front()->first_choices(left))) return kExitInterrupted;
    print_format(out_, "measured {} points; fitting\n", measure.count());
    fit_starts();
    while (!measure.over()) {
      const auto doubtful = learner().doubtful_points(kDoubtfulPerRound);
      const auto choices = learner().next_choices(kPointsPerRound);
      if (doubtful.empty() && choices.empty()) break;
      if (!measure_all(lab, measure, doubtful) || !measure_all(lab, measure, choices)) return kExitInterrupted;
      learner().fit(kNextSteps);
      print_format(out_, "measured {} points; usual error {:.1f} %\n", measure.count(),
                   learner().figures().scale() * 100);
    }
    print_format(out_, "measuring took {}\n", duration_text(std::chrono::duration<double>(measure.seconds())));
    return conclude(measure_file());
  }

 private:
  void leave_out(const std::vector<SlowHost>& hosts) {
    for (const SlowHost& slow : hosts) {
      print_format(out_, "{} is left out: {} points differ from those of the other hosts, {} by {:+.0f} %\n", slow.name,
                   slow.points, slow.worst, slow.worst_percent);
      slow_.push_back(slow.name);
    }
  }

  std::string measure_file() const { return records_of(options_).string(); }

  void announce(const Lab& lab, const Measurements& measure) {
    const double points =
        std::min(static_cast<double>(options_.points), options_.budget_seconds / lab.seconds_per_point());
    print_format(out_, "{}: up to {:.0f} points, about {} of measuring, then about {} of simulation\n", options_.hosts,
                 points, duration_text(std::chrono::duration<double>(points * lab.seconds_per_point())),
                 simulation_text(points, kSecondsPerRun));
    if (measure.earlier() > 0) print_format(out_, "{} points are in {} already\n", measure.earlier(), measure_file());
  }

  std::string simulation_text(double points, double seconds_per_run) const {
    return duration_text(
        std::chrono::duration<double>(points * kRunsPerPoint * seconds_per_run / static_cast<double>(jobs_)));
  }

  int software(const Lab& lab, Measurements& measure, const CandidateFacts& facts) {
    for (const Candidate& each : survey_points(facts)) {
      const std::optional<Record> record = measure(each.point, 0);
      if (!record) return kExitInterrupted;
      print_format(out_, "  {}: {}\n", PointNames({each.point}).name(each.point), figure_text(*record));
    }
    print_error(
        fmt::format("{} is a software device: the CPU executes its verbs, so it has no PCIe link, units or caches to "
                    "learn; the points above show the time of the kernel's stack",
                    lab.software_device()));
    return 1;
  }

  void start(const ToldFacts& told, const CandidateFacts& facts, const std::vector<MeasuredFigure>& measured) {
    const std::vector<std::string> names = options_.like.empty() ? list_configs("clusters") : options_.like;
    for (StartProfile& start : nearest_profiles(names, told, measured, facts, programs_, jobs_, stop_)) {
      print_format(out_, "starting from {}: half of {} points are within {:.0f} %\n", start.name, measured.size(),
                   std::expm1(start.error) * 100);
      learners_.push_back(std::make_unique<Learner>(std::move(start), facts, programs_, jobs_, options_.seed, stop_));
    }
  }

  void add(const MeasuredFigure& figure, bool held_out) {
    for (const auto& each : learners_) each->add(figure, held_out);
  }

  // Fits from each known profile, and goes on from the one that explains the points best. A rough fit tells the two
  // apart only if they differ a lot.
  void fit_starts() {
    keep_starts("fitted roughly", kMuchWorse, [](Learner& each) { each.fit_roughly(kRoughSteps); });
    keep_starts("fitted", 1, [](Learner& each) { each.fit_thoroughly(kFirstSteps); });
    learner().fit_again(kFirstSteps);
  }

  // Fits from each start that is left, and keeps those whose errors are at most `factor` times the least one, the best
  // first.
  void keep_starts(std::string_view done, double factor, const std::function<void(Learner&)>& fit) {
    std::vector<std::pair<double, std::unique_ptr<Learner>>> fitted;
    for (std::unique_ptr<Learner>& each : learners_) {
      fit(*each);
      const double error = each->mean_error();
      print_format(out_, "{} from {}: mean error {:.1f} %\n", done, each->start().name, std::expm1(error) * 100);
      fitted.emplace_back(error, std::move(each));
    }
    std::ranges::sort(fitted, {}, [](const auto& each) { return each.first; });
    learners_.clear();
    for (auto& [error, each] : fitted) {
      if (error <= factor * fitted.front().first) learners_.push_back(std::move(each));
    }
  }

  Learner& learner() { return *learners_.front(); }

  std::vector<MeasuredFigure> figures_of(const std::vector<Record>& records) {
    std::vector<MeasuredFigure> out;
    for (const Record& record : records) {
      if (auto figure = measured_figure(record, programs_)) out.push_back(std::move(*figure));
    }
    return out;
  }

  // The rows of the cluster that one run measures.
  std::vector<MeasuredFigure> row_figures() {
    std::vector<EvidenceRow> rows = evidence_of_file(options_.rows);
    Programs programs(programs_.folder());
    set_not_run_reasons(rows, programs);
    std::vector<MeasuredFigure> out;
    for (const EvidenceRow& row : rows) {
      const PublishedPoint& point = row.point;
      if (!row.not_run.empty() || point.cluster != options_.cluster || !point.profile.empty()) continue;
      if (point.comparison != Comparison::equals || !point.single()) continue;
      out.push_back({.point = {.benchmark = point.run.benchmark, .params = point.run.params()},
                     .key = point.run.result_key,
                     .figure = point.value,
                     .server = {},
                     .group = row.by_shape ? shape_group(row) : ""});
    }
    return out;
  }

  // The host whose turn it is, or the next one that has not measured the point.
  std::size_t server_for(const Learner::Choice& choice, const Lab& lab, std::size_t turn) const {
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      const std::size_t server = servers_[(turn + i) % servers_.size()];
      if (std::ranges::find(choice.measured_on, lab.servers()[server]) == choice.measured_on.end()) return server;
    }
    return servers_[turn % servers_.size()];
  }

  // Returns false if interrupted.
  bool measure_all(const Lab& lab, Measurements& measure, const std::vector<Learner::Choice>& choices) {
    for (const Learner::Choice& choice : choices) {
      if (measure.over()) break;
      const std::optional<Record> record = measure(choice.point, server_for(choice, lab, measure.count()));
      if (!record) return false;
      for (const MeasuredFigure& each : figures_of({*record})) add(each, choice.held_out);
    }
    return true;
  }

  int conclude(const std::string& records) {
    learner().finish();
    const Learned learned = learned_by(learner());
    print_format(out_, "\n{}\n", learned_text(learner(), learned, terminal_width(out_)));
    const std::filesystem::path path = options_.out;
    replace_file(path,
                 pretty_json(learned_profile(learner(), learned,
                                             {.name = path.stem().string(), .records = records, .slow_hosts = slow_})) +
                     "\n");
    print_format(out_, "{} simulations; profile: {}\n", learner().runs(), options_.out);
    if (options_.report.empty()) return 0;
    std::vector<Record> measured = options_.records;
    if (!options_.hosts.empty()) {
      for (Record& record : read_results_warning(measure_file()).records) measured.push_back(std::move(record));
    }
    write_learn_report(options_.report, measured, path, programs_, jobs_, stop_);
    print_format(out_, "report: {}\n", options_.report);
    return 0;
  }

  const LearnOptions& options_;
  LearnPrograms& programs_;
  std::size_t jobs_;
  StopSource* stop_;
  std::FILE* out_;
  std::vector<std::unique_ptr<Learner>> learners_;  // one per start, until fit_starts()
  std::vector<std::size_t> servers_;
  std::vector<std::string> slow_;
};

}  // namespace

int learn(const LearnOptions& options, const std::filesystem::path& folder, std::FILE* out) {
  Interrupt interrupt;
  LearnPrograms programs(folder);
  Learning learning(options, programs, &interrupt, out);
  return options.hosts.empty() ? learning.from_records() : learning.from_measurements();
}

}  // namespace verbscope
