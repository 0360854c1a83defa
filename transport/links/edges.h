#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transport/channels/channel.h"
#include "transport/channels/door.h"
#include "transport/links/edge_operation.h"
#include "transport/links/link.h"

/// Edges are channels whose tensors go from device to device by links, while heads and shapes go
/// ahead as words, by ordinary channels.
///
///     sender                                        receiver
///        <-- grant: post n parcels ----------------- has room for n parcels
///        posts the send of a granted parcel
///        --- parcel: head and shapes --------------->
///                                                     posts the receive of its tensors
///        === tensors ===============================> done: the listener has the parcel
///        <-- grant: one more; n have arrived --------
///
/// An edge may also have an end at each of several devices and sum what each of them has:
///
///     each end                                      all other ends
///        has its tensor
///        --- sum: the sizes of its pieces ----------->
///        <-- sum ------------------------------------ from every other end
///        posts the operation
///        === its pieces, the sum of one piece ======> done: each has the sum of one piece
///
/// An operation that occupies a device therefore waits only for a word and for other threads, never
/// for a schedule. Making and connecting links waits for the device. So a device first makes all
/// its links, then warms them up one by one in the order of their numbers, which is the same on all
/// devices. It grants and posts nothing before all are warm. Hence every wait is for an edge with a
/// lower number, or for a device that is not occupied.
///
/// If anything fails, all edges of an attempt end: the poison word is written, and their links are
/// aborted together. The next attempt makes new edges and new links.
namespace troupe::transport {

class EdgeEnd;

/// One end of an edge that sums. Each sum has as many pieces as the edge has ends.
class Adder {
 public:
  virtual ~Adder() = default;

  /// Adds a tensor to the next sum and returns at once. The k-th calls of all ends belong to the
  /// same sum. `numbers` is complete, in device memory, and contains pieces of `sizes`, equal at
  /// all ends. When `done` is called, on the fabric's thread, member k's piece k is the sum of all
  /// pieces k, and its other pieces are undefined. Until then nobody else may touch them. Fails if
  /// the edge has ended, and ends it if too many sums wait.
  virtual Status add(Tensor numbers, std::span<const std::int64_t> sizes,
                     std::function<void()> done) = 0;
};

/// The time at which a listener gets a parcel.
enum class HandedOver : std::uint8_t {
  at_end,    // When its data has arrived.
  at_issue,  // When its data will arrive before all later work of the device. If the attempt is
             // aborted meanwhile, it is garbage, so such work checks the poison word.
};

/// Timeouts. They include the time that an operation waits for room on a device.
struct EdgePatience {
  std::chrono::milliseconds form{30000};  // Until an edge is ready.
  std::chrono::milliseconds exchange{
      30000};                             // Until a parcel is granted, and again until it is done.
  std::chrono::milliseconds order{5000};  // After a failure, until the attempt is aborted.
  std::chrono::milliseconds end{5000};    // Until the device has let go of aborted links.
};

struct EdgesOrder {
  Epoch epoch;
  MemoryPool* memory = nullptr;  // Device memory; must outlive the edges and all received tensors.
  std::size_t places = 2;        // Parcels of an edge that the device may have at once.
  EdgePatience patience;
  std::function<void()> wake;  // Called on any thread when there is something to advance.
};

/// The terms that both ends of an edge agree on, and the channel to the other end.
struct EdgeTerms {
  std::uint64_t number = 0;  // Unique among all edges of the run.
  Bound bound;
  Sender* words = nullptr;  // Used until the edges are over.
};

/// The same for an edge that sums.
struct SumTerms {
  std::uint64_t number = 0;
  LinkMember member;            // This end's number, and the number of ends.
  std::vector<Sender*> others;  // The channels to the other ends, in any order.
};

/// Returns whether an edge can carry such a parcel: its head and shapes must fit into one word.
bool fits_an_edge(std::size_t head_bytes, std::size_t tensors);

/// Counts rejected words.
struct EdgesCounters {
  std::uint64_t garbage = 0;
  std::uint64_t other_epoch = 0;
  std::uint64_t unknown_edge = 0;
};

/// All edges of one device in one attempt.
class Edges {
 public:
  enum class Phase : std::uint8_t {
    gathering,  // Edges are being opened.
    forming,
    ready,
    failed,  // An edge failed; nothing is posted any more.
    ending,  // All links were aborted; the device is letting go of them.
    over,    // The device has let go.
    stuck,   // The device did not let go in time and keeps the memory: end the process.
  };

  Edges(Fabric& fabric, EdgesOrder order);
  /// After begin(), the phase must be `over`.
  ~Edges();
  Edges(const Edges&) = delete;
  Edges& operator=(const Edges&) = delete;

  /// Opens an end. Call it before the other end can send a word. advance() calls the listener and
  /// `on_end`. Sent tensors must be complete and in device memory: edges do not wait for the
  /// device.
  std::unique_ptr<Sender> open_sender(const EdgeTerms& terms, OnEnd on_end);
  std::unique_ptr<Receiver> open_receiver(const EdgeTerms& terms, HandedOver handed_over,
                                          Listener listener);
  /// Requires a fabric that sums. At most `places` sums may wait.
  std::unique_ptr<Adder> open_adder(const SumTerms& terms, OnEnd on_end);

  // Any thread may call the functions below.

  /// Starts to form the edges. All must have been opened.
  void begin();
  /// Handles a word from another end.
  void hear(std::span<const std::byte> bytes);
  /// Voids the attempt: from now on nothing of it arrives, and work that checks the poison word
  /// does nothing. Also ends edges in peace once their senders are closed.
  void abort(const std::string& why);
  Phase phase() const { return phase_; }
  /// Waits until the phase is none of `phases`, or until `until`, and returns the phase. By then
  /// on_end has been called for a failure. Do not call it on the fabric's thread.
  Phase wait_while(std::initializer_list<Phase> phases, EdgeTime until) const;
  EdgesCounters counters() const;

  /// Advances all edges. The fabric's thread calls it after a wake and from time to time; that
  /// thread must give no work to a device. Returns true if it should be called again soon.
  bool advance(EdgeTime now);

 private:
  void add(std::shared_ptr<EdgeEnd> end);
  void enter(Phase phase);
  bool must_end() const;
  bool form(EdgeTime now);
  bool exchange(EdgeTime now);
  bool fail(EdgeEnd& end, const Error& error, EdgeTime now);
  void end_all(EdgeTime now);
  bool await_end(EdgeTime now);

  Fabric& fabric_;
  const EdgesOrder order_;
  std::vector<std::shared_ptr<EdgeEnd>> ends_;  // Sorted by number; fixed after begin().
  std::atomic<Phase> phase_{Phase::gathering};
  EdgeTime deadline_ = EdgeTime::max();  // The timeout of phases that wait.

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;  // Signals a change of the phase.
  std::optional<std::string> aborted_;
  EdgesCounters counters_;
};

}  // namespace troupe::transport
