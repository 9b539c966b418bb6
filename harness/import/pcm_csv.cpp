#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "harness/import/tool_output.hpp"

namespace verbscope {

PcmCsv::PcmCsv(std::string tool, std::unique_ptr<ToolFormat> format, double interval_s)
    : tool_(std::move(tool)), format_(std::move(format)), interval_s_(interval_s) {}

bool PcmCsv::read_line(std::string_view line, std::vector<Imported>& out) {
  // Printed on standard error, which users often redirect to the same file.
  constexpr std::string_view kUpdate = "Update every ";
  if (line.starts_with(kUpdate)) {
    const double printed = std::strtod(std::string(line.substr(kUpdate.size())).c_str(), nullptr);
    if (printed > 0 && printed < 1e6) interval_s_ = printed;
    return true;
  }
  const Fields fields = split_fields(line);
  Sums row;
  switch (format_->take(fields, row)) {
    case LineKind::header:
      finish(out);
      ++interval_;
      return true;
    case LineKind::row:
      for (const auto& [name, value] : row) damaged_ |= !add_count(sums_, name, value);
      return true;
    case LineKind::damaged:
      damaged_ = true;
      return false;
    case LineKind::text:
      return false;
  }
  return false;
}

void PcmCsv::finish(std::vector<Imported>& out) {
  const Sums sums = std::exchange(sums_, {});
  if (std::exchange(damaged_, false) || sums.empty()) return;
  const double seconds = format_->counted_s(static_cast<std::uint32_t>(std::lround(interval_s_ * 1000)), false);
  if (!(seconds > 0)) return;
  Counted counted{.window_s = interval_s_, .raw = {}, .background_s = 0, .background_per_s = {}};
  for (const auto& [name, sum] : sums) counted.raw[name] = static_cast<double>(sum) / seconds * interval_s_;
  Imported imported{.record = {}, .tool = tool_};
  Record& record = imported.record;
  record.benchmark = tool_;
  std::ranges::replace(record.benchmark, '-', '_');
  record.status = RecordStatus::imported;
  record.config = Json{{"interval", interval_}, {"interval_s", interval_s_}};
  CounterReport report = make_report(tool_, format_->blind(), counted, format_->rules());
  report.node = "server";
  PcieCounts::each(report.events, [&](const char* name, std::uint64_t value) {
    if (report.sees(name)) record.result[std::string(name) + "_per_s"] = static_cast<double>(value) / interval_s_;
  });
  record.counters.push_back(std::move(report));
  out.push_back(std::move(imported));
}

}  // namespace verbscope
