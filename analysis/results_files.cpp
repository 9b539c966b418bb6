#include "analysis/results_files.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <list>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/keys.hpp"
#include "analysis/loads.hpp"
#include "analysis/points.hpp"
#include "analysis/text_table.hpp"
#include "common/terminal.hpp"

namespace verbscope {
namespace {

// record_key, distinct for each file.
std::string key_in_file(const Record& record) {
  return record.file + "\n" + record_key(record);
}

// Drops a prediction that cannot be read, with a warning. The record stays usable.
void drop_broken_prediction(Record& record, const std::string& path, Warnings& warnings) {
  try {
    prediction_of(record);
  } catch (const Error& error) {
    warnings.add(fmt::format("{}: {} (treated as missing)", path, error.what()));
    record.prediction = Json();
  }
}

// The chosen records. A file with a million runs of a few points needs memory for a few records only.
class ResultsLoader {
 public:
  ResultsLoader(bool all, std::size_t max_bytes) : all_(all), max_bytes_(max_bytes) {}

  // `file`: Record::file of the records.
  void read(const std::string& path, const std::string& file) {
    std::size_t found = 0;
    Warnings warnings(path, "lines are not records"),
        broken_predictions(path, "lines have a prediction that cannot be read");
    each_result(
        path,
        [&](Record record, std::size_t bytes) {
          ++found;
          drop_broken_prediction(record, path, broken_predictions);
          record.file = file;
          add(std::move(record), bytes, path);
        },
        [&](const std::string& warning) { warnings.add(warning); });
    if (found == 0) fail("{}: has no record", path);
  }

  std::vector<Record> records() {
    std::vector<Record> out;
    for (Entry& entry : entries_) out.push_back(std::move(entry.record));
    return out;
  }

 private:
  struct Entry {
    Record record;
    std::size_t bytes;
  };

  void add(Record record, std::size_t bytes, const std::string& path) {
    bytes_ += bytes;
    std::string key = all_ ? "" : key_in_file(record);
    entries_.push_back({std::move(record), bytes});
    if (!all_) {
      const auto [place, is_new] = last_.try_emplace(std::move(key), std::prev(entries_.end()));
      if (!is_new) {
        bytes_ -= place->second->bytes;
        entries_.erase(place->second);
        place->second = std::prev(entries_.end());
      }
    }
    if (bytes_ > max_bytes_) {
      fail("{}: the results files up to this one have more than {} MB of {}: name fewer files", path,
           max_bytes_ / 1'000'000, all_ ? "records" : "points");
    }
  }

  bool all_;
  std::size_t max_bytes_;
  std::size_t bytes_ = 0;
  std::list<Entry> entries_;
  std::map<std::string, std::list<Entry>::iterator> last_;  // by key_in_file
};

// Position of a record in a table: its sweep on one fabric (or the record itself if it has no sweep), in order of
// appearance; then its place in the sweep and its repetition.
using SortKey = std::tuple<std::size_t, double, int>;

std::vector<const Record*> in_sweep_order(const std::vector<const Record*>& records) {
  std::map<std::string, std::size_t> sweeps;
  std::vector<std::pair<SortKey, const Record*>> sorted;
  for (const Record* record : records) {
    const auto harness = record->environment.find("harness");
    const bool in_sweep = harness != record->environment.end() && harness->is_object();
    const auto place = in_sweep ? number_at(*harness, "place") : std::nullopt;
    const std::size_t next = sorted.size();
    const std::string run = place ? fmt::format("{}\n{}\n{}", record->file, text_at(*harness, "sweep"),
                                                text_at(record->environment, "fabric"))
                                  : "";
    const std::size_t sweep = place ? sweeps.try_emplace(run, next).first->second : next;
    sorted.emplace_back(SortKey{sweep, place.value_or(0), place ? repetition_of(*record) : 0}, record);
  }
  std::ranges::stable_sort(sorted, {}, &std::pair<SortKey, const Record*>::first);
  std::vector<const Record*> out;
  for (const auto& [key, record] : sorted) out.push_back(record);
  return out;
}

void flatten(const Json& value, const std::string& prefix, Json& out) {
  for (const auto& [key, member] : value.items()) {
    const std::string name = prefix + "." + key;
    if (member.is_object()) {
      flatten(member, name, out);
    } else if (!member.is_array()) {
      out[name] = member;
    }
  }
}

Json flat(const Record& record) {
  Json out{{"id", point_id(record)},
           {"benchmark", record.benchmark},
           {"fabric", record.environment.at("fabric")},
           {"simulated", record.environment.at("simulated")},
           {"sweep", harness_text(record, "sweep")},
           {"label", label_of(record)},
           {"status", to_string(record.status)},
           {"reason", record.reason}};
  flatten(record.config, "config", out);
  flatten(record.result, "result", out);
  return out;
}

}  // namespace

std::vector<std::string> file_names(const std::vector<std::string>& paths) {
  if (paths.size() == 1) return {""};
  std::vector<std::string> whole;
  for (const std::string& path : paths) {
    whole.push_back(std::filesystem::absolute(path).lexically_normal().string());
    if (std::ranges::count(whole, whole.back()) > 1) fail_usage("{} is given twice: name each results file once", path);
  }
  return distinct_ends(whole);
}

std::vector<Record> load_results(const std::vector<std::string>& paths, bool all, std::size_t max_bytes) {
  const std::vector<std::string> names = file_names(paths);
  ResultsLoader loader(all, max_bytes);
  for (std::size_t i = 0; i < paths.size(); ++i) loader.read(paths[i], names[i]);
  return loader.records();
}

std::vector<const Record*> last_of_each_point(const std::vector<Record>& records) {
  std::map<std::string, std::size_t> last;
  std::vector<std::string> keys;
  for (const Record& record : records) {
    keys.push_back(key_in_file(record));
    last[keys.back()] = keys.size() - 1;
  }
  std::vector<const Record*> out;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (last.at(keys[i]) == i) out.push_back(&records[i]);
  }
  return in_sweep_order(out);
}

std::vector<const Record*> chosen_records(const std::vector<Record>& records, bool all) {
  if (!all) return last_of_each_point(records);
  std::vector<const Record*> out;
  for (const Record& record : records) out.push_back(&record);
  return out;
}

std::string flat_lines(const std::vector<const Record*>& records) {
  std::string out;
  for (const Record* record : records) out += dump_json(flat(*record)) + "\n";
  return out;
}

std::string flat_csv(const std::vector<const Record*>& records) {
  std::vector<Json> rows;
  std::vector<std::string> keys;
  std::set<std::string> known;
  for (const Record* record : records) {
    rows.push_back(flat(*record));
    for (const auto& [key, value] : rows.back().items()) {
      if (known.insert(key).second) keys.push_back(key);
    }
  }
  std::string out = csv_line(keys);
  for (const Json& row : rows) {
    std::vector<std::string> cells;
    for (const std::string& key : keys) {
      const Json value = row.value(key, Json());
      cells.push_back(value.is_null() ? "" : plain_text(value));
    }
    out += csv_line(cells);
  }
  return out;
}

}  // namespace verbscope
