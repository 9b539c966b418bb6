#include "harness/learn/learn_report.hpp"

#include "analysis/report.hpp"
#include "common/files.hpp"
#include "harness/point/point_runner.hpp"
#include "harness/sweep/parallel.hpp"

namespace verbscope {

void write_learn_report(const std::filesystem::path& page, const std::vector<Record>& measured,
                        const std::filesystem::path& profile, LearnPrograms& programs, std::size_t jobs,
                        StopSource* stop) {
  check_output("--report", page, FileKind::report_page);
  std::vector<Point> points;
  std::vector<const Record*> shown;
  for (const Record& record : measured) {
    const auto figure = measured_figure(record, programs);
    if (!figure) continue;
    points.push_back(figure->point);
    shown.push_back(&record);
  }
  std::vector<std::optional<Record>> simulated(points.size());
  const std::string fabric = "sim:" + std::filesystem::absolute(profile).string();
  run_parallel(points.size(), jobs, [&](std::size_t i) {
    const std::string& benchmark = points[i].benchmark;
    simulated[i] = PointRunner(programs.binary(benchmark), programs.spec(benchmark),
                               RunTarget{.fabric = fabric, .roles = {}}, RoleLimits{}, stop)
                       .run(points[i]);
    if (!simulated[i]) throw InterruptedError("interrupted");
  });
  for (const std::optional<Record>& record : simulated) shown.push_back(&*record);
  replace_file(page, report_page(shown));
}

}  // namespace verbscope
