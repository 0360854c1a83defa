#pragma once

#include <string>
#include <utility>
#include <variant>

#include "core/result.h"
#include "core/value.h"
#include "transport/wire/refusal.h"

namespace troupe::apps {

using transport::Refusal;
using transport::RefusalCode;

/// The value that was asked for, or the reason why it was refused.
class [[nodiscard]] Reply {
 public:
  Reply(Value value) : held_(std::move(value)) {}
  Reply(Refusal refusal) : held_(std::move(refusal)) {}
  /// The request failed.
  Reply(const Error& error) : held_(Refusal{RefusalCode::failed, error.text, {}, {}}) {}
  Reply(const Result<Value>& result) : Reply(result ? Reply(*result) : Reply(result.error())) {}

  explicit operator bool() const { return held_.index() == 0; }
  const Value& operator*() const { return std::get<0>(held_); }
  const Value* operator->() const { return &**this; }

  /// Requires that there is no value.
  const Refusal& refusal() const { return std::get<1>(held_); }
  Error error() const { return {refusal().text}; }

 private:
  std::variant<Value, Refusal> held_;
};

}  // namespace troupe::apps
