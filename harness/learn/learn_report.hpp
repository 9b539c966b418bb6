// A page that shows the measured points beside those that the learned profile simulates.
#pragma once

#include <filesystem>
#include <vector>

#include "common/record.hpp"
#include "harness/learn/learner.hpp"

namespace verbscope {

// Simulates the points of the records on the profile, and writes the page of `verbscope report` with both. Throws
// UsageError if the page cannot be written there, InterruptedError at the stop.
void write_learn_report(const std::filesystem::path& page, const std::vector<Record>& measured,
                        const std::filesystem::path& profile, LearnPrograms& programs, std::size_t jobs,
                        StopSource* stop);

}  // namespace verbscope
