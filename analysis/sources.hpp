// Where records are from, in names that tell the files and the fabrics of one view apart.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// "cib" for sim:cib and for sim:/a/path/cib.json; another fabric is its own name.
std::string short_fabric(const std::string& fabric);
// "sim:cib" for both.
std::string fabric_name(const Record& record);

// The shortest ends of paths, without extensions, that differ: "base" and "new" for a/base.jsonl and a/new.jsonl,
// "old/run" and "new/run" for old/run.jsonl and new/run.jsonl.
std::vector<std::string> distinct_ends(const std::vector<std::string>& paths);

// The Record::file of each results file: empty for one alone, else distinct_ends. Throws a UsageError for a file that
// is given twice.
std::vector<std::string> file_names(const std::vector<std::string>& paths);

// Names for the fabrics of some records: short_fabric where that tells them apart, "a/cib" and "b/cib" for two profiles
// of one name, "cib@6bcabe12" and "cib@77aa0312", by their checksums, for a profile that was changed between runs.
class FabricNames {
 public:
  explicit FabricNames(const std::vector<const Record*>& records);

  // The name of the fabric of one of these records.
  const std::string& of(const Record& record) const;

 private:
  std::map<std::pair<std::string, std::string>, std::string> names_;  // by fabric and checksum of its profile
};

}  // namespace verbscope
