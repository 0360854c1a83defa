#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

/// How a device's queues come to do what was put into them. Any thread; one does something at a
/// time.
namespace cuda_on_cores {

/// How queues behave.
struct Temper {
  std::uint32_t seed = 1;
  /// Who asks for an event lets its queue do so many pieces of work at most; how many is drawn.
  /// With 0 nothing is done but for those who wait.
  unsigned most_at_a_look = 3;
  std::optional<std::uint64_t> fails_after;  // So many pieces of work; and all others with it.
  std::optional<std::uint64_t> stops_after;  // Then it does nothing any more, and never says so.
};
/// For those that are made from now on; none has failed.
void set_temper(const Temper& temper);
/// All queues fail: whoever waits for one that has stopped goes on.
void let_all_fail();

class Queue;

/// A place in a queue, which may be put elsewhere as often as one likes.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

 private:
  friend class Queue;
  /// Outlives it, since queues come by it yet.
  struct State {
    Queue* queue = nullptr;  // Where it was put last.
    std::uint64_t put = 0, reached = 0;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};
/// That were ever made,
std::uint64_t events_made();
/// of them those that are left,
std::int64_t events_left();
/// and how often a queue was told to wait for one.
std::uint64_t waits_put();

/// What was put into a queue that recorded: its work as it was told then, none of it done.
struct Recording {
  std::vector<std::function<void()>> works;
};

/// A recording that can be put into queues, again and again; into another one only when it is done
/// in the one before.
class PlayableRecording {
 public:
  explicit PlayableRecording(const Recording& recording);
  /// Ends the process where a queue has yet to do it.
  ~PlayableRecording();
  PlayableRecording(const PlayableRecording&) = delete;
  PlayableRecording& operator=(const PlayableRecording&) = delete;

 private:
  friend class Queue;
  struct State {
    Recording recording;
    Queue* queue = nullptr;  // Where it was put last.
    std::uint64_t put = 0, done = 0;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};
/// That were made,
std::uint64_t recordings_made();
/// and how often one was played.
std::uint64_t recordings_played();

/// Whether this thread records; then what CUDA refuses to do meanwhile spoils the recording.
bool spoils_recording();
/// How often that was.
std::uint64_t recordings_spoilt();

enum class Answer { done, not_yet, failed };

/// Work that waits until somebody waits for it, or asks how far it is.
class Queue {
 public:
  Queue();
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // False, or `failed`, where it has failed.

  bool put(std::function<void()> work);
  bool put(Event& event);
  /// What comes after that waits until the event is reached where it was put last.
  bool put_wait(Event& event);
  bool put(PlayableRecording& playable);
  /// What comes after waits until this has said that it is done. It is asked now and then, as what
  /// it waits for is another process' and wakes nobody here.
  bool put_until(std::function<bool()> is_done);
  bool work_off();
  static Answer ask(const Event& event);

  /// A library goes on with it on its own, until it lets go: whoever puts anything into it
  /// meanwhile ends the process.
  void keep_for_library();
  void let_go();

  /// What this thread puts into it from now on is recorded.
  bool begin_recording();
  /// Null where the recording is spoilt.
  std::unique_ptr<Recording> end_recording();

 private:
  using Piece = std::function<bool()>;  // False: not yet.

  bool add(Piece piece);
  bool step();

  const Temper temper_;
  std::mt19937 random_;
  std::deque<Piece> pieces_;
  bool is_kept_ = false;  // For a library.
  std::uint64_t done_ = 0;
  std::unique_ptr<Recording> recording_;
};

/// Queues that are left of all that were made.
std::int64_t queues_left();

/// The names of ranges on all threads that were begun since somebody asked last.
std::vector<std::string> take_ranges();
/// And how many are open.
int open_ranges();
void begin_range(const char* name);
void end_range();

}  // namespace cuda_on_cores
