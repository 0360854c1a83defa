#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/link_probe.h"
#include "actors/nodes/node.h"
#include "actors/play/state_store.h"
#include "actors/play/states_of.h"
#include "transport/control/conversation.h"

namespace troupe::actors {

/// Does its work on one loop, in the order of the news. No task waits.
class Node::Work {
 public:
  /// News for the node's loop.
  struct Connected {};
  struct Lost {
    std::string why;
  };
  struct Leave {
    std::string reason;
  };
  using News = std::variant<Connected, Lost, Leave, transport::Message>;

  Work(const Context& context, NodeOptions options)
      : env_(context.env),
        network_(context.network),
        system_(context.system),
        executors_(context.executors),
        options_(std::move(options)),
        term_(options_.term),
        term_proof_(options_.term_proof) {}

  Status start();
  ~Work();

  void hear(News news);
  /// Sends a message to the head, if connected.
  void tell(transport::Message message) { (void)say(std::move(message)); }

 private:
  struct Here {
    std::uint64_t epoch = 0;
    std::optional<std::chrono::nanoseconds> head_patience = {};  // Known once it has opened.
    std::unique_ptr<NodeAttempt> node_attempt = nullptr;
    bool is_ending = false;
    std::optional<transport::Message> next = {};  // An order to prepare, which waits for the end.

    bool has_part() const { return !is_ending || next; }
  };

  /// The states of a run, from one attempt to the next.
  struct Memory {
    StatesOf of;
    int nodes = 1;
    std::chrono::nanoseconds head_patience{};
    std::shared_ptr<StateStore> state_store;
    std::optional<Env::Time> until;  // When to drop them; empty: keep.
  };

  // The connection, the news that come by it, and answers to the head: node.cpp.

  Status dial();
  void head_is_away(const std::string& why);
  void beat_later();
  void go_on();
  void next();
  void set_patience();
  bool has_news() const;
  std::optional<Env::Time> next_patience() const;
  void lose_patience(Env::Time now);
  void heard(Connected&) { join(); }
  void heard(transport::Message& message);
  void act_on(transport::Message& message);
  void refuse(const transport::Message& message);
  void refused(const transport::Message& message);
  void apply_fault(const transport::Message& message);
  void tell_stacks(const transport::Message& message);
  void open_doors(const transport::Message& message);
  void probe_links(const transport::Message& message);
  void part(std::chrono::nanoseconds time);

  // Joining and leaving: node_membership.cpp.

  void join();
  void come_anew(const std::string& why);
  void heard(Lost& lost);
  void find_head();
  void wait_for_head();
  void heard(Leave& leave);
  void retired(const transport::Message& message);
  void welcome(const transport::Message& message);
  void reject(const transport::Message& message);
  void unfit(const transport::Message& message);
  void dismiss(const transport::Message& message);
  void retire(const std::string& why);

  // Attempts of runs, and the states between them: node_runs.cpp.

  NodeAttempt* attempt_of(const transport::Message& message);
  bool has_part_in(const std::string& run) const {
    const auto found = node_attempts_.find(run);
    return found != node_attempts_.end() && found->second.has_part();
  }
  bool has_part() const {
    return std::ranges::any_of(node_attempts_,
                               [](const auto& attempt) { return attempt.second.has_part(); });
  }
  void end_attempt(const std::string& run);
  void attempt_ended(const std::string& run);
  void end_attempts(Loop::Task then);
  void prepare(const transport::Message& message);
  void begin_attempt(const transport::Message& message);
  std::shared_ptr<StateStore> state_store_of(const std::string& run, const StatesOf& of, int nodes,
                                             RunHome& home);
  void start(const transport::Message& message);
  void stop(const transport::Message& message);
  void forget(const transport::Message& message) { state_stores_.erase(message.run); }

  Status say_about(const transport::Message& order, transport::Message message) {
    message.run = order.run;
    message.epoch = order.epoch;
    return say(std::move(message));
  }
  Status say(transport::Message message) { return conversation()->say(std::move(message)); }

  std::shared_ptr<transport::Conversation> new_conversation() const {
    return std::make_shared<transport::Conversation>(transport::new_incarnation(env_));
  }
  std::shared_ptr<transport::Conversation> conversation() const {
    const std::lock_guard lock(mutex_);
    return conversation_;
  }

  Env& env_;
  transport::Network& network_;
  caf_shim::System& system_;
  Executors& executors_;
  NodeOptions options_;
  const Env::Time started_ = env_.now();  // Its speed was measured just before.

  // Used by the node's loop.
  std::uint64_t term_;
  std::string term_proof_;
  std::map<std::string, Memory> state_stores_;  // Keyed by run.
  std::map<std::string, Here> node_attempts_;   // Keyed by run.
  std::vector<Loop::Task> when_ended_;          // Run once no attempt is left.
  bool was_welcome_ = false;                    // The head has welcomed it,
  bool is_welcome_ = false;                     // and has done so on this connection.
  bool leaving_ = false;
  bool comes_anew_ = false;           // Its attempts end before it joins as a new node,
  bool retires_ = false;              // or before it retires.
  bool is_dialed_ = false;            // News wait as long as there is no client.
  std::optional<Loop::Timer> timer_;  // The timer of the first timeout.
  bool is_dismissed_ = false;
  std::optional<Env::Time> told_away_;       // When it last reported an unreachable head.
  std::optional<Env::Time> lost_at_;         // When a head was lost that runs wait for,
  std::optional<Env::Time> headless_until_;  // and how long they wait.

  mutable std::mutex mutex_;
  std::shared_ptr<transport::Conversation> conversation_ = new_conversation();
  std::deque<News> news_;
  std::unique_ptr<transport::ControlClient> client_;
  const std::unique_ptr<Loop> loop_ = env_.make_loop({"node"});
  const std::unique_ptr<Loop> heart_ = env_.make_loop({"heart"});
  LinkProbe link_probe_{{env_, *loop_, network_, options_.interface + ":0",
                         options_.carriers == Carriers::shm_and_tcp}};
};

}  // namespace troupe::actors
