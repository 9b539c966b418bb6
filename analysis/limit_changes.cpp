#include "analysis/limit_changes.hpp"

#include "analysis/explain.hpp"
#include "analysis/loads.hpp"

namespace verbscope {
namespace {

// A result below this share of the one before has fallen.
constexpr double kFallen = 0.95;

}  // namespace

std::vector<LimitChange> limit_changes(const std::vector<PointAlong>& points) {
  std::vector<LimitChange> changes;
  std::string limit;
  const PointAlong* before = nullptr;
  for (const PointAlong& point : points) {
    const double reread = wqes_reread_per_op(*point.record);
    const bool begins_to_reread = before != nullptr && reread > kRereadCounts &&
                                  wqes_reread_per_op(*before->record) <= kRereadCounts && point.y < kFallen * before->y;
    const std::string own = explain(*point.record).limit_words();
    if (begins_to_reread) {
      changes.push_back({point.x, point.y, fmt::format("WQE cache ({:.2g} lines read again per op)", reread)});
    } else if (!own.empty() && !limit.empty() && own != limit) {
      changes.push_back({point.x, point.y, own});
    }
    if (!own.empty()) limit = own;
    before = &point;
  }
  return changes;
}

}  // namespace verbscope
