// The verbs objects of a program, as libibverbs lays them out. `handle` of each is the simulator's number of it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

#include "simulate/preload/session.hpp"

namespace verbscope::simulate {

struct Context : verbs_context {
  std::uint32_t handle = 0;
};

inline Context& own(ibv_context* context) {
  auto* const first = reinterpret_cast<char*>(context) - offsetof(verbs_context, context);
  return *static_cast<Context*>(reinterpret_cast<verbs_context*>(first));
}

struct CompChannel : ibv_comp_channel {
  std::uint32_t handle = 0;
};

struct Cq : ibv_cq_ex {
  Cq() : ibv_cq_ex{} {}
  ExtendedCompletion current{};  // between start_poll and end_poll
};

inline ibv_cq* verbs(Cq& cq) {
  return ibv_cq_ex_to_cq(&cq);
}
inline Cq& own(ibv_cq_ex* cq) {
  return *static_cast<Cq*>(cq);
}
inline Cq& own(ibv_cq* cq) {
  return own(reinterpret_cast<ibv_cq_ex*>(cq));
}

// The device "sim0" of this node.
ibv_device& device();
// Fills the tables of a context through which libibverbs' inline calls reach the simulator.
void set_tables(Context& context);
void set_poll_functions(Cq& cq, std::uint64_t fields);
void set_data_path(ibv_context_ops& ops);

inline std::uint32_t handle_of(const auto* object) {
  return object == nullptr ? 0 : object->handle;
}

// An object that the simulator has made, or null and errno.
template <class Object>
Object* made(Object* object, int error) {
  if (error == 0) return object;
  delete object;
  errno = error;
  return nullptr;
}

// Null and errno, after the object that would have been returned is deleted.
template <class Result>
Result* refused(auto* object, int error) {
  delete object;
  errno = error;
  return nullptr;
}

// Destroys an object in the simulator and, if that succeeds, here.
template <class Object>
int destroyed(Operation operation, Object* object) {
  const int error = ask(operation, object->handle);
  if (error == 0) delete object;
  return error;
}

}  // namespace verbscope::simulate
