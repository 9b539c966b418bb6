// Writes records of points that run at the same time, in the order of the points.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>

#include "common/record.hpp"

namespace verbscope {

class OrderedResults {
 public:
  // At most `most_ahead` points may be ahead of the first unwritten one, which bounds memory.
  OrderedResults(ResultsWriter& writer, std::size_t most_ahead) : writer_(writer), most_ahead_(most_ahead) {}

  // Waits until point `index` is within this limit. Returns false if no more points are to be run.
  bool wait_turn(std::size_t index);
  // Writes the record once all earlier ones are written. Throws what the writer throws. After an exception or close(),
  // no more points are to be run.
  void add(std::size_t index, const Record& record);
  // Ends the sequence: wakes waiting threads and writes the remaining records in order, without the missing ones.
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
