// A program of verbs for the tests of whole processes: `victim SCENE`. Each scene posts known numbers of requests, and
// ends as programs end, well or not.
#include <dirent.h>
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <malloc.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

#ifdef VICTIM_BY_DLOPEN
// Finds every function by dlsym(), like programs that work with and without RDMA.
void* library() {
  static void* const opened = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) std::exit(99);
  return opened;
}
#define CALL(name) reinterpret_cast<decltype(&::name)>(dlsym(library(), #name))
#else
#define CALL(name) (&::name)
#endif

#ifdef VICTIM_OF_OLD
extern "C" ibv_context* open_device_of_old(ibv_device* device);
asm(".symver open_device_of_old, ibv_open_device@IBVERBS_1.0");
#endif

struct Verbs {
  Verbs() {
    ibv_device** const devices = CALL(ibv_get_device_list)(nullptr);
#ifdef VICTIM_OF_OLD
    context = open_device_of_old(devices[0]);
#else
    context = CALL(ibv_open_device)(devices[0]);
#endif
    pd = CALL(ibv_alloc_pd)(context);
    cq = CALL(ibv_create_cq)(context, 64, nullptr, nullptr, 0);
    qp = make_qp();
  }

  ibv_qp* make_qp() {
    ibv_qp_init_attr attr{};
    attr.qp_type = IBV_QPT_RC;
    attr.send_cq = attr.recv_cq = cq;
    attr.cap = {64, 64, 1, 1, 64};
    attr.sq_sig_all = 1;
    return CALL(ibv_create_qp)(pd, &attr);
  }
  void post(int count, std::uint64_t id = 0) {
    post(qp, count, id);
  }
  static void post(ibv_qp* to, int count, std::uint64_t id = 0) {
    ibv_sge sge{0, 64, 0};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.wr_id = id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    for (int i = 0; i < count; ++i) {
      if (ibv_post_send(to, &wr, &bad) != 0) std::abort();
    }
  }
  int poll() const {
    ibv_wc wc[4];
    int all = 0;
    while (const int polled = ibv_poll_cq(cq, 4, wc)) all += polled;
    return all;
  }
  void close() const {
    CALL(ibv_destroy_qp)(qp);
    CALL(ibv_destroy_cq)(cq);
    CALL(ibv_dealloc_pd)(pd);
    CALL(ibv_close_device)(context);
  }

  ibv_context* context;
  ibv_pd* pd;
  ibv_cq* cq;
  ibv_qp* qp;
};

int plain() {
  Verbs verbs;
  static char memory[3 * 4096];
  ibv_mr* const mr = CALL(ibv_reg_mr)(verbs.pd, memory, sizeof memory, 0);
  verbs.post(10);
  if (verbs.poll() != 10) return 1;
  CALL(ibv_dereg_mr)(mr);
  verbs.close();
  return 3;
}

