// Arguments and results of operations on the control path.
#pragma once

#include <cerrno>

#include "nic_sim/nic/objects.hpp"
#include "simulate/server/calls.hpp"

namespace verbscope::simulate {

// The next argument as an object of this kind; null if the program has none of this number.
template <class Object>
Object* object(const Call& call, Kind kind) {
  return call.process.find<Object>(kind, call.in.get<std::uint32_t>());
}

// Tells the number of a new object, or the errno with which it was refused.
template <class Object>
int tell(const Call& call, Kind kind, Object* made) {
  if (made == nullptr) return errno;
  call.out.put(call.process.add(kind, made));
  return 0;
}

// Destroys the object whose number is the next argument.
template <class Object>
int destroy(const Call& call, Kind kind, int (sim::SimProvider::*function)(Object*)) {
  const auto handle = call.in.get<std::uint32_t>();
  auto* const found = call.process.find<Object>(kind, handle);
  if (found == nullptr) return EINVAL;
  const int error = (call.process.provider().*function)(found);
  if (error == 0) call.process.remove(handle);
  return error;
}

// Parts of execute_control(): queues and their events; QPs and address handles. ENOSYS: the operation is none of them.
int execute_queues(Operation operation, const Call& call);
int execute_qps(Operation operation, const Call& call);

}  // namespace verbscope::simulate
