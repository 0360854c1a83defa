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

/// Which end it is, of which edge.
struct EdgePlace {
  std::uint64_t edge = 0;
  std::uint64_t member = 0;     // Of a sender's and a receiver's end: 0 and 1.
  std::vector<Sender*> others;  // By which it speaks to each of the others.
};

/// What all ends of edges have in common: how they form, speak, and come to their end. Shared by
/// the edges of the device and by the Sender, Receiver or Adder that was given out.
class EdgeEnd {
 public:
  EdgeEnd(EdgesOrder order, EdgePlace place, OnEnd on_end);
  virtual ~EdgeEnd() = default;
  EdgeEnd(const EdgeEnd&) = delete;
  EdgeEnd& operator=(const EdgeEnd&) = delete;

  std::uint64_t number() const { return place_.edge; }

  /// Any thread.
  virtual void hear(const ReadEdgeWord& read) = 0;
  ChannelCounters counters() const;
  /// Nothing is called any more once it returns.
  void silence();

  // On the thread that calls the fabric.

  /// Goes on with the making of the link; an error where that fails or takes too long.
  Status form(Fabric& fabric, EdgeTime now);
  bool formed() const { return link_ && report_.phase == LinkReport::Phase::ready; }
  /// Goes on with the first exchange.
  Status warm_up(EdgeTime now);
  bool warm() const { return report_.ended >= 1; }
  /// All edges of the device are warm.
  virtual Status open() { return Done{}; }
  /// Goes on with the parcels.
  virtual Status exchange(EdgeTime now) = 0;
  /// Whether anything is under way.
  virtual bool busy() = 0;

  /// Nothing more comes or goes; where it had not ended before, that is why.
  void end(ChannelEnd why);
  /// Calls on_end, where it has ended and nobody has been told.
  void tell();
  /// For the link's end; null where it has none.
  std::unique_ptr<Link> give_up_link();
  /// The device has let go: neither does this end hold any memory.
  void release();

 protected:
  using Lock = std::unique_lock<std::mutex>;

  /// To all others. With a `rest` by the device's thread alone.
  Status say(EdgeWordKind kind, std::span<const std::byte> rest = {}, std::uint64_t granted = 0,
             std::uint64_t arrived = 0);
  Status look();
  /// Of the device's memory, what no device uses any more. Throws where there is none.
  BlockHandle take(std::size_t bytes) const;
  void post(std::span<const Piece> pieces);
  /// Whether the link takes another operation.
  bool free() const { return report_.issued == posts_; }
  static Error late(const char* what, std::chrono::milliseconds patience);

  /// Of the link, by end 0.
  void take_name(const Lock& lock, std::span<const std::byte> name);
  /// A peer is not sane: the next step on the device's thread says so.
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
  bool told_ = false;    // Of the end; or nobody wants to know.
  bool silent_ = false;  // Nobody wants to hear anything.
  ChannelCounters counters_;

  // Of the device's thread.
  std::unique_ptr<Link> link_;
  LinkReport report_;
  std::uint64_t posts_ = 0;

 private:
  Status begin_link(Fabric& fabric);
  virtual Result<std::unique_ptr<Link>> begin(Fabric& fabric, const LinkId& id) = 0;
  /// Of the first exchange.
  virtual std::size_t pieces() const { return 1; }
  virtual void drop_line() = 0;

  bool calling_ = false;
  std::optional<std::string> mistake_;
  EdgeTime deadline_ = EdgeTime::max();  // Of the forming.
  BlockHandle token_;                    // What the first exchange sends.
  std::vector<std::byte> word_;          // What was said last.
};

}  // namespace troupe::transport
