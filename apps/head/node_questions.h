#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/nodes/node_pool.h"
#include "apps/client/one_answer.h"
#include "apps/head/head_run.h"
#include "apps/host_facts.h"
#include "core/env.h"
#include "transport/wire/wire.h"

namespace troupe::apps {

/// The parts of a head that questions to nodes use. They outlive the questions.
struct NodeQuestionsContext {
  Env& env;
  const HostFacts& host;
  actors::NodePool& nodes;
  std::function<std::shared_ptr<HeadRun>(const std::string& name)> find_run;
  /// Returns why no run of that name plays.
  std::function<Refusal(const std::string& name)> no_run;
};

/// Answers questions that only nodes can answer: `stacks`. It passes a question on to the nodes
/// that it is about, and answers when all of them have answered, are gone, or the time is over. Any
/// thread may call the functions; the work is done on a loop of its own.
class NodeQuestions {
 public:
  explicit NodeQuestions(NodeQuestionsContext context);

  /// Takes the message if it is one of these questions. Returns whether it did.
  bool take(const transport::Message& message, const Answer& answer);
  /// Handles the answer of a node.
  void answered(std::uint64_t node, transport::Message message);
  /// The node will not answer any more.
  void lost(std::uint64_t node);
  /// Refuses all waiting and later questions.
  void close() { loop_->end(); }

 private:
  /// A process that a question is about.
  struct Asked {
    std::uint64_t node = 0;                 // 0: this process.
    Value told;                             // The entry in the answer.
    std::vector<std::string> threads = {};  // The names of the wanted threads; empty: all.
    bool is_open = true;                    // It has not answered yet.
  };
  struct Question {
    Answer answer;
    std::vector<Asked> asked;
  };

  void ask_for_stacks(const transport::Message& message, const Answer& answer);
  std::vector<Asked> nodes_of(const HeadRun& run, const Value* stage) const;
  void put_own_stacks(Asked& own) const;
  void end_if_answered(std::int64_t number);
  void end_late(std::int64_t number);

  const NodeQuestionsContext context_;
  std::map<std::int64_t, Question> questions_;
  std::int64_t numbers_ = 0;
  const std::unique_ptr<Loop> loop_;  // Last: its tasks use the other members.
};

}  // namespace troupe::apps
