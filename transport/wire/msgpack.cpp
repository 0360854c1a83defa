#include "transport/wire/msgpack.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <msgpack.hpp>
#include <optional>
#include <vector>

#include "core/text.h"
#include "core/units.h"

namespace troupe::transport {
namespace {

constexpr int deepest = 32;
/// Up to here a map's keys are compared with each other; a longer one's are sorted.
constexpr std::size_t small_map = 16;

/// Returns the bytes that a text needs outside its std::string.
std::size_t memory_of_text(std::size_t size) {
  static const std::size_t within = std::string().capacity();
  return size > within ? size + 1 : 0;
}

/// Part of a text from elsewhere, for a message.
std::string excerpt(std::string_view text) {
  constexpr std::size_t most = 40;
  std::string out;
  for (const char c : text.substr(0, most)) out += c >= ' ' && c <= '~' ? c : '?';
  return text.size() > most ? out + "..." : out;
}

/// The place of the parser in a tree. Only an error makes a text of it.
class Path {
 public:
  explicit Path(std::string_view root) : root_(root) {}

  int depth() const { return depth_; }
  void open_list() { places_[index()] = {{}, 0, true}; }
  void open_map() { places_[index()] = {{}, 0, false}; }
  void close() { --depth_; }
  void enter_key(std::string_view key) { places_[top()].key = key; }
  void next_item() { ++places_[top()].number; }

  std::string text() const {
    std::string out(root_);
    for (int i = 0; i < depth_; ++i) {
      const auto& place = places_[static_cast<std::size_t>(i)];
      if (place.is_list)
        out += "[" + std::to_string(place.number) + "]";
      else if (!place.key.empty())
        out += "." + excerpt(place.key);
    }
    return out;
  }

 private:
  struct Place {
    std::string_view key;
    std::size_t number = 0;
    bool is_list = false;
  };

  std::size_t index() { return static_cast<std::size_t>(depth_++); }
  std::size_t top() const { return static_cast<std::size_t>(depth_ - 1); }

  std::string_view root_;
  std::array<Place, deepest> places_;
  int depth_ = 0;
};

/// Follows the parser through bytes, checks them against the limits and adds up what a tree of
/// their values would take. Keeps no copy of anything.
class Measure : public msgpack::null_visitor {
 public:
  Measure(std::string_view bytes, const WireLimits& limits, std::string_view where)
      : path(where), limits_(limits), bytes_(bytes.size()) {
    assert(limits.depth < deepest);
  }

  bool visit_nil() { return value("nothing"); }
  bool visit_boolean(bool) { return value("a boolean"); }
  bool visit_positive_integer(std::uint64_t number) {
    if (number > static_cast<std::uint64_t>(INT64_MAX))
      return fail("found " + std::to_string(number) + ", wanted an integer of at most 63 bits");
    return value("an integer");
  }
  bool visit_negative_integer(std::int64_t) { return value("an integer"); }
  bool visit_float32(float number) { return visit_float64(number); }
  bool visit_float64(double number) {
    if (!std::isfinite(number))
      return fail("found " + std::string(std::isnan(number) ? "NaN" : "an infinity") +
                  ", wanted a finite number; what is not known is left out");
    return value("a number");
  }
  bool visit_str(const char* data, std::uint32_t size) {
    const std::string_view text(data, size);
    if (size > limits_.text_bytes)
      return fail("found a text of " + size_text(size) + ", wanted at most " +
                  size_text(limits_.text_bytes));
    if (!is_utf8(text)) return fail("found a text that is not UTF-8");
    memory += memory_of_text(size);
    if (key_comes_) path.enter_key(text);
    return true;
  }
  bool visit_bin(const char*, std::uint32_t) {
    return fail("found binary, wanted a value; bytes travel as payload, digests as a text");
  }
  bool visit_ext(const char*, std::uint32_t) {
    return fail("found an extension of msgpack, wanted a value");
  }

