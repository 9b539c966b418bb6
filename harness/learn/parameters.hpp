// The parameters of a profile that a fit may change: their ranges, the scale of the fit, and the operations whose
// figures they can change. One table for `verbscope learn` and for tools/calibrate.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/json.hpp"

namespace verbscope {

// Properties of an operation. A parameter that needs one of them does not change the figures of other operations.
enum Property : std::uint32_t {
  kAnyOperation = 0,
  kReliable = 1U << 0,  // RC: acknowledgements or responses
  kRead = 1U << 1,      // READ
  kAtomic = 1U << 2,    // atomics
  kRecv = 1U << 3,      // RECVs
  kGather = 1U << 4,    // payload that the adapter reads by DMA
  kLarge = 1U << 5,     // more than a cache line of payload
  kPackets = 1U << 6,   // more than one packet per message
  kManyQps = 1U << 7,   // more than a few QPs
  kDeep = 1U << 8,      // hundreds of outstanding operations
  kThreads = 1U << 9,   // several threads: they may share QPs, or doorbell registers
  kOverlap = 1U << 10,  // more than one operation outstanding
};

inline constexpr std::uint32_t kAllProperties = ~std::uint32_t{0};

// Parameters that usually limit together. If moving a whole group changes a figure by nothing, none of them does.
enum class ParameterGroup : std::uint8_t { cpu, path, pcie, requester, responder, caches, port };
inline constexpr std::size_t kParameterGroups = 7;

struct LearnableParameter {
  std::string_view name;  // "nic.handle_ack_ns"
  std::string_view what;
  ParameterGroup group;
  double low, high;  // the values that a fit tries
  // The fit is linear in log(value + offset). 0 for parameters that are never 0. Large for one time of several whose
  // sum is what a figure follows.
  double offset = 0;
  bool integer = false;
  std::uint32_t needs = kAnyOperation;  // all of these properties
};

// Every parameter that `verbscope learn` may change.
std::span<const LearnableParameter> learnable_parameters();

// A parameter of a fit. Values are in the unit of the profile.
struct FitParameter {
  std::string name;  // "section.key"
  double start = 0;
  double low = 0, high = 0;
  double offset = 0;
  double scale = 1;  // of the coordinate: near a start that is not short, it differs as the logarithm of the value does
  bool integer = false;
  std::uint32_t needs = kAnyOperation;
  ParameterGroup group = ParameterGroup::cpu;
};

// False if the parameter does not change figures of operations with these properties.
bool may_change(const FitParameter& parameter, std::uint32_t properties);

// True for times and gaps, which slow a machine down as they grow; false for numbers, sizes and shares.
bool slows_when_larger(const FitParameter& parameter);

// True for the number of units of the requester or the responder.
bool counts_units(const FitParameter& parameter);

// True for the share of a link or the port that is left to packets.
bool is_share(const FitParameter& parameter);

// The parameter's coordinate in the fit, and the inverse, within the range and beyond it.
double coordinate(const FitParameter& parameter, double value);
double value_at_coordinate(const FitParameter& parameter, double x);
double unbounded_value_at(const FitParameter& parameter, double x);

// The learnable parameters that the profile has and does not switch off, which start at the profile's values.
std::vector<FitParameter> parameters_to_learn(const Json& profile);

// The value as stored in a profile: a whole number, or five significant digits.
double rounded_value(const FitParameter& parameter, double value);

// The profile with these values, rounded. Precondition: one value per parameter, and the profile has all parameters.
Json with_values(Json profile, const std::vector<FitParameter>& parameters, const std::vector<double>& values);

}  // namespace verbscope
