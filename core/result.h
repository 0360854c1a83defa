#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace troupe {

/// The reason for an expected failure, as a message to the user: where, what was found, what was
/// wanted, what to do.
struct Error {
  std::string text;
};

/// A value, or the reason why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : held_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return held_.index() == 0; }
  explicit operator bool() const { return ok(); }

  /// Returns the value; the caller has checked ok().
  T& value() & { return checked(std::get_if<0>(&held_)); }
  const T& value() const& { return checked(std::get_if<0>(&held_)); }
  T value() && { return std::move(checked(std::get_if<0>(&held_))); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// Returns the error; the caller has checked that ok() is false.
  const Error& error() const { return checked(std::get_if<1>(&held_)); }

 private:
  template <class U>
  static U& checked(U* held) {
    assert(held && "a Result was read without asking whether it is ok");
    return *held;
  }

  std::variant<T, Error> held_;
};

/// The value type of functions that return nothing but may fail.
struct Done {};
using Status = Result<Done>;

/// Prefixes an error with what its caller knows: a file, a peer, a stage.
inline Error within(const std::string& place, const Error& error) {
  return {place + ": " + error.text};
}

}  // namespace troupe
