#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transport/channels/credit.h"
#include "transport/links/edge_end.h"

namespace troupe::transport {

/// The sending end of an edge.
class SendingEnd final : public EdgeEnd {
 public:
  SendingEnd(EdgesOrder order, const EdgeTerms& terms, OnEnd on_end);

  /// These implement Sender, for any thread.
  Tensor lend(const Shape& shape, DType type);
  Status send(std::span<const std::byte> head, std::span<const Tensor> tensors);
  Status close(std::chrono::milliseconds patience);
  /// Called when the Sender handle is destroyed.
  void cut();

  void hear(const ReadEdgeWord& read) override;
  Status exchange(EdgeTime now) override;
  bool busy() override;

 private:
  Result<std::unique_ptr<Link>> begin(Fabric& fabric, const LinkId& id) override {
    return fabric.begin(id, LinkSide::sends);
  }
  void drop_line() override;

  struct Outgoing {
    std::vector<std::byte> front;
    std::vector<Tensor> tensors;
    Operation operation;
  };

  void take_grant(Lock& lock, const EdgeWord& word);
  void pop_done();
  void drop_waiting();
  bool may_post();
  Status post_next(Lock& lock, EdgeTime now);
  Status check_deadlines(EdgeTime now);
  Status check_arrivals(EdgeTime now);

  Credit credit_;
  Line<Outgoing> line_;  // Posted parcels, then waiting ones.
  std::size_t posted_ = 0;
  std::uint64_t next_ = 0;  // The number of the next parcel to post.
  std::uint64_t granted_ = 0;
  std::uint64_t arrived_ = 0;
  bool closing_ = false;

  // Used by the fabric's thread.
  std::uint64_t arrived_before_ = 0;
  EdgeTime arrival_deadline_ = EdgeTime::max();  // For the next parcel to arrive.
  std::vector<Piece> pieces_;
};

/// The handle that the program holds on a SendingEnd.
class EdgeSender final : public Sender {
 public:
  explicit EdgeSender(std::shared_ptr<SendingEnd> end) : end_(std::move(end)) {}
  ~EdgeSender() override { end_->cut(); }

  Tensor lend(const Shape& shape, DType type) override { return end_->lend(shape, type); }
  Status send(std::span<const std::byte> head, std::span<const Tensor> tensors) override {
    return end_->send(head, tensors);
  }
  Status close(std::chrono::milliseconds patience) override { return end_->close(patience); }
  ChannelCounters counters() const override { return end_->counters(); }

 private:
  std::shared_ptr<SendingEnd> end_;
};

}  // namespace troupe::transport
