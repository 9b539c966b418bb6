// Predictions as JSON (for records and for `verbscope predict`) and as tables for a person, and the shape of an
// operation from the keys that records and sweeps use.
#pragma once

#include <string>

#include "common/json.hpp"
#include "pcie_model/predict.hpp"

namespace verbscope {

// Keys carry units. prediction_from_json is the inverse of to_json; it throws Error with `where` on anything missing,
// ill-typed or unknown.
Json to_json(const Prediction& prediction);
Prediction prediction_from_json(const Json& json, const std::string& where);
Json to_json(const WqePrediction& prediction);

// Several lines, each ended by a newline.
std::string format_table(const Prediction& prediction);
std::string format_table(const WqePrediction& prediction);

// The shape behind perftest-like keys: `verb` (send), `connection` (RC, UC, UD), `size`, `header_only`, `inline_size`
// (payloads up to it are inlined; it is also the QP's capability), `immediate`, `post_list`, `signal_every`,
// `tx_depth`, `rx_depth`, `inline_recv` (payloads up to it arrive inline), `srq`. Absent keys have the defaults
// of VerbShape; `size` must be there unless header_only, and is 8 for atomics. Keys that say nothing of the shape are
// ignored. Throws Error with `where`.
VerbShape shape_from_json(const Json& config, const std::string& where);
Json to_json(const VerbShape& shape);

}  // namespace verbscope
