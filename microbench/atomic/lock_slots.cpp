#include "microbench/atomic/lock_slots.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "common/error.hpp"

namespace verbscope {

namespace {

constexpr std::uint32_t kReferences = 3;  // measurements of each reference
constexpr std::uint32_t kSamePairs = 8;
constexpr std::uint32_t kRepeats = 3;  // measurements of a mask, each with another base
constexpr std::uint32_t kCheckedPairs = 128;
constexpr double kTwoSlotRatio = 2;     // rate of two slots over that of one
constexpr double kMinReadRatio = 1.8;   // READs over atomics on one slot; below, the path hides a second slot
constexpr double kMinSoloRatio = 0.8;   // one queue over two on one slot; below, one queue leaves the slot idle
constexpr double kConfidence95 = 1.96;  // standard deviations of a 95 % interval
constexpr std::uint64_t kHiddenSlots = std::uint64_t{1} << kLowestSlotBit;

// The lower end of Wilson's score interval for a share.
double wilson_lower_bound(std::uint32_t hits, std::uint32_t of) {
  if (of == 0) return 0;
  const double n = of, p = hits / n, z2 = kConfidence95 * kConfidence95;
  return std::max(0.0,
                  (p + z2 / (2 * n) - kConfidence95 * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n))) / (1 + z2 / n));
}

// The probability that a rate of this group is on the other side of the threshold, if rates are normally distributed.
double probability_beyond(const RunningMean& group, double threshold) {
  if (group.count() < 2 || group.deviation() <= 0) return 0;
  return std::erfc(std::abs(group.mean() - threshold) / group.deviation() / std::numbers::sqrt2) / 2;
}

}  // namespace

void RunningMean::add(double value) {
  const double before = value - mean_;
  mean_ += before / static_cast<double>(++count_);
  squares_ += before * (value - mean_);
}

double RunningMean::deviation() const {
  return count_ < 2 ? 0 : std::sqrt(squares_ / static_cast<double>(count_ - 1));
}

std::uint64_t MaskSpace::reduce(std::uint64_t mask) const {
  while (mask != 0) {
    const std::uint64_t vector = basis_[static_cast<std::size_t>(std::bit_width(mask)) - 1];
    if (vector == 0) return mask;
    mask ^= vector;
  }
  return 0;
}

void MaskSpace::add(std::uint64_t mask) {
  mask = reduce(mask);
  if (mask == 0) return;
  basis_[static_cast<std::size_t>(std::bit_width(mask)) - 1] = mask;
  ++dimension_;
}

std::uint64_t MaskSpace::combine(std::uint64_t choice) const {
  std::uint64_t sum = 0;
  for (const std::uint64_t vector : basis_) {
    if (vector == 0) continue;
    if ((choice & 1) != 0) sum ^= vector;
    choice >>= 1;
  }
  return sum;
}

SlotSurvey::SlotSurvey(std::uint32_t region_bits, std::uint64_t seed) : region_bits_(region_bits), random_(seed) {
  bits_.reserve(region_bits);
  folded_.reserve(region_bits * region_bits);
}

std::uint64_t SlotSurvey::all_bits() const {
  return (std::uint64_t{1} << region_bits_) - kHiddenSlots;
}

std::optional<SlotMeasurement> SlotSurvey::next() {
  using Kind = SlotMeasurement::Kind;
  if (stage_ == Stage::done) return std::nullopt;
  const std::uint64_t base = random_() & all_bits();
  switch (stage_) {
    case Stage::reads:
      return SlotMeasurement{Kind::reads, base, base};
    case Stage::solo:
      return SlotMeasurement{Kind::solo, base, base};
    case Stage::same:
      return SlotMeasurement{Kind::pair, base, base};
    case Stage::single_bits:
    case Stage::two_bits:
    case Stage::verify:
      return SlotMeasurement{Kind::pair, base, base ^ mask_};
    case Stage::done:
      break;
  }
  return std::nullopt;
}

