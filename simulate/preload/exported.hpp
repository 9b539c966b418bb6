// Functions that the preloaded library defines in place of libibverbs'.
#pragma once

#include <infiniband/verbs.h>

#include "simulate/preload/real.hpp"

// verbs.h wraps them.
#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#undef ibv_query_port
#undef ibv_get_device_list
