// How a NIC's atomic unit maps addresses to lock slots, inferred from the rates of pairs of addresses: two that share a
// slot run at one operation per PCIe round trip together, two that do not at twice that (Kalia et al., ATC 2016,
// section 5.4). The survey says what to measure next and is told the rate; it knows no device.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "common/json.hpp"

namespace verbscope {

inline constexpr std::uint32_t kLowestSlotBit = 3;  // atomics are 8-byte aligned: lower address bits are always 0

// One measurement of the survey: a rate of operations per second, summed over the queues that take part.
struct SlotQuestion {
  enum class Kind : std::uint8_t {
    reads,  // READs of 8 bytes on both queues: what the path can do without locks
    solo,   // atomics on `first`, on one queue
    pair    // atomics on `first` on one queue and on `second` on the other
  };
  Kind kind = Kind::pair;
  std::uint64_t first = 0;  // bytes from the region's first, which is aligned to the region's size
  std::uint64_t second = 0;
};

// Mean and variance of a stream of numbers (Welford's algorithm).
class RunningMean {
 public:
  void add(double value);
  std::uint64_t count() const { return count_; }
  double mean() const { return mean_; }
  double deviation() const;  // the standard deviation of the sample; 0 of fewer than two numbers

 private:
  std::uint64_t count_ = 0;
  double mean_ = 0, squares_ = 0;
};

// A subspace of the address masks: masks are vectors of bits, and their sum is exclusive or.
class MaskSpace {
 public:
  void add(std::uint64_t mask);
  bool contains(std::uint64_t mask) const { return reduce(mask) == 0; }
  std::uint32_t dimension() const { return dimension_; }
  // The sum of the basis vectors that `choice` has bits for.
  std::uint64_t combine(std::uint64_t choice) const;

 private:
  std::uint64_t reduce(std::uint64_t mask) const;

  std::array<std::uint64_t, 64> basis_{};  // each vector stands at its highest bit
  std::uint32_t dimension_ = 0;
};

struct SlotFindings {
  std::string inconclusive;                // why nothing can be said; empty: something can
  std::vector<std::uint32_t> bits;         // address bits that choose the slot, ascending
  std::vector<std::uint64_t> folded;       // masks of two such bits that cancel: the NIC combines them
  std::uint32_t highest_examined = 0;      // address bit
  std::uint64_t told_apart = 1;            // slots that the observed bits tell apart
  std::uint64_t slots = 1;                 // slots that the NIC is taken to have
  bool low_bits_taken = false;             // slots counts bits 0 to 2 too, which cannot be observed
  std::uint32_t pairs = 0, agreed = 0;     // random pairs that checked the inference; those that behaved as inferred
  RunningMean shared, apart;               // rates of the pairs taken to share a slot, and not to, per second
  double solo_per_s = 0, reads_per_s = 0;  // the references
  double mistaken = 0;                     // probability that one measurement is taken for the other mode
  double confidence = 0;                   // 0 to 1; see docs/benchmarks.md
};

class SlotSurvey {
 public:
  // The region has 2^region_bits bytes; bits up to region_bits - 1 are surveyed.
  SlotSurvey(std::uint32_t region_bits, std::uint64_t seed);

  // The next thing to measure; nothing when the survey is complete.
  std::optional<SlotQuestion> next();
  // The answer to the question that next() gave.
  void answer(double per_second);

  SlotFindings findings() const;

 private:
  enum class Stage : std::uint8_t { reads, solo, same, single_bits, two_bits, verify, done };

  void answer_mask(double per_second);
  void conclude_mask(bool shares);
  void check_inference(double per_second);
  void begin(Stage stage);
  void pick_two_bits();
  void pick_random_mask();
  std::uint64_t span() const;  // every bit that is surveyed
  // Why the answers so far cannot show slots; empty: they can.
  std::string obstacle() const;

  std::uint32_t region_bits_;
  std::mt19937_64 random_;
  Stage stage_ = Stage::reads;
  std::uint32_t repeat_ = 0;                        // how often the question of this stage has been answered
  std::uint32_t bit_ = kLowestSlotBit, other_ = 0;  // single_bits: the bit; two_bits: indices into bits_
  std::uint64_t mask_ = 0;
  RunningMean mask_rate_;
  double threshold_ = 0;  // between the modes, per second
  RunningMean reads_, solo_, same_, shared_, apart_;
  std::vector<std::uint32_t> bits_;
  std::vector<std::uint64_t> folded_;
  MaskSpace same_slot_;  // masks that lead to the same slot
  std::uint32_t pairs_ = 0, agreed_ = 0;
};

// The findings for the record; keys carry units.
Json slots_json(const SlotFindings& findings);
// A few lines for the console, of what slots_json made.
std::string slots_text(const Json& findings);

}  // namespace verbscope