  bool start_array(std::uint32_t count) {
    if (!open("a list", count, count)) return false;
    memory += count * sizeof(Value);
    path.open_list();
    return true;
  }
  bool end_array_item() {
    path.next_item();
    return true;
  }
  bool end_array() {
    path.close();
    return true;
  }
  bool start_map(std::uint32_t count) {
    if (!open("a map", count, std::size_t{2} * count)) return false;
    memory += count * sizeof(Value::Entry);
    if (count > small_map) memory += count * sizeof(std::string_view);
    path.open_map();
    return true;
  }
  bool start_map_key() {
    key_comes_ = true;
    path.enter_key({});
    return true;
  }
  bool end_map_key() {
    key_comes_ = false;
    return true;
  }
  bool end_map() {
    path.close();
    return true;
  }

  void parse_error(std::size_t, std::size_t offset) {
    (void)fail("found the byte 0xc1 at offset " + std::to_string(offset) +
               ", which msgpack does not have");
  }
  void insufficient_bytes(std::size_t, std::size_t) {
    (void)fail("the " + std::to_string(bytes_) + " bytes end in the middle of a value");
  }

  Path path;
  std::size_t memory = 0;
  std::optional<Error> error;

 private:
  bool fail(const std::string& what) {
    if (!error) error = Error{path.text() + ": " + what};
    return false;
  }
  bool value(std::string_view kind) {
    if (key_comes_) return fail("found " + std::string(kind) + " as a key, wanted a text");
    return true;
  }
  /// Every item takes a byte at least, so what claims more than there are lies.
  bool open(std::string_view kind, std::size_t count, std::size_t items) {
    if (!value(kind)) return false;
    claimed_ += items;
    // Texts only where something is wrong: there may be very many containers.
    const auto too_many = [&](const std::string& wanted) {
      return fail("found " + std::string(kind) + " of " + std::to_string(count) + " items" +
                  wanted);
    };
    if (count > limits_.items) return too_many(", wanted at most " + std::to_string(limits_.items));
    if (claimed_ > bytes_) return too_many(" in a part of " + std::to_string(bytes_) + " bytes");
    if (path.depth() >= limits_.depth)
      return fail("nested deeper than " + std::to_string(limits_.depth) + " levels");
    return true;
  }

  WireLimits limits_;
  std::size_t bytes_;
  std::size_t claimed_ = 0;
  bool key_comes_ = false;
};

/// Builds the tree of bytes that were measured. Every container has its final size from the start,
/// so that nothing is allocated twice and nothing moves.
class Builder : public msgpack::null_visitor {
 public:
  bool visit_nil() { return put({}); }
  bool visit_boolean(bool value) { return put(value); }
  bool visit_positive_integer(std::uint64_t value) { return put(static_cast<std::int64_t>(value)); }
  bool visit_negative_integer(std::int64_t value) { return put(value); }
  bool visit_float32(float value) { return put(static_cast<double>(value)); }
  bool visit_float64(double value) { return put(value); }
  bool visit_str(const char* data, std::uint32_t size) {
    if (!key_comes_) return put(std::string(data, size));
    open_map().push_back({std::string(data, size), {}, {}});
    return true;
  }
  bool start_array(std::uint32_t count) {
    Value::List list;
    list.reserve(count);
    return open(std::move(list));
  }
  bool end_array() { return close(); }
  bool start_map(std::uint32_t count) {
    Value::Map map;
    map.reserve(count);
    return open(std::move(map));
  }
  bool start_map_key() {
    key_comes_ = true;
    return true;
  }
  bool end_map_key() {
    key_comes_ = false;
    return true;
  }
  bool end_map() {
    if (const auto twice = repeated(open_map())) {
      error = "the key \"" + excerpt(*twice) + "\" comes twice in one map; keep one of them";
      return false;
    }
    return close();
  }

  Value root;
  std::string error;

 private:
  static std::optional<std::string_view> repeated(const Value::Map& map) {
    if (map.size() <= small_map) {
      for (std::size_t i = 0; i < map.size(); ++i)
        for (std::size_t k = 0; k < i; ++k)
          if (map[i].key == map[k].key) return map[i].key;
      return std::nullopt;
    }
    std::vector<std::string_view> keys(map.size());
    std::transform(map.begin(), map.end(), keys.begin(),
                   [](const Value::Entry& entry) { return std::string_view(entry.key); });
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    return twice == keys.end() ? std::nullopt : std::optional(*twice);
  }

