#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/link_probe.h"
#include "actors/nodes/node_pool.h"
#include "apps/client/one_answer.h"
#include "apps/head/head_run.h"
#include "core/env.h"
#include "transport/wire/wire.h"

namespace troupe::apps {

/// The parts of a head that probes use. They outlive them.
struct LinkQuestionsContext {
  Env& env;
  actors::NodePool& nodes;
  std::function<std::shared_ptr<HeadRun>(const std::string& name)> find_run;
  /// Returns why no run of that name plays.
  std::function<Refusal(const std::string& name)> no_run;
};

/// Answers `probe`: lets the nodes of a run, or all nodes, measure their ways to each other. First
/// all of them open doors, which measures the way from the head. Then one node after another
/// measures, so that no probe slows another one down. There is one probe at a time. Any thread may
/// call the functions; the work is done on a loop of its own.
class LinkQuestions {
 public:
  explicit LinkQuestions(LinkQuestionsContext context);

  /// Takes the message if it is such a question. Returns whether it did.
  bool take(const transport::Message& message, const Answer& answer);
  /// Handles the answer of a node. Returns whether it was one.
  bool answered(std::uint64_t node, const transport::Message& message);
  /// The node will not answer any more.
  void lost(std::uint64_t node);
  /// Refuses the present and later questions.
  void close() { loop_->end(); }

 private:
  struct Asked {
    std::uint64_t node = 0;
    std::string name;
    Env::Time sent;                                    // When it was asked to open doors.
    std::optional<actors::NodeDoors> doors = {};       // Once it has answered.
    enum { opens, waits, measures, done } at = opens;  // The present part of its work.
  };
  struct Probe {
    std::int64_t number = 0;
    std::int64_t secret = 0;
    Answer answer;
    std::vector<Asked> asked;
    Value::List links;
    std::int64_t bytes = 0;
    std::size_t left_out = 0;  // Nodes beyond the most that are probed.
  };

  void ask(const transport::Message& message, const Answer& answer);
  void begin(Probe probe);
  void hear(std::uint64_t node, actors::NodeDoors doors);
  void hear(std::uint64_t node, actors::NodeLinks links);
  void fail(Asked& asked, const std::string& why);
  void go_on();
  void end();
  Asked* find(std::uint64_t node);

  const LinkQuestionsContext context_;
  std::optional<Probe> probe_;
  std::int64_t numbers_ = 0;
  const std::unique_ptr<Loop> loop_;  // Last: its tasks use the other members.
};

}  // namespace troupe::apps
