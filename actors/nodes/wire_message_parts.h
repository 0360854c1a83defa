#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/nodes/wire_message.h"
#include "transport/wire/fields.h"

/// Helpers for the files that encode messages.
namespace troupe::actors {

template <class Wire>
WireMessage wire_message_of(std::string_view type, const Wire& wire) {
  return {std::string(type), transport::to_value(wire), {}, {}};
}
template <class Wire>
Result<Wire> read(const WireMessage& from) {
  return transport::from_value<Wire>(from.body, from.type);
}

// Numbers of one type are copied as raw bytes. All processes of a run have one build and one byte
// order; the welcome checks that.

template <class T>
std::string bytes_of(std::span<const T> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()};
}
template <class T>
Result<std::vector<T>> numbers_of(const std::string& bytes, std::string_view type) {
  if (bytes.size() % sizeof(T) != 0)
    return Error{std::string(type) + ": found " + std::to_string(bytes.size()) +
                 " bytes beside the body, wanted a multiple of " + std::to_string(sizeof(T))};
  std::vector<T> numbers(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

/// Joins texts without line breaks into one text.
template <class Names>
std::string joined(const Names& names) {
  std::string text;
  for (const auto& name : names) text += name + "\n";
  return text;
}
inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

/// Packs tensors, some of which may be empty; the mask has '1' for each that is not.
class Packing {
 public:
  explicit Packing(std::vector<Tensor>& into) : into_(into) {}
  void add(const Tensor& tensor) {
    mask_ += tensor.empty() ? '0' : '1';
    if (!tensor.empty()) into_.push_back(tensor);
  }
  std::string mask() const { return mask_; }

 private:
  std::vector<Tensor>& into_;
  std::string mask_;
};
class Unpacking {
 public:
  Unpacking(std::string mask, std::vector<Tensor>& from) : mask_(std::move(mask)), from_(from) {}
  Status check(std::string_view type, std::size_t places) const {
    const auto there = static_cast<std::size_t>(std::ranges::count(mask_, '1'));
    if (mask_.size() == places && there == from_.size()) return Done{};
    return Error{std::string(type) + ": found " + std::to_string(from_.size()) + " tensors for " +
                 std::to_string(there) + " of " + std::to_string(mask_.size()) +
                 " places, wanted " + std::to_string(places) + " places"};
  }
  Tensor next() { return mask_[at_++] == '1' ? std::move(from_[taken_++]) : Tensor(); }

 private:
  std::string mask_;
  std::vector<Tensor>& from_;
  std::size_t at_ = 0, taken_ = 0;
};

// Encodings of messages for which fields() and tensors() are not enough.

WireMessage put(const Play& message, MemoryPool& memory);
Result<Play> take(WireMessage& from, const RunSpec& spec, const Play* kind);
WireMessage put(const Norms& message, MemoryPool& memory);
Result<Norms> take(WireMessage& from, const RunSpec& spec, const Norms* kind);
WireMessage put(const LateGradients& message, MemoryPool& memory);
Result<LateGradients> take(WireMessage& from, const RunSpec& spec, const LateGradients* kind);
WireMessage put(const MicroBatchLoss& message, MemoryPool& memory);
Result<MicroBatchLoss> take(WireMessage& from, const RunSpec& spec, const MicroBatchLoss* kind);
WireMessage put(const RoundPlayed& message, MemoryPool& memory);
Result<RoundPlayed> take(WireMessage& from, const RunSpec& spec, const RoundPlayed* kind);
WireMessage put(const Pulse& message, MemoryPool& memory);
Result<Pulse> take(WireMessage& from, const RunSpec& spec, const Pulse* kind);
WireMessage put(const LoanFor& message, MemoryPool& memory);
Result<LoanFor> take(WireMessage& from, const RunSpec& spec, const LoanFor* kind);
WireMessage put(const StepGradients& message, MemoryPool& memory);
Result<StepGradients> take(WireMessage& from, const RunSpec& spec, const StepGradients* kind);
WireMessage put(const NewWeights& message, MemoryPool& memory);
Result<NewWeights> take(WireMessage& from, const RunSpec& spec, const NewWeights* kind);
WireMessage put(const Snapshot& message, MemoryPool& memory);
Result<Snapshot> take(WireMessage& from, const RunSpec& spec, const Snapshot* kind);
WireMessage put(const StateCopy& message, MemoryPool& memory);
Result<StateCopy> take(WireMessage& from, const RunSpec& spec, const StateCopy* kind);

}  // namespace troupe::actors
