// The verbs objects of a program, as libibverbs lays them out. `handle` of each is the simulator's number of it.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "simulate/preload/session.hpp"
#include "verbs/request_builder.hpp"

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

// `got`: events that the program has taken; it acknowledges them in libibverbs' members.
struct Cq : ibv_cq_ex {
  Cq() : ibv_cq_ex{} {}
  ExtendedCompletion current{};  // between start_poll and end_poll
  std::atomic<std::uint32_t> got = 0;
  std::atomic<std::uint32_t> async_got = 0;
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

struct Srq : ibv_srq {
  std::uint32_t number = 0;
  std::atomic<std::uint32_t> got = 0;
};

inline Srq& own(ibv_srq* srq) {
  return *static_cast<Srq*>(srq);
}

struct Xrcd : ibv_xrcd {
  std::uint32_t handle = 0;
};

// The program's ibv_qp is `qp_base`.
struct Qp : RequestBuilder {
  bool builds = false;  // made for ibv_wr_*
  std::atomic<std::uint32_t> got = 0;
};

inline Qp& own(ibv_qp* qp) {
  return *static_cast<Qp*>(reinterpret_cast<ibv_qp_ex*>(qp));
}

// The device "sim0" of this node.
ibv_device& device();

// Fill the tables of a context, through which libibverbs' inline calls reach the simulator.
void set_device_calls(Context& context);
void set_domain_calls(Context& context);
void set_queue_calls(Context& context);
void set_qp_calls(Context& context);
void set_data_path(ibv_context_ops& ops);
void set_poll_functions(Cq& cq, std::uint64_t fields);

// Posts the whole list or, on an error, nothing.
int post_send_all(ibv_qp* qp, ibv_send_wr* list);

// Waits until the program has acknowledged all events of an object that it `got`, before the object is deleted.
void await_acknowledged(const std::uint32_t& completed, const std::atomic<std::uint32_t>& got);

void prepare_waits(auto& object) {
  pthread_mutex_init(&object.mutex, nullptr);
  pthread_cond_init(&object.cond, nullptr);
}

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

// Asks the simulator for an object that it numbers. `results`: members of the object that follow its number in the
// answer. Returns the object, or null and errno.
template <auto... results, class Object, class... Arguments>
Object* create(Operation operation, Object* object, const Arguments&... arguments) {
  Request request(operation);
  (request.put(arguments), ...);
  const int error = request.ask();
  object->handle = request.get<std::uint32_t>();
  ((object->*results = request.get<std::uint32_t>()), ...);
  return made(object, error);
}

// Null and errno, after the object that would have been returned is deleted.
template <class Result>
Result* refused(auto* object, int error) {
  delete object;
  errno = error;
  return nullptr;
}

// The result of a failed call that returns an object.
inline std::nullptr_t no_object(int error) {
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
