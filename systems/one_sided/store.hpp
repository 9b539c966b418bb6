// Stores whose clients GET by READ and PUT by a message to the server's CPU: after Pilaf, and after FaRM's key-value
// store with values in the slots or apart. --emulate: only their communication, as Kalia et al. (SIGCOMM 2014, section
// 5.1) emulate them.
#pragma once

#include <memory>

#include "systems/store/options.hpp"
#include "systems/store/store.hpp"

namespace verbscope {

// `options.store` is pilaf, farm or farm_var.
std::unique_ptr<Store> make_one_sided_store(StoreOptions& options, const OptionTable& table);

}  // namespace verbscope
