// A key-value store whose clients keep values and have them confirmed, as a store of kv_rate (after Kalia et al., ATC
// 2016, section 5.2.2): requests and responses by UD SEND, MICA's cache at the server.
#pragma once

#include <memory>

#include "systems/store/store.hpp"

namespace verbscope {

std::unique_ptr<Store> make_cached_store();

}  // namespace verbscope
