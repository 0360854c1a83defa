#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transport/channels/channel.h"
#include "transport/links/edge_operation.h"
#include "transport/links/edge_word.h"
#include "transport/links/edges.h"
#include "transport/links/link.h"

namespace troupe::transport {

/// The identity of an end: its edge and its number within the edge.
struct EdgePlace {
  std::uint64_t edge = 0;
  std::uint64_t member = 0;     // 0 is the sender's end and 1 the receiver's.
  std::vector<Sender*> others;  // The channels to the other ends.
};

/// The common part of all ends of edges: how they form, talk and end. The device's Edges and the
/// Sender, Receiver or Adder that was handed out share it.
class EdgeEnd {
 public:
  EdgeEnd(EdgesOrder order, EdgePlace place, OnEnd on_end);
  virtual ~EdgeEnd() = default;
  EdgeEnd(const EdgeEnd&) = delete;
  EdgeEnd& operator=(const EdgeEnd&) = delete;

  std::uint64_t number() const { return place_.edge; }

  /// Handles a word from another end, on any thread.
  virtual void hear(const ReadEdgeWord& read) = 0;
  ChannelCounters counters() const;
  /// When it returns, no callback is called any more.
  void silence();

  // The functions below are called on the fabric's thread.

  /// Continues to make the link. Fails if that fails or takes too long.
  Status form(Fabric& fabric, EdgeTime now);
  bool formed() const { return link_ && report_.phase == LinkReport::Phase::ready; }
  /// Continues the first exchange.
  Status warm_up(EdgeTime now);
  bool warm() const { return report_.ended >= 1; }
  /// Called when all edges of the device are warm.
  virtual Status open() { return Done{}; }
  /// Continues to exchange parcels.
  virtual Status exchange(EdgeTime now) = 0;
  /// Returns whether operations are under way.
  virtual bool busy() = 0;

  /// Ends the edge. `why` is the reason unless it has ended before.
  void end(ChannelEnd why);
  /// Calls on_end if the edge has ended and nobody was told yet.
  void tell();
  /// Gives the link to its fabric, or returns null if there is none.
  std::unique_ptr<Link> give_up_link();
  /// Frees all memory, after the device has let go of it.
  void release();

 protected:
  using Lock = std::unique_lock<std::mutex>;

  /// Sends a word to all other ends. Only the fabric's thread may pass a `rest`.
  Status say(EdgeWordKind kind, std::span<const std::byte> rest = {}, std::uint64_t granted = 0,
             std::uint64_t arrived = 0);
  Status look();
  /// Takes device memory that no device uses any more. Throws std::bad_alloc if there is none.
  BlockHandle take(std::size_t bytes) const;
  void post(std::span<const Piece> pieces);
  /// Returns whether the link can take another operation.
  bool free() const { return report_.issued == posts_; }
  static Error late(const char* what, std::chrono::milliseconds patience);

  /// Stores the link's name, which end 0 sends.
  void take_name(const Lock& lock, std::span<const std::byte> name);
  /// Notes that a peer violates the protocol; the fabric's thread reports it in its next step.
  void blame(const Lock& lock, std::string text);
  Status take_mistake();
  template <class Call>
  void call(Lock& lock, Call&& call) {
    calling_ = true;
    lock.unlock();
    call();
    lock.lock();
    calling_ = false;
    changed_.notify_all();
  }

  const EdgesOrder order_;
  const EdgePlace place_;
  const OnEnd on_end_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<LinkId> id_;
  std::optional<ChannelEnd> end_;
  bool told_ = false;    // The end was reported, or nobody wants to know.
  bool silent_ = false;  // No callback may be called any more.
  ChannelCounters counters_;

  // Used by the fabric's thread.
  std::unique_ptr<Link> link_;
  LinkReport report_;
  std::uint64_t posts_ = 0;

 private:
  Status begin_link(Fabric& fabric);
  virtual Result<std::unique_ptr<Link>> begin(Fabric& fabric, const LinkId& id) = 0;
  /// Returns the number of pieces of the first exchange.
  virtual std::size_t pieces() const { return 1; }
  virtual void drop_line() = 0;

  bool calling_ = false;
  std::optional<std::string> mistake_;
  EdgeTime deadline_ = EdgeTime::max();  // The time by which the edge must be formed.
  BlockHandle token_;                    // The data of the first exchange.
  std::vector<std::byte> word_;          // The buffer of say().
};

}  // namespace troupe::transport
