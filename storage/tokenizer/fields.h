#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "core/result.h"
#include "core/value.h"

namespace troupe::storage {

/// Reads the entries of a map, each by its key. Remembers the first fault, and which keys were
/// read: nothing in the map may stay unread. Messages begin with the path of the value, such as
/// "decoder.decoders[1].start".
class Fields {
 public:
  Fields(const Value& map, std::string place);

  const std::string& place() const { return place_; }
  std::string place_of(std::string_view key) const;

  /// Returns the value, or null if it is absent or null.
  const Value* find(std::string_view key);
  // Each returns a value of its type. Without a value it returns the second argument, if there is
  // one.
  std::string text(std::string_view key, std::optional<std::string> otherwise = {});
  bool boolean(std::string_view key, std::optional<bool> otherwise = {});
  std::int64_t integer(std::string_view key, std::int64_t least, std::int64_t most,
                       std::optional<std::int64_t> otherwise = {});
  std::optional<std::string> optional_text(std::string_view key);
  /// Returns a list; null after a fault.
  const Value::List* list(std::string_view key);
  const Value::Map* map(std::string_view key);
  /// Reads a text that is one of several. Returns its index.
  std::size_t among(std::string_view key, std::initializer_list<std::string_view> names,
                    std::optional<std::size_t> otherwise = {});
  /// Reads a key that may be absent, null, false, 0 or empty, and nothing else.
  void must_be_unset(std::string_view key);
  /// Reads a key that changes nothing for the tokens.
  void ignore(std::string_view key) { find(key); }

  void fail(std::string_view key, const std::string& reason);
  /// Returns the first fault, or an error about the first key that was not read.
  Status finish();

 private:
  const Value* need(std::string_view key, bool is_optional, const char* wanted);

  const Value& map_;
  std::string place_;
  std::set<std::string, std::less<>> read_;
  std::optional<Error> fault_;
};

}  // namespace troupe::storage
