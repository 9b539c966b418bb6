// With --verify: the call that the counted ibv_post_send goes on to, which has the provider post and then looks at the
// WQEs that it wrote. Nothing of it is on the way of a post without --verify.
#pragma once

#include "drivers_patch/process.hpp"

namespace verbscope::driver {

// The WQEs of a context are to be looked at, where its adapter is of a family that has queue memory. Held:
// process.control.
void verify_context(WrappedContext& context);

}  // namespace verbscope::driver
