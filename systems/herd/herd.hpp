// HERD, a key-value cache (Kalia, Kaminsky and Andersen, SIGCOMM 2014; Kalia et al., ATC 2016, section 4.3.1), as a
// store of kv_rate: requests by UC WRITE, or by SEND, responses by UD SEND, MICA's cache at the server.
#pragma once

#include <memory>

#include "systems/store/store.hpp"

namespace verbscope {

std::unique_ptr<Store> make_herd_store();

}  // namespace verbscope
