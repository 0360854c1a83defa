#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/value.h"

namespace troupe::models {

/// The names that an expression can use, and their values. A null value means "not given", which
/// an expression writes as `none`.
class Names {
 public:
  /// Adds a name. It hides an earlier one.
  void add(std::string name, Value value) {
    entries_.push_back({std::move(name), std::move(value)});
  }
  /// Returns the newest value of a name, or null if nothing has the name.
  const Value* find(std::string_view name) const;
  /// Returns all names, for suggestions.
  std::vector<std::string_view> all() const;

  /// Sets the value of `given`: the width or the channels of the stream.
  void set_given(Value value) { given_ = std::move(value); }

  /// Counts work of the expressions that use the names. A description from elsewhere may repeat a
  /// costly expression often, so after `most_work` every expression fails.
  void work(std::int64_t amount) const { work_ += amount; }
  bool is_exhausted() const { return work_ > most_work; }
  static constexpr std::int64_t most_work = 1 << 24;

  std::size_t count() const { return entries_.size(); }
  /// Removes what was added after the first `count` names.
  void keep(std::size_t count) { entries_.resize(count); }

 private:
  struct Entry {
    std::string name;
    Value value;
  };
  std::vector<Entry> entries_;
  Value given_;
  mutable std::int64_t work_ = 0;
};

}  // namespace troupe::models
