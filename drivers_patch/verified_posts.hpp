// --verify for ibv_post_send: a call between the counting call and the provider's, which checks the WQEs after the
// provider wrote them. Posts without --verify do not pass through it.
#pragma once

#include "drivers_patch/process.hpp"

namespace verbscope::driver {

// Enables checks of a context's WQEs, if its adapter's queue memory can be read. The caller holds process.control.
void verify_context(WrappedContext& context);

}  // namespace verbscope::driver
