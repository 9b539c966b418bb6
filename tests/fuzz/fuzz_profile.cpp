// A cluster profile: one of the project's with some parameters changed, as the bytes say. What the reader takes, the
// simulator must be able to divide by.
#include <cmath>
#include <cstring>
#include <iterator>
#include <vector>

#include "common/paths.hpp"
#include "nic_sim/profile/profile.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

using verbscope::Json;

const std::vector<Json>& true_profiles() {
  static const std::vector<Json> profiles = [] {
    std::vector<Json> all;
    for (const char* name : {"cib", "cx", "cx3", "cx6"}) {
      all.push_back(verbscope::read_json_file(verbscope::find_config("clusters", name)));
    }
    return all;
  }();
  return profiles;
}

// Bytes, of which there are zeros without end.
class Source {
 public:
  Source(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool empty() const { return at_ >= size_; }
  std::uint8_t byte() { return empty() ? 0 : data_[at_++]; }
  template <class T>
  T value() {
    std::uint8_t bytes[sizeof(T)];
    for (std::uint8_t& each : bytes) each = byte();
    T out;
    std::memcpy(&out, bytes, sizeof(out));
    return out;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_, at_ = 0;
};

Json value_for(const Json& before, Source& source) {
  switch (source.byte() % 8) {
    case 0:
      return source.value<double>();
    case 1:
      return source.value<std::int64_t>();
    case 2:
      return source.value<std::int8_t>();
    case 3:
      return before.is_number() ? Json(std::ldexp(before.get<double>(), source.value<std::int8_t>())) : Json(1);
    case 4:
      return Json();
    case 5:
      return std::string(1, static_cast<char>('a' + source.byte() % 26));
    case 6:
      return Json{{"value", before}};
    default:
      return source.byte() % 2 == 0;
  }
}

void change(Json& profile, Source& source) {
  const auto section = std::next(profile.begin(), source.byte() % static_cast<int>(profile.size()));
  if (!section->is_object() || section->empty()) {
    *section = value_for(*section, source);
    return;
  }
  const auto parameter = std::next(section->begin(), source.byte() % static_cast<int>(section->size()));
  switch (source.byte() % 8) {
    case 0:
      section->erase(parameter);
      break;
    case 1:
      (*section)[std::string(1, static_cast<char>('a' + source.byte() % 26))] = *parameter;
      break;
    case 2:
      *parameter = value_for(*parameter, source);
      break;
    default:
      if (parameter->is_object() && parameter->contains("value")) {
        (*parameter)["value"] = value_for(parameter->at("value"), source);
      }
  }
}

void expect(bool holds, const char* what, const Json& profile) {
  if (!holds) verbscope::fuzz::report(what, profile.dump());
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Source source(data, size);
  Json json = true_profiles()[source.byte() % true_profiles().size()];
  while (!source.empty() && json.is_object() && !json.empty()) change(json, source);
  verbscope::fuzz::expect_value_or_error([&] {
    const verbscope::Profile profile = verbscope::read_profile(json, "drawn");
    const double pcie = profile.wire.pcie.bandwidth().value, port = profile.wire.port_rate.value;
    expect(std::isfinite(pcie) && pcie > 0 && std::isfinite(port) && port > 0, "links carry something", json);
    expect(profile.host.cores > 0 && profile.nic.requester_units > 0 && profile.nic.responder_units > 0,
           "cores and units are some", json);
    expect(profile.host.poll_call.count() > 0, "a poll takes time", json);
    expect(profile.nic.atomic_slots > 0 && profile.link.read_tags > 0, "slots and tags are some", json);
    for (int code = 0; code < 32; ++code) {
      expect(profile.nic.ack_wait(code).count() >= 0, "a time-out is no negative time", json);
    }
    expect(verbscope::receivers_needed(profile) > 0, "somebody receives", json);
  });
  return 0;
}
