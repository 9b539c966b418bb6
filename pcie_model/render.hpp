// Predictions as JSON (for records and `verbscope predict`) and as text tables; the shape of an operation from the keys
// of records and sweeps.
#pragma once

#include <string>

#include "common/json.hpp"
#include "pcie_model/predict.hpp"

namespace verbscope {

// The keys contain their units. prediction_from_json is the inverse of to_json; it throws Error with `where` for a
// missing, ill-typed or unknown key.
Json to_json(const Prediction& prediction);
Prediction prediction_from_json(const Json& json, const std::string& where);
Json to_json(const WqePrediction& prediction);

// Several lines, each ended by a newline.
std::string format_table(const Prediction& prediction);
std::string format_table(const WqePrediction& prediction);

// Reads a shape from perftest-like keys: `verb` (default send), `connection` (RC, UC, UD), `size`, `header_only`,
// `inline_size` (the limit for inlined payloads, and the QP's capability), `immediate`, `post_list`, `signal_every`,
// `tx_depth`, `rx_depth`, `inline_recv` (the limit for inline receive), `srq`. Missing keys have the defaults of
// VerbShape. `size` is required unless header_only, and 8 for atomics. Ignores keys that do not describe the shape.
// Throws Error with `where`.
VerbShape shape_from_json(const Json& config, const std::string& where);
Json to_json(const VerbShape& shape);

}  // namespace verbscope
