#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "transport/channels/credit.h"
#include "transport/links/edge_end.h"

namespace troupe::transport {

/// One end of an edge that sums.
class AddingEnd final : public EdgeEnd {
 public:
  AddingEnd(EdgesOrder order, const SumTerms& terms, OnEnd on_end, const Poison& poison);

  /// Implements Adder::add() for any thread.
  Status add(Tensor numbers, std::span<const std::int64_t> sizes, std::function<void()> done);

  void hear(const ReadEdgeWord& read) override;
  Status exchange(EdgeTime now) override;
  bool busy() override;

 private:
  /// The sizes of a sum's pieces, as in an EdgeWord.
  using Sizes = std::vector<std::int64_t>;

  struct Addend {
    Tensor numbers;
    Sizes sizes;
    std::function<void()> done;
    Operation operation;
  };

  Result<std::unique_ptr<Link>> begin(Fabric& fabric, const LinkId& id) override {
    return fabric.begin_adding(id, member_);
  }
  std::size_t pieces() const override { return static_cast<std::size_t>(member_.of); }
  void drop_line() override;

  void take_sum(const Lock& lock, const ReadEdgeWord& read);
  Status say_next(Lock& lock);
  bool may_post() const;
  Status post_next(Lock& lock, EdgeTime now);
  void pop_done(Lock& lock);

  const LinkMember member_;
  const Poison& poison_;

  Line<Addend> line_;                     // The first `posted_` sums are posted; of
  std::size_t posted_ = 0;                // the next ones, up to `said_`, the other
  std::size_t said_ = 0;                  // ends know; the rest is new.
  std::vector<std::deque<Sizes>> heard_;  // Announced sums, by member.

  std::vector<Piece> pieces_;  // Used by the fabric's thread.
};

/// The handle that the program holds on an AddingEnd.
class EdgeAdder final : public Adder {
 public:
  explicit EdgeAdder(std::shared_ptr<AddingEnd> end) : end_(std::move(end)) {}
  /// Sums that were added are still exchanged, so that no other device waits for them.
  ~EdgeAdder() override { end_->silence(); }

  Status add(Tensor numbers, std::span<const std::int64_t> sizes,
             std::function<void()> done) override {
    return end_->add(std::move(numbers), sizes, std::move(done));
  }

 private:
  std::shared_ptr<AddingEnd> end_;
};

}  // namespace troupe::transport
