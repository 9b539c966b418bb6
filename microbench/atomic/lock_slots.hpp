// Infers how a NIC's atomic unit maps addresses to lock slots, from the rates of atomics on pairs of addresses. Two
// addresses that share a slot reach one operation per PCIe round trip together; two that do not reach twice that (Kalia
// et al., ATC 2016, section 5.4). The survey chooses each measurement and receives its rate; it uses no device itself.
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
struct SlotMeasurement {
  enum class Kind : std::uint8_t {
    reads,  // READs of 8 bytes on both queues: the rate of the path without locks
    solo,   // atomics on `first`, on one queue
    pair    // atomics on `first` on one queue and on `second` on the other
  };
  Kind kind = Kind::pair;
  std::uint64_t first = 0;  // offset in the region, which is aligned to its size, in bytes
  std::uint64_t second = 0;
};

// Mean and variance of a stream of numbers (Welford's algorithm).
class RunningMean {
 public:
  void add(double value);
  std::uint64_t count() const { return count_; }
  double mean() const { return mean_; }
  double deviation() const;  // of the sample; 0 for fewer than two numbers

 private:
  std::uint64_t count_ = 0;
  double mean_ = 0, squares_ = 0;
};

// A vector space of address masks over GF(2): the sum of two masks is their exclusive or.
class MaskSpace {
 public:
  void add(std::uint64_t mask);
  bool contains(std::uint64_t mask) const { return reduce(mask) == 0; }
  std::uint32_t dimension() const { return dimension_; }
  // The sum of the basis vectors that the bits of `choice` select.
  std::uint64_t combine(std::uint64_t choice) const;

 private:
  std::uint64_t reduce(std::uint64_t mask) const;

  std::array<std::uint64_t, 64> basis_{};  // by the highest bit of the vector
  std::uint32_t dimension_ = 0;
};

struct SlotFindings {
  std::string inconclusive;                // why there is no result; empty: there is one
  std::vector<std::uint32_t> bits;         // address bits that choose the slot, ascending
  std::vector<std::uint64_t> folded;       // masks of two such bits that cancel: the NIC combines them
  std::uint32_t highest_examined = 0;      // address bit
  std::uint64_t distinguished = 1;         // slots that the observed bits distinguish
  std::uint64_t slots = 1;                 // inferred slots of the NIC
  bool low_bits_assumed = false;           // `slots` assumes that bits 0 to 2, which cannot be observed, choose too
  std::uint32_t pairs = 0, agreed = 0;     // random pairs that check the result; those that agree with it
  RunningMean shared, apart;               // rates of pairs that share a slot and of those that do not, per second
  double solo_per_s = 0, reads_per_s = 0;  // reference rates
  double mistaken = 0;                     // probability that one measurement is classified wrongly
  double confidence = 0;                   // 0 to 1; see docs/benchmarks.md
};

class SlotSurvey {
 public:
  // The region has 2^region_bits bytes; bits up to region_bits - 1 are surveyed.
  SlotSurvey(std::uint32_t region_bits, std::uint64_t seed);

  // The next measurement; nothing if the survey is complete.
  std::optional<SlotMeasurement> next();
  // Adds the rate of the measurement that next() returned.
  void add_rate(double per_second);

  SlotFindings findings() const;

 private:
  enum class Stage : std::uint8_t { reads, solo, same, single_bits, two_bits, verify, done };

  void add_mask_rate(double per_second);
  void conclude_mask(bool shares);
  void check_pair(double per_second);
  void begin(Stage stage);
  void pick_two_bits();
  void pick_random_mask();
  std::uint64_t all_bits() const;  // the mask of all surveyed bits
  // Why the reference rates cannot show slots; empty: they can.
  std::string why_inconclusive() const;

  std::uint32_t region_bits_;
  std::mt19937_64 random_;
  Stage stage_ = Stage::reads;
  std::uint32_t repeat_ = 0;                        // measurements in this stage, or of this mask
  std::uint32_t bit_ = kLowestSlotBit, other_ = 0;  // single_bits: the bit; two_bits: indices into bits_
  std::uint64_t mask_ = 0;
  RunningMean mask_rate_;
  double threshold_ = 0;  // rates below it: the pair shares a slot, per second
  RunningMean reads_, solo_, same_, shared_, apart_;
  std::vector<std::uint32_t> bits_;
  std::vector<std::uint64_t> folded_;
  MaskSpace same_slot_;  // masks of address pairs with the same slot
  std::uint32_t pairs_ = 0, agreed_ = 0;
};

// The findings for the record.
Json slots_json(const SlotFindings& findings);
// A few lines for the console; `findings` as from slots_json.
std::string slots_text(const Json& findings);

}  // namespace verbscope
