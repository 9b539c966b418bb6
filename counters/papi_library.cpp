#include "common/error.hpp"
#include "counters/papi_source.hpp"

#ifdef VERBSCOPE_PAPI
#include <dlfcn.h>
#include <papi.h>
#include <pthread.h>
#endif

namespace verbscope {

namespace {

#ifdef VERBSCOPE_PAPI

std::string papi_file() {
  return fmt::format("libpapi.so.{}.{}", PAPI_VERSION_MAJOR(PAPI_VERSION), PAPI_VERSION_MINOR(PAPI_VERSION));
}

// A function of libpapi. The library is opened at the first call: libpfm, which comes with it, doubles the time in
// which a program begins. Throws Error if it cannot be opened.
template <class Function>
Function* find_papi(const char* name) {
  static void* const library = dlopen(papi_file().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail("{} cannot be opened: install PAPI's library", papi_file());
  void* const found = dlsym(library, name);
  if (found == nullptr) fail("{} has no {}", papi_file(), name);
  return reinterpret_cast<Function*>(found);
}
#define PAPI(name) (find_papi<decltype(PAPI_##name)>("PAPI_" #name))

void check_papi(const std::string& what, int result) {
  if (result < 0) fail("{}: {}", what, PAPI(strerror)(result));
}

class RealPapi final : public PapiLibrary {
 public:
  RealPapi() = default;
  RealPapi(const RealPapi&) = delete;
  RealPapi& operator=(const RealPapi&) = delete;
  ~RealPapi() override {
    if (ready_) PAPI(shutdown)();
  }

  int open(const std::string& component, std::optional<int> thread, bool multiplexed) override {
    initialise();
    const int index = PAPI(get_component_index)(component.c_str());
    check_papi(component, index);
    const PAPI_component_info_t* info = PAPI(get_component_info)(index);
    if (info != nullptr && info->disabled != 0) fail("{}: {}", component, info->disabled_reason);
    int set = PAPI_NULL;
    check_papi("PAPI_create_eventset", PAPI(create_eventset)(&set));
    try {
      check_papi("PAPI_assign_eventset_component", PAPI(assign_eventset_component)(set, index));
      if (thread) check_papi("PAPI_attach", PAPI(attach)(set, static_cast<unsigned long>(*thread)));
      if (multiplexed) check_papi("PAPI_set_multiplex", PAPI(set_multiplex)(set));
    } catch (const Error&) {
      close(set);
      throw;
    }
    return set;
  }

  PapiAdd add(int set, const std::string& event, std::string& reason) override {
    const int result = PAPI(add_named_event)(set, event.c_str());
    if (result == PAPI_OK) return PapiAdd::added;
    reason = fmt::format("{}: {}", event, PAPI(strerror)(result));
    return result == PAPI_ECNFLCT || result == PAPI_ECOUNT ? PapiAdd::no_room : PapiAdd::absent;
  }

  void start(int set) override { check_papi("PAPI_start", PAPI(start)(set)); }

  std::vector<long long> read(int set) override {
    std::vector<long long> values(static_cast<std::size_t>(PAPI(num_events)(set)));
    check_papi("PAPI_read", PAPI(read)(set, values.data()));
    return values;
  }

  void close(int set) noexcept override {
    PAPI(stop)(set, nullptr);
    PAPI(cleanup_eventset)(set);
    PAPI(destroy_eventset)(&set);
  }

  void forget_thread() noexcept override {
    if (ready_) PAPI(unregister_thread)();
  }

 private:
  void initialise() {
    if (ready_) return;
    const int version = PAPI(library_init)(PAPI_VER_CURRENT);
    if (version != PAPI_VER_CURRENT && version > 0)
      fail("PAPI: this program was built for another version than the installed library");
    check_papi("PAPI_library_init", version);
    ready_ = true;
    check_papi("PAPI_thread_init", PAPI(thread_init)(pthread_self));
    check_papi("PAPI_multiplex_init", PAPI(multiplex_init)());
  }

  bool ready_ = false;
};

#else

class RealPapi final : public PapiLibrary {
 public:
  int open(const std::string&, std::optional<int>, bool) override { refuse(); }
  PapiAdd add(int, const std::string&, std::string&) override { refuse(); }
  void start(int) override { refuse(); }
  std::vector<long long> read(int) override { refuse(); }
  void close(int) noexcept override {}
  void forget_thread() noexcept override {}

 private:
  [[noreturn]] static void refuse() { fail("this verbscope was built without PAPI"); }
};

#endif

}  // namespace

PapiLibrary& papi_library() {
  static RealPapi library;
  return library;
}

}  // namespace verbscope