  Value::Map& open_map() { return *open_[depth_ - 1]->map(); }
  Value& place(Value value) {
    if (depth_ == 0) return root = std::move(value);
    if (auto* list = open_[depth_ - 1]->list()) return list->emplace_back(std::move(value));
    return open_map().back().value = std::move(value);
  }
  bool put(Value value) {
    place(std::move(value));
    return true;
  }
  bool open(Value value) {
    Value& placed = place(std::move(value));
    open_[depth_++] = &placed;
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }

  std::array<Value*, deepest> open_{};
  std::size_t depth_ = 0;
  bool key_comes_ = false;
};

/// The output of a packer.
struct Text {
  void write(const char* data, std::size_t size) { bytes.append(data, size); }
  std::string bytes;
};

class Writer {
 public:
  void write(const Value& value) {
    switch (value.kind()) {
      case Value::Kind::null:
        packer_.pack_nil();
        return;
      case Value::Kind::boolean:
        *value.boolean() ? packer_.pack_true() : packer_.pack_false();
        return;
      case Value::Kind::integer:
        packer_.pack_int64(*value.integer());
        return;
      case Value::Kind::number:
        write(value.number());
        return;
      case Value::Kind::text:
        write(std::string_view(*value.text()));
        return;
      case Value::Kind::list:
        packer_.pack_array(static_cast<std::uint32_t>(value.list()->size()));
        for (const auto& item : *value.list()) write(item);
        return;
      case Value::Kind::map:
        packer_.pack_map(static_cast<std::uint32_t>(value.map()->size()));
        for (const auto& entry : *value.map()) {
          write(std::string_view(entry.key));
          write(entry.value);
        }
        return;
    }
  }
  std::string bytes() && { return std::move(text_.bytes); }

 private:
  void write(std::string_view text) {
    const auto size = static_cast<std::uint32_t>(text.size());
    packer_.pack_str(size).pack_str_body(text.data(), size);
  }
  void write(double number) {
    if (!std::isfinite(number)) {
      packer_.pack_nil();
      return;
    }
    // The packer would make an integer of a whole number, even one of more than 63 bits.
    constexpr char float64 = '\xcb';
    text_.bytes += float64;
    const auto bits = std::bit_cast<std::uint64_t>(number);
    for (int shift = 56; shift >= 0; shift -= 8)
      text_.bytes += static_cast<char>(bits >> shift & 0xff);
  }

  Text text_;
  msgpack::packer<Text> packer_{text_};
};

}  // namespace

std::string pack(const Value& value) {
  Writer writer;
  writer.write(value);
  return std::move(writer).bytes();
}

Result<std::size_t> memory_to_unpack(std::string_view bytes, const WireLimits& limits,
                                     std::string_view where) {
  Measure measure(bytes, limits, where);
  std::size_t end = 0;
  const bool whole = msgpack::parse(bytes.data(), bytes.size(), end, measure);
  if (measure.error) return *measure.error;
  if (!whole) return Error{std::string(where) + ": this is not msgpack"};
  if (end != bytes.size())
    return Error{std::string(where) + ": found " + std::to_string(bytes.size() - end) +
                 " bytes behind the value, wanted none"};
  return measure.memory;
}

Result<Value> unpack(std::string_view bytes, const WireLimits& limits, std::size_t memory,
                     std::string_view where) {
  const auto needed = memory_to_unpack(bytes, limits, where);
  if (!needed) return needed.error();
  if (*needed > memory)
    return Error{std::string(where) + ": its values would take " + size_text(*needed) +
                 " of memory, wanted at most " + size_text(memory) +
                 " for so short a message; send many small values as one text or as payload"};
  Builder builder;
  std::size_t end = 0;
  if (!msgpack::parse(bytes.data(), bytes.size(), end, builder))
    return Error{std::string(where) + ": " + builder.error};
  return std::move(builder.root);
}

}  // namespace troupe::transport
