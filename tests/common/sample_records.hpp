// Records as a benchmark would write them, for the tests of the writer, the file and the schema.
#pragma once

#include "common/record.hpp"

namespace verbscope {

inline Record sample_record() {
  CounterReport counter{.source = "sim", .node = "server", .blind = "", .window_s = 0.002, .events = {}, .extra = {}};
  counter.events.dma_read_lines = 12;
  counter.events.payload_bytes_to_host = 18446744073709551615u;  // the largest count survives
  counter.extra = Json{{"wqe_cache_misses", 3}};
  Record record;
  record.benchmark = "send_rate";
  record.config = Json{{"transport", "UD"}, {"size_bytes", 60}};
  record.result = Json{{"rate_mops", 101.6}};
  record.counters = {counter};
  record.prediction = Json{{"binding", "mmio"}, {"rate_mops", 105.0}};
  record.environment = make_environment("sim:cib", {"send_rate", "--fabric", "sim:cib"});
  return record;
}

inline Record failed_record() {
  Record record;
  record.benchmark = "send_rate";
  record.status = RecordStatus::failed;
  record.reason = "the peer closed the connection during the measurement";
  record.config = Json{{"transport", "RC"}};
  record.environment = make_environment("verbs", {"send_rate", "-c", "RC"});
  return record;
}

}  // namespace verbscope
