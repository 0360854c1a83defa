#include "apps/head/node_questions.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "actors/executors.h"
#include "actors/nodes/node_stacks.h"
#include "apps/head/head_orders.h"
#include "transport/wire/message_types.h"

namespace troupe::apps {
namespace {

constexpr std::size_t most_questions = 16;
constexpr auto patience = std::chrono::seconds(3);
/// The bytes of all nodes' answers to one question, below the largest answer of a head,
constexpr std::int64_t most_bytes = std::int64_t{2} << 20;
/// and those of one node, below the largest message with it.
constexpr std::int64_t most_bytes_of_one = std::int64_t{192} << 10;

std::int64_t room_for(std::size_t processes) {
  return std::min(most_bytes_of_one,
                  most_bytes / std::max<std::int64_t>(1, static_cast<std::int64_t>(processes)));
}

/// Returns a map with what a person calls the process.
Value named(const char* kind, const std::string& name, std::int64_t process) {
  Value told = Value::Map{};
  told.set("kind", kind);
  told.set("name", name);
  told.set("process", process);
  return told;
}

/// Sets the threads of an answer, or those of these names.
void set_threads(Value& told, std::vector<actors::ThreadPlace> threads,
                 const std::vector<std::string>& wanted) {
  if (!wanted.empty())
    std::erase_if(threads, [&](const actors::ThreadPlace& thread) {
      return std::ranges::find(wanted, thread.name) == wanted.end();
    });
  told.set("threads", actors::to_list(threads));
}

Refusal wanted_subject() {
  return transport::refusal(RefusalCode::invalid, "run",
                            "stacks: found neither or both of run and node; wanted one of them");
}

}  // namespace

NodeQuestions::NodeQuestions(NodeQuestionsContext context)
    : context_(std::move(context)), loop_(context_.env.make_loop({"node questions"})) {}

bool NodeQuestions::take(const transport::Message& message, const Answer& answer) {
  using Act = void (NodeQuestions::*)(const transport::Message&, const Answer&);
  static constexpr transport::Handles<Act> handlers[] = {
      {"stacks", &NodeQuestions::ask_for_stacks},
  };
  static_assert(transport::handles_all(transport::Handler::node_questions, handlers));
  const auto* act = transport::find_handler(handlers, message.type);
  if (!act) return false;
  // After its end the loop drops the last reference to the answer, which then is a refusal.
  (void)loop_->post([this, act, message, answer] { (this->**act)(message, answer); });
  return true;
}

// The functions below are tasks of the loop.

/// Returns the nodes of a run, with its devices there, or those that compute for a stage.
std::vector<NodeQuestions::Asked> NodeQuestions::nodes_of(const HeadRun& run,
                                                          const Value* stage) const {
  std::vector<Asked> all;
  for (const auto& there : run.nodes_of_run()) {
    Asked asked{there.node.incarnation, named("node", there.node.name, there.node.inventory.pid)};
    Value::List devices;
    for (const auto& [device, stages] : there.devices) {
      Value::List numbers(stages.begin(), stages.end());
      if (stage && std::ranges::find(numbers, *stage) == numbers.end()) continue;
      Value one = Value::Map{};
      one.set("device", static_cast<std::int64_t>(device));
      one.set("stages", std::move(numbers));
      devices.push_back(std::move(one));
      if (stage)
        asked.threads.push_back(std::string(actors::device_thread_prefix) + std::to_string(device));
    }
    if (stage && devices.empty()) continue;
    asked.told.set("devices", std::move(devices));
    all.push_back(std::move(asked));
  }
  return all;
}

void NodeQuestions::ask_for_stacks(const transport::Message& message, const Answer& answer) {
  const auto run_name = text_in(message.body, "run"), node_name = text_in(message.body, "node");
  const Value* stage = message.body.find("stage");
  if (run_name.empty() == node_name.empty()) return (*answer)(wanted_subject());
  if (stage && (!stage->integer() || *stage->integer() < 0 || run_name.empty()))
    return (*answer)(transport::refusal(RefusalCode::invalid, "stage",
                                        "stacks.stage: wanted the number of a stage of a run"));
  if (questions_.size() >= most_questions)
    return (*answer)(transport::refusal(
        RefusalCode::busy, "",
        "nodes are asked " + std::to_string(most_questions) + " such questions already",
        "ask again a little later"));
  Question question{answer, {}};
  if (!node_name.empty()) {
    const auto nodes = context_.nodes.all();
    const auto node = std::ranges::find(nodes, node_name, &actors::NodeHere::name);
    if (node == nodes.end()) return (*answer)(unknown_node(node_name, "node"));
    question.asked.push_back({node->incarnation, named("node", node->name, node->inventory.pid)});
  } else {
    const auto run = context_.find_run(run_name);
    if (!run) return (*answer)(context_.no_run(run_name));
    question.asked = nodes_of(*run, stage);
    if (stage && question.asked.empty())
      return (*answer)(transport::refusal(RefusalCode::not_found, "stage",
                                          "no device computes for stage " +
                                              std::to_string(*stage->integer()) + " of run '" +
                                              run_name + "' now"));
    if (!stage)
      question.asked.push_back({0, named("head", context_.host.host, context_.host.process)});
  }
  const auto number = ++numbers_;
  const auto room = room_for(question.asked.size());
  for (auto& asked : question.asked) {
    if (asked.node == 0) {
      put_own_stacks(asked);
      continue;
    }
    const auto sent =
        context_.nodes.send(asked.node, transport::to_message(actors::TellStacks{number, room}));
    if (!sent) {
      asked.told.set("why", sent.error().text);
      asked.is_open = false;
    }
  }
  questions_.emplace(number, std::move(question));
  (void)loop_->after(patience, [this, number] { end_late(number); });
  end_if_answered(number);
}

/// Puts where the threads of this process are.
void NodeQuestions::put_own_stacks(Asked& own) const {
  own.is_open = false;
  if (!context_.host.thread_stacks) {
    own.told.set("why", "it cannot tell its stacks");
    return;
  }
  const auto stacks =
      actors::answer_with(context_.host.thread_stacks(), {.bytes = most_bytes_of_one});
  set_threads(own.told, stacks.threads, {});
}

void NodeQuestions::answered(std::uint64_t node, transport::Message message) {
  auto stacks = transport::from_message<actors::NodeStacks>(message);
  if (!stacks) return context_.nodes.strike(node, stacks.error().text);
  (void)loop_->post([this, node, stacks = std::move(*stacks)]() mutable {
    const auto found = questions_.find(stacks.question);
    if (found == questions_.end()) return;  // It came too late.
    for (auto& asked : found->second.asked) {
      if (asked.node != node || !asked.is_open) continue;
      asked.is_open = false;
      if (stacks.threads.empty()) asked.told.set("why", "it cannot tell its stacks");
      set_threads(asked.told, std::move(stacks.threads), asked.threads);
      if (stacks.left_out > 0)
        asked.told.set("left_out", static_cast<std::int64_t>(stacks.left_out));
    }
    end_if_answered(found->first);
  });
}

void NodeQuestions::lost(std::uint64_t node) {
  (void)loop_->post([this, node] {
    std::vector<std::int64_t> numbers;
    for (auto& [number, question] : questions_) {
      numbers.push_back(number);
      for (auto& asked : question.asked) {
        if (asked.node != node || !asked.is_open) continue;
        asked.told.set("why", "it was lost before it answered");
        asked.is_open = false;
      }
    }
    for (const auto number : numbers) end_if_answered(number);
  });
}

void NodeQuestions::end_late(std::int64_t number) {
  const auto found = questions_.find(number);
  if (found == questions_.end()) return;
  for (auto& asked : found->second.asked) {
    if (!asked.is_open) continue;
    asked.told.set("why", "it has not answered within " + std::to_string(patience.count()) + " s");
    asked.is_open = false;
  }
  end_if_answered(number);
}

void NodeQuestions::end_if_answered(std::int64_t number) {
  const auto found = questions_.find(number);
  if (found == questions_.end()) return;
  auto& [answer, all] = found->second;
  if (std::ranges::any_of(all, &Asked::is_open)) return;
  Value::List processes;
  for (auto& asked : all) processes.push_back(std::move(asked.told));
  Value told = Value::Map{};
  told.set("processes", std::move(processes));
  const auto to = answer;
  questions_.erase(found);
  (*to)(told);
}

}  // namespace troupe::apps
