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

/// Edges: channels whose tensors go from device to device by links, while their heads and shapes go
/// ahead as words, by ordinary channels.
///
///     sender                                        receiver
///        <-- grant: post so many -------------------- has places for them
///        posts the send of a parcel that was granted
///        --- parcel: head and shapes --------------->
///                                                     posts the receive of its tensors
///        === tensors ===============================> done: the listener has the parcel
///        <-- grant: one more, and so many arrived ---
///
/// An edge may also have an end at each of several devices, and add up what each of them has:
///
///     each end                                      all others
///        has its numbers
///        --- sum: the sizes of its pieces ----------->
///        <-- sum ------------------------------------ of every one
///        posts
///        === its pieces, and the sum of one =======>  done: each has the sum of one piece
///
/// So an operation that occupies a device waits for a word and the other threads at most, never for
/// a schedule. To form them takes care, since to make links and to connect them waits for the
/// device: a device warms up its links once it has all of them, one after the other by their
/// numbers, which all devices see in the same order; and grants and posts nothing before all are
/// warm. So whoever waits, waits for an edge with a lower number, or for one who occupies no
/// device.
///
/// When anything fails, all edges of an epoch end: the poison word is written, and their links are
/// aborted together. The next epoch has new edges, with new links.
namespace troupe::transport {

class EdgeEnd;

/// One end of an edge that adds up. So many ends as there are, so many pieces has each sum.
class Adder {
 public:
  virtual ~Adder() = default;

  /// Returns at once. The k-th call at one end is of the k-th sum at all: in `numbers`, which are
  /// of the device's memory and which it has made, lie pieces of these sizes one after another, the
  /// same at all ends. Once `done` is called, on the thread that calls the fabric, member k has the
  /// sum of all pieces k, in its own; what the others are is not said. Nobody else may touch them
  /// before. An error says that the edge has ended, or does so by it.
  virtual Status add(Tensor numbers, std::span<const std::int64_t> sizes,
                     std::function<void()> done) = 0;
};

/// When a listener has a parcel.
enum class HandedOver : std::uint8_t {
  at_end,    // Once its numbers are there.
  at_issue,  // Once they will be before whatever the device is given from then on. Garbage is there
             // where the epoch is aborted meanwhile: such work looks at the poison word.
};

/// How long each wait may take. What leaves no room on a device for an operation counts into it.
struct EdgePatience {
  std::chrono::milliseconds form{30000};      // Until an edge is ready.
  std::chrono::milliseconds exchange{30000};  // Until a parcel is granted; and from then on, done.
  std::chrono::milliseconds order{5000};      // After a failure, until somebody has all aborted.
  std::chrono::milliseconds end{5000};        // Until the device has let go of what was aborted.
};

struct EdgesOrder {
  Epoch epoch;
  MemoryPool* memory = nullptr;  // Of the device; outlives the edges and all that comes.
  std::size_t places = 2;        // So many parcels of an edge has the device at once.
  EdgePatience patience;
  std::function<void()> wake;  // On any thread: there is something to advance.
};

/// What both ends of an edge agree upon, and how this one speaks to the other.
struct EdgeTerms {
  std::uint64_t number = 0;  // Among all edges of the run.
  Bound bound;
  Sender* words = nullptr;  // Spoken to until the edges are over.
};

/// Likewise of an edge that adds up.
struct SumTerms {
  std::uint64_t number = 0;
  LinkMember member;            // Which of the ends it is.
  std::vector<Sender*> others;  // To each of the others, in any order.
};

/// Whether an edge takes such a parcel: its head and shapes go ahead as one word.
bool fits_an_edge(std::size_t head_bytes, std::size_t tensors);

/// Words that were refused.
struct EdgesCounters {
  std::uint64_t garbage = 0;
  std::uint64_t other_epoch = 0;
  std::uint64_t unknown_edge = 0;
};

/// All edges that one device has in one epoch.
class Edges {
 public:
  enum class Phase : std::uint8_t {
    gathering,  // They are being opened.
    forming,
    ready,
    failed,  // One has ended as it should not; nothing is posted any more.
    ending,  // All were aborted, and the device lets go of them.
    over,    // It has.
    stuck,   // It has not in time, and keeps their memory: the process had better end.
  };

  Edges(Fabric& fabric, EdgesOrder order);
  /// Where begun, it is over.
  ~Edges();
  Edges(const Edges&) = delete;
  Edges& operator=(const Edges&) = delete;

  /// Before the other end can send a word. Listener and `on_end` are called by advance(). What is
  /// sent lies in the device's memory, and the device has made it: nothing waits for that here.
  std::unique_ptr<Sender> open_sender(const EdgeTerms& terms, OnEnd on_end);
  std::unique_ptr<Receiver> open_receiver(const EdgeTerms& terms, HandedOver handed_over,
                                          Listener listener);
  /// Where the fabric adds up. At most `places` sums may wait.
  std::unique_ptr<Adder> open_adder(const SumTerms& terms, OnEnd on_end);

  // On any thread.

  /// All have been opened: form them.
  void begin();
  /// A word of another end has come.
  void hear(std::span<const std::byte> bytes);
  /// Voids the epoch: from here on nothing of it arrives, and nothing that looks at the poison word
  /// is done. Also how edges end in peace, once their senders are closed.
  void abort(const std::string& why);
  Phase phase() const { return phase_; }
  /// Waits while it is in one of these phases, at most until then; the phase after that. Whoever
  /// is to hear why it has failed has heard it by then. Not on the thread that calls the fabric.
  Phase wait_while(std::initializer_list<Phase> phases, EdgeTime until) const;
  EdgesCounters counters() const;

  /// By the thread that calls the fabric and gives no work to a device, when it was woken and now
  /// and then. True where something is under way, so that it is to be called again soon.
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
  std::vector<std::shared_ptr<EdgeEnd>> ends_;  // By number; stands still once begun.
  std::atomic<Phase> phase_{Phase::gathering};
  EdgeTime deadline_ = EdgeTime::max();  // Of a phase that waits for others.

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;  // The phase.
  std::optional<std::string> aborted_;
  EdgesCounters counters_;
};

}  // namespace troupe::transport
