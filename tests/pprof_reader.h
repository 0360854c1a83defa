#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catch.h"

namespace troupe::testing {

/// The fields of a Protocol Buffers message in wire format: numbers, and length-prefixed bytes. Our
/// files have no fixed-width fields.
class ProtoFields {
 public:
  explicit ProtoFields(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::uint64_t key = varint(bytes);
      const auto field = static_cast<int>(key / 8);
      REQUIRE(field > 0);
      if (key % 8 == 0) {
        numbers_[field].push_back(static_cast<std::int64_t>(varint(bytes)));
        continue;
      }
      REQUIRE(key % 8 == 2);
      const std::uint64_t length = varint(bytes);
      REQUIRE(length <= bytes.size());
      texts_[field].emplace_back(bytes.substr(0, length));
      bytes.remove_prefix(length);
    }
  }

  const std::vector<std::string>& texts(int field) { return texts_[field]; }
  const std::vector<std::int64_t>& numbers(int field) { return numbers_[field]; }
  /// Returns 0 if the field is absent.
  std::int64_t number(int field) {
    const auto& all = numbers_[field];
    return all.empty() ? 0 : all.back();
  }
  std::vector<std::int64_t> packed(int field) {
    std::vector<std::int64_t> all;
    for (std::string_view bytes : texts_[field])
      while (!bytes.empty()) all.push_back(static_cast<std::int64_t>(varint(bytes)));
    return all;
  }
  std::vector<ProtoFields> messages(int field) {
    std::vector<ProtoFields> all;
    for (const auto& bytes : texts_[field]) all.emplace_back(bytes);
    return all;
  }

 private:
  static std::uint64_t varint(std::string_view& bytes) {
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      REQUIRE_FALSE(bytes.empty());
      const auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      number |= static_cast<std::uint64_t>(byte % 128) << shift;
      if (byte < 128) return number;
    }
    FAIL("a varint of more than ten bytes");
    return 0;
  }

  std::map<int, std::vector<std::int64_t>> numbers_;
  std::map<int, std::vector<std::string>> texts_;
};

/// A pprof file, read by the field numbers of profile.proto. It checks all that pprof requires.
class PprofReader {
 public:
  struct Sample {
    std::vector<std::string> stack;  // Innermost frame first.
    std::vector<std::int64_t> values;
    std::map<std::string, std::string> labels;
  };

  explicit PprofReader(std::string_view bytes) {
    ProtoFields profile(bytes);
    texts_ = profile.texts(6);
    REQUIRE_FALSE(texts_.empty());
    REQUIRE(texts_[0].empty());
    for (auto& type : profile.messages(1)) types.emplace_back(text(type, 1), text(type, 2));
    read_mappings(profile);
    read_functions(profile);
    read_locations(profile);
    for (auto& sample : profile.messages(2)) read_sample(sample);
    for (const auto number : profile.numbers(13)) comments.push_back(text(number));
    default_type = text(profile.number(14));
    duration = profile.number(10);
  }

  /// Sums one value over all samples that contain these frames.
  std::int64_t sum(std::size_t value, const std::set<std::string>& frames) const {
    std::int64_t total = 0;
    for (const auto& sample : samples) {
      const std::set<std::string> stack(sample.stack.begin(), sample.stack.end());
      bool has_all = true;
      for (const auto& frame : frames) has_all = has_all && stack.contains(frame);
      if (has_all) total += sample.values[value];
    }
    return total;
  }

  std::vector<std::pair<std::string, std::string>> types;  // Types with their units.
  std::string default_type;
  std::string file;  // The file of the first mapping.
  std::vector<std::string> comments;
  std::vector<Sample> samples;
  std::int64_t duration = 0;

 private:
  std::string text(std::int64_t number) const {
    REQUIRE(number >= 0);
    REQUIRE(number < static_cast<std::int64_t>(texts_.size()));
    return texts_[static_cast<std::size_t>(number)];
  }
  std::string text(ProtoFields& fields, int field) const { return text(fields.number(field)); }

  static std::int64_t new_id(ProtoFields& fields, const std::set<std::int64_t>& known) {
    const auto id = fields.number(1);
    REQUIRE(id != 0);
    REQUIRE_FALSE(known.contains(id));
    return id;
  }

  void read_mappings(ProtoFields& profile) {
    for (auto& mapping : profile.messages(3)) {
      if (mappings_.empty()) file = text(mapping, 5);
      mappings_.insert(new_id(mapping, mappings_));
    }
  }

  void read_functions(ProtoFields& profile) {
    std::set<std::int64_t> ids;
    for (auto& function : profile.messages(5)) {
      const auto id = new_id(function, ids);
      ids.insert(id);
      functions_[id] = text(function, 2);
      CHECK_FALSE(functions_[id].empty());
      CHECK(text(function, 3) == functions_[id]);
    }
  }

  void read_locations(ProtoFields& profile) {
    std::set<std::int64_t> ids;
    for (auto& location : profile.messages(4)) {
      const auto id = new_id(location, ids);
      ids.insert(id);
      REQUIRE(mappings_.contains(location.number(2)));
      auto lines = location.messages(4);
      REQUIRE(lines.size() == 1);
      REQUIRE(functions_.contains(lines[0].number(1)));
      locations_[id] = functions_[lines[0].number(1)];
    }
  }

  void read_sample(ProtoFields& fields) {
    Sample sample;
    for (const auto id : fields.packed(1)) {
      REQUIRE(locations_.contains(id));
      sample.stack.push_back(locations_[id]);
    }
    REQUIRE_FALSE(sample.stack.empty());
    sample.values = fields.packed(2);
    REQUIRE(sample.values.size() == types.size());
    for (auto& label : fields.messages(3)) sample.labels[text(label, 1)] = text(label, 2);
    samples.push_back(std::move(sample));
  }

  std::vector<std::string> texts_;
  std::set<std::int64_t> mappings_;
  std::map<std::int64_t, std::string> functions_;
  std::map<std::int64_t, std::string> locations_;
};

}  // namespace troupe::testing
