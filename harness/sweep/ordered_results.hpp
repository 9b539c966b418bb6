// Records of points that run side by side, written in the order of the points.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>

#include "common/record.hpp"

namespace verbscope {

class OrderedResults {
 public:
  // `most_ahead` points may be ahead of the first that is not written, so that memory stays bounded.
  OrderedResults(ResultsWriter& writer, std::size_t most_ahead) : writer_(writer), most_ahead_(most_ahead) {}

  // Waits until point `index` is no further ahead than that. False when no more are to be run.
  bool wait_turn(std::size_t index);
  // Writes it, after those before it. Throws what the writer throws; then, and after close(), no more are to be run.
  void add(std::size_t index, const Record& record);
  // Says that no more points come: wakes those that wait. Writes what is there, in order, gaps left out.
  void close();

 private:
  ResultsWriter& writer_;
  std::size_t most_ahead_;
  std::mutex mutex_;
  std::condition_variable moved_;
  std::size_t next_ = 0;
  std::map<std::size_t, Record> waiting_;
  bool closed_ = false;
};

}  // namespace verbscope