void SlotSurvey::add_rate(double per_second) {
  switch (stage_) {
    case Stage::reads:
      reads_.add(per_second);
      if (++repeat_ == kReferences) begin(Stage::solo);
      break;
    case Stage::solo:
      solo_.add(per_second);
      if (++repeat_ == kReferences) begin(Stage::same);
      break;
    case Stage::same:
      same_.add(per_second);
      shared_.add(per_second);
      if (++repeat_ < kSamePairs) break;
      threshold_ = same_.mean() * std::sqrt(kTwoSlotRatio);
      begin(why_inconclusive().empty() ? Stage::single_bits : Stage::done);
      break;
    case Stage::single_bits:
    case Stage::two_bits:
      add_mask_rate(per_second);
      break;
    case Stage::verify:
      check_pair(per_second);
      break;
    case Stage::done:
      break;
  }
}

// Begins a stage, with its first mask if it has masks.
void SlotSurvey::begin(Stage stage) {
  stage_ = stage;
  repeat_ = 0;
  mask_rate_ = {};
  if (stage == Stage::single_bits) {
    mask_ = std::uint64_t{1} << bit_;
  } else if (stage == Stage::two_bits) {
    bit_ = other_ = 0;
    pick_two_bits();
  } else if (stage == Stage::verify) {
    pick_random_mask();
  }
}

void SlotSurvey::add_mask_rate(double per_second) {
  (per_second < threshold_ ? shared_ : apart_).add(per_second);
  mask_rate_.add(per_second);
  if (++repeat_ < kRepeats) return;
  conclude_mask(mask_rate_.mean() < threshold_);
  repeat_ = 0;
  mask_rate_ = {};
}

void SlotSurvey::conclude_mask(bool shares) {
  if (shares) same_slot_.add(mask_);
  if (stage_ == Stage::single_bits) {
    if (!shares) bits_.push_back(bit_);
    if (++bit_ < region_bits_) {
      mask_ = std::uint64_t{1} << bit_;
    } else {
      begin(Stage::two_bits);
    }
  } else {
    if (shares) folded_.push_back(mask_);
    pick_two_bits();
  }
}

// Chooses the next pair of slot bits to measure. Skips pairs that are known to cancel.
void SlotSurvey::pick_two_bits() {
  do {
    if (++other_ >= bits_.size()) {
      ++bit_;
      other_ = bit_ + 1;
    }
    if (other_ >= bits_.size()) return begin(Stage::verify);
    mask_ = std::uint64_t{1} << bits_[bit_] | std::uint64_t{1} << bits_[other_];
  } while (same_slot_.contains(mask_));
}

// Every second pair should share a slot, if there are such pairs; the others differ in random bits.
void SlotSurvey::pick_random_mask() {
  const bool sharing = pairs_ % 2 == 0 && same_slot_.dimension() > 0;
  do {
    mask_ = sharing ? same_slot_.combine(random_()) : random_() & all_bits();
  } while (mask_ == 0);
}

void SlotSurvey::check_pair(double per_second) {
  const bool shares = per_second < threshold_;
  (shares ? shared_ : apart_).add(per_second);
  if (shares == same_slot_.contains(mask_)) ++agreed_;
  if (++pairs_ == kCheckedPairs) {
    stage_ = Stage::done;
  } else {
    pick_random_mask();
  }
}

std::string SlotSurvey::why_inconclusive() const {
  if (same_.count() == 0 || same_.mean() <= 0) return "nothing was measured";
  const double reads = reads_.mean() / same_.mean(), solo = solo_.mean() / same_.mean();
  if (reads < kMinReadRatio) {
    return fmt::format(
        "READs on the same queues are {:.2f} times as fast as atomics on one address, so something other "
        "than a lock may be the limit",
        reads);
  }
  if (solo < kMinSoloRatio) {
    return fmt::format("one queue reaches {:.2f} of the rate of two on one address, so it does not keep a slot busy",
                       solo);
  }
  return "";
}

