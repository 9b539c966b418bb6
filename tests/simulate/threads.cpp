// Threads of C++ that wait for each other, with the virtual times at which they go on.
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <latch>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

void say(const char* what, long value) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch() - 1000s;
  std::printf("%12.3f %s %ld\n", std::chrono::duration<double, std::micro>(now).count(), what, value);
}

}  // namespace

int main() {
  std::mutex mutex;
  std::condition_variable condition;
  std::shared_timed_mutex shared;
  std::barrier barrier(4);
  std::latch latch(4);
  std::counting_semaphore<4> semaphore(0);
  std::atomic<int> flag = 0;
  std::once_flag once;
  int turn = 3, tries = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      try {
        std::call_once(once, [&] {
          std::this_thread::sleep_for(20us);
          if (++tries < 3) throw std::runtime_error("again");
          say("once", tries);
        });
      } catch (const std::exception&) {
        say("threw", i);
      }
      std::this_thread::sleep_for(50us * i);
      {
        std::unique_lock lock(mutex);
        condition.wait(lock, [&] { return turn == i; });
        --turn;
        say("turn", i);
        condition.notify_all();
      }
      barrier.arrive_and_wait();
      {
        const std::shared_lock lock(shared);
        std::this_thread::sleep_for(10us);
      }
      say("read", i);
      latch.count_down();
      semaphore.acquire();
      say("acquired", i);
      flag.wait(0);
      say("flag", flag);
    });
  }
  latch.wait();
  say("latch", 0);
  semaphore.release(2);
  std::this_thread::sleep_for(100us);
  semaphore.release(2);
  std::this_thread::sleep_for(100us);
  flag = 7;
  flag.notify_all();
  std::unique_lock lock(mutex);
  say("timed out", condition.wait_for(lock, 300us) == std::cv_status::timeout);
  lock.unlock();
  std::promise<int> promise;
  std::future<int> future = promise.get_future();
  std::thread([&promise] {
    std::this_thread::sleep_until(std::chrono::system_clock::now() + 1ms);
    promise.set_value(5);
  }).detach();
  say("no result yet", future.wait_for(100us) == std::future_status::timeout);
  say("result", future.get());
  threads.clear();
  say("end", 0);
}
