#pragma once

#include <caf/all.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actors/caf_shim.h"
#include "actors/nodes/node_attempt.h"
#include "actors/nodes/wire_message.h"
#include "actors/play/players.h"
#include "core/memory/memory_pool.h"

namespace troupe::actors {

/// The thread that opens devices closes them, too.
inline constexpr const char* devices_aside = "devices";

/// The attempt itself. It outlives a dropped NodeAttempt until its last actor is gone.
class NodeAttempt::Work : public std::enable_shared_from_this<Work> {
 public:
  Work(Context context, NodeAttemptOrder order)
      : context_(context), order_(std::move(order)), memory_(std::make_unique<MemoryPool>()) {
    link_->work = this;
  }

  Phase phase() const { return phase_; }
  void prepare(std::function<void(Status)> then);
  void start(const Start& start);
  Status deliver(transport::Message message);
  void end(std::function<void()> then);
  void drop(std::shared_ptr<Work> self);

 private:
  /// An event of a node attempt.
  enum class Event : std::uint8_t {
    opened,
    start_asked,
    connected,
    loaded,
    failed,
    end_asked,
    gone
  };

  struct Step {
    Phase from;
    Event event;
    Phase to;
  };

  /// All steps of a node attempt. An event without a step is ignored.
  static constexpr Step steps[] = {
      {Phase::preparing, Event::opened, Phase::prepared},
      {Phase::preparing, Event::failed, Phase::failed},
      {Phase::preparing, Event::end_asked, Phase::ending},
      {Phase::prepared, Event::start_asked, Phase::connecting},
      {Phase::prepared, Event::failed, Phase::failed},
      {Phase::prepared, Event::end_asked, Phase::ending},
      {Phase::connecting, Event::connected, Phase::loading},
      {Phase::connecting, Event::failed, Phase::failed},
      {Phase::connecting, Event::end_asked, Phase::ending},
      {Phase::loading, Event::loaded, Phase::playing},
      {Phase::loading, Event::failed, Phase::failed},
      {Phase::loading, Event::end_asked, Phase::ending},
      {Phase::playing, Event::end_asked, Phase::ending},
      {Phase::failed, Event::end_asked, Phase::ending},
      {Phase::ending, Event::gone, Phase::ended},
  };

  /// Another process of the attempt that cannot be reached any more.
  struct LostProcess {
    int process = 0;  // The number in the placement.
    std::string why;
  };

  /// A message of another process that came before the players exist.
  struct Waiting {
    int from = 0;
    PlayerId to;
    WireMessage wire_message;
  };

  bool enter(Event event);
  void aside(const std::string& name, Loop::Task work, Loop::Task then);
  void post(Loop::Task task);
  void stop_timers();

  Status take_home();
  std::vector<DataHere> data_here() const;
  bool is_here(PlayerId player) const;
  LinkedDevices linked() const;
  Route route();
  std::string name_of(int process) const;

  Status check_start() const;
  Status give_states();
  void load();
  void look_soon();
  void look_for_states();
  Result<StartPoint> own_state(PlayerId optimizer) const;
  Result<StartPoint> read_state(PlayerId optimizer, WireMessage wire_message) const;
  Status check_state(const Snapshot& state, PlayerId optimizer, int from) const;
  Error missing(PlayerId optimizer, const std::string& why) const;
  std::optional<WireMessage> take_state(PlayerId optimizer);
  void play();
  void measure_later(std::chrono::nanoseconds wait);
  void fail(const std::string& why);

  Status tell(const transport::Message& message);
  void ended(PlayerId player, const std::string& why);
  void lost(int process, const std::string& why);
  std::optional<LostProcess> lost() const;
  Status deliver(int from, PlayerId to, WireMessage wire_message);
  void arrived(int from, PlayerId to, WireMessage wire_message);

  void await_actors();
  void settle();
  void let_go();
  void close();
  void close_home();

  const Context context_;
  NodeAttemptOrder order_;
  std::unique_ptr<MemoryPool> memory_;  // For received data; outlives all members below.
  std::shared_ptr<RunHome> home_;
  RunSpecPtr spec_;
  std::optional<RunBounds> bounds_;
  std::shared_ptr<StateStore> store_;  // Null: no states are kept.
  const std::shared_ptr<caf_shim::ActorGroup> group_ = std::make_shared<caf_shim::ActorGroup>();

  // Used by the loop.
  Phase phase_ = Phase::preparing;
  bool is_working_ = false;  // Whether work is under way aside.
  Start start_;
  std::map<PlayerId, StartPoint> states_;  // The states that have come for optimizers here.
  std::optional<Loop::Timer> timer_;       // Ends the wait for states.
  std::optional<Loop::Timer> measuring_;   // Until the next report of paths.
  std::vector<std::function<void()>> when_ended_;

  /// Leads to an attempt that has not been dropped, without owning it.
  struct Link {
    std::mutex mutex;
    Work* work = nullptr;
  };
  const std::shared_ptr<Link> link_ = std::make_shared<Link>();

  // Held while the head is told something, and while a task is posted.
  std::mutex telling_;
  bool is_dropped_ = false;

  mutable std::recursive_mutex gate_;  // Held while players receive messages.
  std::map<PlayerId, caf::actor> here_;
  std::map<PlayerId, caf::actor> proxies_;
  caf::actor warden_;  // Without this reference it would end.
  bool is_open_ = false;
  bool is_closed_ = false;  // It ends: messages are dropped.
  std::vector<Waiting> waiting_;
  std::optional<LostProcess> lost_;  // The first one.

  std::unique_ptr<Mesh> mesh_;  // Last: its threads use the members above.
};

}  // namespace troupe::actors
