#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

/// The scheduling of simulated queues. Any thread may call these functions; only one thread works
/// at a time.
namespace cuda_on_cores {

/// The behavior of queues.
struct Temper {
  std::uint32_t seed = 1;
  /// A query of an event lets its queue do at most this many pieces of work; the number is random.
  /// With 0, queues work only while somebody waits.
  unsigned most_at_a_look = 3;
  // After this many pieces of work the queue and all others fail.
  std::optional<std::uint64_t> fails_after;
  // After this many pieces of work the queue hangs silently.
  std::optional<std::uint64_t> stops_after;
};
/// Applies to queues that are made from now on; clears failures.
void set_temper(const Temper& temper);
/// Makes all queues fail, so that threads which wait for a hanging queue continue.
void let_all_fail();

class Queue;

/// A position in a queue. An event can be put into queues repeatedly.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

 private:
  friend class Queue;
  /// Outlives the event, since queues may still reach it.
  struct State {
    Queue* queue = nullptr;  // The queue that it was put into last.
    std::uint64_t put = 0, reached = 0;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};
/// Returns how many events were ever made.
std::uint64_t events_made();
/// Returns how many events exist.
std::int64_t events_left();
/// Returns how often a queue was told to wait for an event.
std::uint64_t waits_put();
/// Returns how often a kernel was put into a queue.
std::uint64_t kernels_put();
void count_kernel();
/// Returns how often the host waited for a queue to become empty.
std::uint64_t host_waits();
void count_host_wait();

/// The work that was put into a recording queue, with its arguments. None of it was done.
struct Recording {
  std::vector<std::function<void()>> works;
};

/// A recording that can be put into queues repeatedly. It can go into another queue only after the
/// previous queue has done it.
class PlayableRecording {
 public:
  explicit PlayableRecording(const Recording& recording);
  /// Ends the process if a queue has not done it yet.
  ~PlayableRecording();
  PlayableRecording(const PlayableRecording&) = delete;
  PlayableRecording& operator=(const PlayableRecording&) = delete;

 private:
  friend class Queue;
  struct State {
    Recording recording;
    Queue* queue = nullptr;  // The queue that it was put into last.
    std::uint64_t put = 0, done = 0;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};
/// Returns how many were made.
std::uint64_t recordings_made();
/// Returns how often one was played.
std::uint64_t recordings_played();

/// Returns whether this thread records; if so, the refused call invalidates the recording.
bool spoils_recording();
/// Returns how often a recording was invalidated.
std::uint64_t recordings_spoilt();

enum class Answer { done, not_yet, failed };

/// A queue whose work runs only when somebody waits for it or queries an event.
class Queue {
 public:
  Queue();
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // These functions return false, or `failed`, if the queue has failed.

  bool put(std::function<void()> work);
  bool put(Event& event);
  /// Makes all later work wait until the event is reached at its last position.
  bool put_wait(Event& event);
  bool put(PlayableRecording& playable);
  /// Makes all later work wait until `is_done` returns true. It is polled, since it waits for
  /// another process, which wakes nobody here.
  bool put_until(std::function<bool()> is_done);
  bool work_off();
  static Answer ask(const Event& event);

  /// Reserves the queue for a library until let_go(). Putting anything into it meanwhile ends the
  /// process.
  void keep_for_library();
  void let_go();

  /// Records all work that this thread puts into the queue from now on.
  bool begin_recording();
  /// Returns null if the recording is invalid.
  std::unique_ptr<Recording> end_recording();

 private:
  using Piece = std::function<bool()>;  // Returns false if it is not done yet.

  bool add(Piece piece);
  bool step();

  const Temper temper_;
  std::mt19937 random_;
  std::deque<Piece> pieces_;
  bool is_kept_ = false;  // Reserved for a library.
  std::uint64_t done_ = 0;
  std::unique_ptr<Recording> recording_;
};

/// Returns how many queues exist.
std::int64_t queues_left();

/// Returns the names of ranges that began on all threads since the last call.
std::vector<std::string> take_ranges();
/// Returns how many ranges are open.
int open_ranges();
void begin_range(const char* name);
void end_range();

}  // namespace cuda_on_cores