int forks() {
  Verbs verbs;
  verbs.post(10);
  const pid_t child = fork();
  if (child == 0) {
    verbs.post(7);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  verbs.post(5);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

// A child that hangs fails.
bool ends_well(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0;
}

template <class Body>
pid_t fork_into(Body&& body) {
  const pid_t child = fork();
  if (child != 0) return child;
  alarm(20);
  _exit(body() ? 0 : 1);
}

// Prints what it posted. The other thread has its own completion queue, whose lock may be held at the fork;
// no child uses it.
int forks_beside_a_thread() {
  constexpr int kForks = 30;
  Verbs verbs;
  std::atomic<bool> done{false};
  std::atomic<unsigned> posted{0};
  std::thread poster([&] {
    Verbs own;
    while (!done) {
      ibv_qp* const qp = own.make_qp();
      for (int i = 0; i < 100; ++i) {
        Verbs::post(qp, 20);
        own.post(1);
        own.poll();
        posted += 21;
      }
      CALL(ibv_destroy_qp)(qp);
    }
  });
  int failed = 0;
  for (unsigned i = 1; i <= kForks; ++i) {
    while (posted < i * 1000) std::this_thread::yield();
    verbs.post(1);
    const pid_t child = fork_into([&verbs] {
      verbs.post(3);
      Verbs fresh;
      fresh.post(7);
      const bool all = verbs.poll() >= 3 && fresh.poll() == 7;
      fresh.close();
      return all;
    });
    failed += ends_well(child) ? 0 : 1;
  }
  done = true;
  poster.join();
  std::printf("%u", posted.load() + kForks);
  return failed;
}

// Forks at any moment while another thread opens the first device.
int forks_beside_an_opening() {
  constexpr int kTimes = 30;
  int failed = 0;
  for (int i = 0; i < kTimes; ++i) {
    const pid_t parent = fork_into([i] {
      std::atomic<bool> begins{false};
      std::thread opener([&begins] {
        begins = true;
        Verbs().post(5);
      });
      while (!begins) {
      }
      const auto moment = std::chrono::steady_clock::now() + std::chrono::microseconds(5 * i);
      while (std::chrono::steady_clock::now() < moment) {
      }
      const bool well = ends_well(fork_into([] {
        Verbs().post(7);
        return true;
      }));
      opener.join();
      return well;
    });
    failed += ends_well(parent) ? 0 : 1;
  }
  return failed;
}

long open_files() {
  DIR* const folder = opendir("/proc/self/fd");
  long count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

long mappings() {
  std::FILE* const file = std::fopen("/proc/self/maps", "r");
  long lines = 0;
  for (int c; (c = std::fgetc(file)) != EOF;) lines += c == '\n';
  std::fclose(file);
  return lines;
}

long heap_bytes() {
  return static_cast<long>(mallinfo2().uordblks + mallinfo2().hblkhd);
}

void come_and_go(int times) {
  static char memory[64];
  for (int i = 0; i < times; ++i) {
    Verbs verbs;
    ibv_mr* const mr = CALL(ibv_reg_mr)(verbs.pd, memory, sizeof memory, 0);
    verbs.post(1);
    if (verbs.poll() != 1) std::abort();
    CALL(ibv_dereg_mr)(mr);
    verbs.close();
  }
}

// Prints the growth of heap and mappings between 1000 and 10000 cycles, and the number of open
// files, here and in a child.
int comes_and_goes() {
  come_and_go(1000);
  const long maps = mappings(), heap = heap_bytes();
  come_and_go(9000);
  const long maps_more = mappings() - maps, heap_more = heap_bytes() - heap;
  std::printf("%ld %ld %ld ", heap_more, maps_more, open_files());
  std::fflush(stdout);
  const pid_t child = fork_into([] {
    std::printf("%ld", open_files());
    std::fflush(stdout);
    return true;
  });
  return ends_well(child) ? 0 : 1;
}

int comes_and_goes_a_little() {
  come_and_go(50);
  return 0;
}

int many_qps() {
  Verbs verbs;
  for (int i = 0; i < 2000; ++i) Verbs::post(verbs.make_qp(), 1);
  return verbs.poll() == 2000 ? 0 : 1;
}

// Posts, prints a line, and posts once more when its input ends.
int stays() {
  Verbs verbs;
  verbs.post(4);
  std::printf("ready");
  std::fflush(stdout);
  for (char c; read(0, &c, 1) > 0;) {
  }
  verbs.post(1);
  return 0;
}

int with_threads() {
  Verbs verbs;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&verbs] { Verbs::post(verbs.make_qp(), 1000); });
  }
  for (std::thread& each : threads) each.join();
  return verbs.poll() == 4000 ? 0 : 1;
}

int run(const char* scene, char* self) {
  if (std::strcmp(scene, "plain") == 0) return plain();
  if (std::strcmp(scene, "forks") == 0) return forks();
  if (std::strcmp(scene, "forks_beside_a_thread") == 0) return forks_beside_a_thread();
  if (std::strcmp(scene, "forks_beside_an_opening") == 0) return forks_beside_an_opening();
  if (std::strcmp(scene, "stays") == 0) return stays();
  if (std::strcmp(scene, "threads") == 0) return with_threads();
  if (std::strcmp(scene, "comes_and_goes") == 0) return comes_and_goes();
  if (std::strcmp(scene, "comes_and_goes_a_little") == 0) return comes_and_goes_a_little();
  if (std::strcmp(scene, "many_qps") == 0) return many_qps();
  if (std::strcmp(scene, "without_verbs") == 0) return 5;
  Verbs verbs;
  verbs.post(4);
  if (std::strcmp(scene, "never_closes") == 0) return 0;
  if (std::strcmp(scene, "closes_with_qp") == 0) return CALL(ibv_close_device)(verbs.context);
  if (std::strcmp(scene, "exits_in_a_callback") == 0) verbs.post(1, 0xe817);
  if (std::strcmp(scene, "ends_at_once") == 0) _exit(6);
  if (std::strcmp(scene, "is_killed") == 0) raise(SIGKILL);
  if (std::strcmp(scene, "executes") == 0) execl(self, self, "plain", nullptr);
  return 98;
}

}  // namespace

int main(int argc, char** argv) {
  return argc == 2 ? run(argv[1], argv[0]) : 97;
}
