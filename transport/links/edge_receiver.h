#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "transport/channels/credit.h"
#include "transport/channels/frame.h"
#include "transport/links/edge_end.h"

namespace troupe::transport {

/// The receiving end of an edge.
class ReceivingEnd final : public EdgeEnd {
 public:
  ReceivingEnd(EdgesOrder order, const EdgeTerms& terms, HandedOver handed_over, Listener listener,
               const Poison& poison);

  /// Called when the Receiver handle is destroyed.
  void let_go();

  void hear(const ReadEdgeWord& read) override;
  Status open() override;
  Status exchange(EdgeTime now) override;
  bool busy() override;

 private:
  Result<std::unique_ptr<Link>> begin(Fabric& fabric, const LinkId& id) override {
    return fabric.begin(id, LinkSide::receives);
  }
  void drop_line() override;

  struct Incoming {
    std::size_t head_bytes = 0;
    std::size_t payload_bytes = 0;
    std::vector<std::byte> front;  // The front without its header.
    std::vector<TensorPlan> plans;
    BlockHandle payload;
    std::vector<Tensor> tensors;
    Operation operation;
  };

  void take_parcel(Lock& lock, std::span<const std::byte> front);
  Status post_next(Lock& lock, EdgeTime now);
  bool may_deliver();
  void deliver_next(Lock& lock);
  Status pop_done(Lock& lock);
  void take_last_word();

  const Bound bound_;
  const HandedOver handed_over_;
  const Listener listener_;
  const Poison& poison_;

  Line<Incoming> line_;        // Posted parcels, then announced ones.
  std::size_t posted_ = 0;     // Posted parcels of `line_`,
  std::size_t delivered_ = 0;  // and delivered ones.
  std::uint64_t announced_ = 0;
  std::uint64_t arrived_ = 0;
  std::uint64_t granted_ = 0;
  std::optional<ChannelEnd> last_word_;  // The last word of the sender.

  std::vector<Piece> pieces_;  // Used by the fabric's thread.
};

/// The handle that the program holds on a ReceivingEnd.
class EdgeReceiver final : public Receiver {
 public:
  explicit EdgeReceiver(std::shared_ptr<ReceivingEnd> end) : end_(std::move(end)) {}
  ~EdgeReceiver() override { end_->let_go(); }

  ChannelCounters counters() const override { return end_->counters(); }

 private:
  std::shared_ptr<ReceivingEnd> end_;
};

}  // namespace troupe::transport