SlotFindings SlotSurvey::findings() const {
  SlotFindings found;
  found.inconclusive = stage_ == Stage::done ? why_inconclusive() : "the survey was not finished";
  found.solo_per_s = solo_.mean();
  found.reads_per_s = reads_.mean();
  found.shared = shared_;
  found.apart = apart_;
  if (!found.inconclusive.empty()) return found;
  found.bits = bits_;
  found.highest_examined = region_bits_ - 1;
  found.folded = folded_;
  found.distinguished = std::uint64_t{1} << (region_bits_ - kLowestSlotBit - same_slot_.dimension());
  found.low_bits_assumed = !bits_.empty() && bits_.front() == kLowestSlotBit;
  found.slots = found.distinguished * (found.low_bits_assumed ? kHiddenSlots : 1);
  found.pairs = pairs_;
  found.agreed = agreed_;
  found.mistaken = std::max(probability_beyond(shared_, threshold_), probability_beyond(apart_, threshold_));
  found.confidence = wilson_lower_bound(agreed_, pairs_) * (1 - found.mistaken);
  return found;
}

Json slots_json(const SlotFindings& f) {
  Json json{{"inconclusive", f.inconclusive.empty() ? Json() : Json(f.inconclusive)},
            {"one_address_solo_mops", f.solo_per_s * 1e-6},
            {"reads_mops", f.reads_per_s * 1e-6},
            {"same_slot_mops", f.shared.mean() * 1e-6},
            {"same_slot_deviation_mops", f.shared.deviation() * 1e-6},
            {"same_slot_measurements", f.shared.count()},
            {"other_slot_mops", f.apart.count() == 0 ? Json() : Json(f.apart.mean() * 1e-6)},
            {"other_slot_deviation_mops", f.apart.deviation() * 1e-6},
            {"other_slot_measurements", f.apart.count()}};
  if (!f.inconclusive.empty()) return json;
  Json folded = Json::array();
  for (const std::uint64_t mask : f.folded) {
    folded.push_back(Json::array({std::countr_zero(mask), std::bit_width(mask) - 1}));
  }
  json.update(Json{{"address_bits", f.bits},
                   {"highest_bit_examined", f.highest_examined},
                   {"folded_bits", folded},
                   {"slots_told_apart", f.distinguished},
                   {"slots", f.slots},
                   {"bits_0_to_2_taken_as_used", f.low_bits_assumed},
                   {"checked_pairs", f.pairs},
                   {"checked_pairs_agreed", f.agreed},
                   {"measurement_mistaken", f.mistaken},
                   {"confidence", f.confidence}});
  return json;
}

std::string slots_text(const Json& f) {
  std::string text = fmt::format("  lock slots: {:.3f} Mops on one address", f.value("same_slot_mops", 0.0));
  if (f.at("other_slot_mops").is_number()) {
    text += fmt::format(", {:.3f} Mops on two addresses with different slots", f.value("other_slot_mops", 0.0));
  }
  if (f.at("inconclusive").is_string())
    return text + fmt::format("\n  inconclusive: {}\n", f.value("inconclusive", ""));
  const auto bits = f.at("address_bits").get<std::vector<std::uint32_t>>();
  if (bits.empty()) {
    text += "\n  no address bit chooses the slot: 1 slot";
  } else {
    const bool whole = bits.back() - bits.front() + 1 == bits.size();
    text += fmt::format("\n  address bits {} distinguish {} slots",
                        whole ? fmt::format("{} to {}", bits.front(), bits.back()) : f.at("address_bits").dump(),
                        f.value("slots_told_apart", 1ull));
    if (!f.at("folded_bits").empty()) text += fmt::format(", combined in pairs {}", f.at("folded_bits").dump());
    if (f.value("bits_0_to_2_taken_as_used", false)) {
      text += fmt::format("; {} slots if bits 0 to 2 choose too, which aligned atomics cannot show",
                          f.value("slots", 1ull));
    }
  }
  const auto highest = f.value("highest_bit_examined", 0u);
  const bool more = !bits.empty() && bits.back() == highest;  // the range may be longer
  return text + fmt::format("\n  bits above {} were not examined{}\n  {} of {} random pairs agree; confidence {:.3f}\n",
                            highest, more ? ", so there may be more slots" : "", f.value("checked_pairs_agreed", 0u),
                            f.value("checked_pairs", 0u), f.value("confidence", 0.0));
}

}  // namespace verbscope
