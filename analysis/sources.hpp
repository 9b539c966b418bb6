// Names of the files and fabrics that records come from, distinct within one view.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// "cib" for sim:cib and for sim:/a/path/cib.json; other fabrics unchanged.
std::string short_fabric(const std::string& fabric);
// "sim:cib" for both.
std::string fabric_name(const Record& record);

// The shortest distinct path endings, without extensions: "base" and "new" for a/base.jsonl and a/new.jsonl; "old/run"
// and "new/run" for old/run.jsonl and new/run.jsonl.
std::vector<std::string> distinct_ends(const std::vector<std::string>& paths);

// Record::file for each results file: empty for a single file, else distinct_ends. Throws UsageError if a file is given
// twice.
std::vector<std::string> file_names(const std::vector<std::string>& paths);

// Distinct names for the fabrics of some records: short_fabric if that is enough; "a/cib" and "b/cib" for two profiles
// of the same name; "cib@6bcabe12" and "cib@77aa0312" (checksums) for a profile that changed between runs.
class FabricNames {
 public:
  explicit FabricNames(const std::vector<const Record*>& records);

  // Precondition: `record` is one of those passed to the constructor.
  const std::string& of(const Record& record) const;

 private:
  std::map<std::pair<std::string, std::string>, std::string> names_;  // by fabric and checksum of its profile
};

}  // namespace verbscope
