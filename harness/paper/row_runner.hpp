// Runs what reproduces a published row, and reads its figure.
#pragma once

#include <filesystem>
#include <string>

#include "analysis/published.hpp"
#include "common/record.hpp"
#include "harness/point/point_runner.hpp"

namespace verbscope {

// Runs the row's benchmark, from `folder`, with the row's options on `fabric` ("sim:NAME" or "sim:PROFILE.json").
// Nothing when interrupted. The row has a benchmark.
std::optional<Record> run_row(const PublishedPoint& row, const std::string& fabric, const std::filesystem::path& folder,
                              Interrupt* interrupt);

// The figure in the record of a row, in the row's unit. Throws Error with the row's name and the reason when the run
// failed or the record does not have the figure.
double row_value(const PublishedPoint& row, const Record& record);

// The figure of a row that the closed-form model reproduces, for the row's cluster as it ships. Throws like row_value.
double model_value(const PublishedPoint& row);

}  // namespace verbscope
