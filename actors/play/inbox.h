#pragma once

#include <algorithm>
#include <cassert>
#include <compare>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include "actors/messages.h"

namespace troupe::actors {

/// The inputs of a device's passes that have arrived and are unused, and places for those that an
/// earlier pass of the same device will have made.
class Inbox {
 public:
  enum class What : std::uint8_t { input, targets, gradient, loan };

  struct Parcel {
    Header header;
    models::Bundle value;  // Targets are a stream alone.
    models::Loan loan;
    DeviceMark after;
  };
  using ParcelPtr = std::shared_ptr<Parcel>;

  struct Address {
    What what = What::input;
    std::int64_t first_step = 0;
    int stage = 0;
    int m = 0;
    std::string loan;

    friend auto operator<=>(const Address&, const Address&) = default;
  };

  /// Adds a place that the caller fills, at once or by a job that runs before the one that takes
  /// it. Throws if it exists: a peer has sent the same twice.
  ParcelPtr put(const Address& address) {
    auto& parcel = parcels_[address];
    if (parcel)
      throw std::runtime_error("found the same parcel of micro-batch " + std::to_string(address.m) +
                               " for stage " + std::to_string(address.stage) + " twice");
    parcel = std::make_shared<Parcel>();
    most_ = std::max(most_, parcels_.size());
    return parcel;
  }
  bool has(const Address& address) const { return parcels_.contains(address); }
  ParcelPtr take(const Address& address) {
    auto node = parcels_.extract(address);
    assert(!node.empty());
    return std::move(node.mapped());
  }

  std::size_t size() const { return parcels_.size(); }
  /// Returns the most parcels that were here at once.
  std::size_t most() const { return most_; }

 private:
  std::map<Address, ParcelPtr> parcels_;
  std::size_t most_ = 0;
};

}  // namespace troupe::actors
