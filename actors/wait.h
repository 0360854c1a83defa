#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace troupe::actors {

/// The reason why an actor cannot continue.
struct Wait {
  enum class On : std::uint8_t { nothing, message, executor, disk };

  On on = On::nothing;
  /// Names the step and the object, so that an equal text means the same wait: "step 2, 1B3 waits
  /// for the gradient of micro-batch 3 from stage 2".
  std::string what;

  explicit operator bool() const { return on != On::nothing; }
  friend bool operator==(const Wait&, const Wait&) = default;
};

constexpr std::array<std::string_view, 4> enum_names(Wait::On) {
  return {"nothing", "message", "executor", "disk"};
}

inline Wait waits(std::string what) { return {Wait::On::message, std::move(what)}; }
inline Wait computes(std::string what) {
  return {Wait::On::executor, "it still computes " + std::move(what)};
}
inline Wait waits_for_disk(std::string what) { return {Wait::On::disk, std::move(what)}; }

/// How many intervals a wait may last.
struct Allowed {
  int usual = 6;
  int disk = 30;

  int of(const Wait& wait) const { return wait.on == Wait::On::disk ? disk : usual; }
};

/// Counts for how many looks a wait has stayed the same.
class Patience {
 public:
  /// Returns how many looks ago the wait was first seen; 0 if it is new or empty.
  int look(const Wait& wait) {
    looks_ = wait && wait == last_ ? looks_ + 1 : 0;
    last_ = wait;
    return looks_;
  }

 private:
  Wait last_;
  int looks_ = 0;
};

}  // namespace troupe::actors
