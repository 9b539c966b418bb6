// The commands of `verbscope` that read records: each adds its options to a subcommand and yields what runs it.
#pragma once

#include "common/cli.hpp"

namespace verbscope {

std::function<int()> add_compare_command(CLI::App& command);
std::function<int()> add_explain_command(CLI::App& command);
std::function<int()> add_diff_command(CLI::App& command);
std::function<int()> add_report_command(CLI::App& command);
std::function<int()> add_plot_command(CLI::App& command);
std::function<int()> add_export_command(CLI::App& command);

}  // namespace verbscope
