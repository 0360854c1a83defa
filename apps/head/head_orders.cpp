#include "apps/head/head_orders.h"

#include <algorithm>
#include <optional>

#include "actors/chaos.h"
#include "actors/nodes/node_messages.h"
#include "apps/events/recorder.h"

namespace troupe::apps {
namespace {

/// The run outlives whoever answers for it.
HeadRun::Answer with_step(const Answer& answer, const HeadRun& run,
                          std::optional<std::int64_t> from = {}) {
  return [answer, run = &run, from](const Result<std::int64_t>& step) {
    const auto standing = run->report();
    if (!step) {
      const bool is_late = standing.has_ended() || from.value_or(standing.step) < standing.step;
      return (*answer)(transport::refusal(is_late ? RefusalCode::conflict : RefusalCode::failed,
                                          from ? "from" : "run", step.error().text));
    }
    Value told = Value::Map{};
    told.set("run", standing.name);
    told.set("step", *step);
    (*answer)(told);
  };
}

Refusal unknown_node(const std::string& name, const std::string& path) {
  return transport::refusal(RefusalCode::not_found, path, "there is no node '" + name + "'",
                            "`troupe nodes` lists those that are there");
}

}  // namespace

Refusal unknown_run(const std::string& name, const std::string& path) {
  return transport::refusal(RefusalCode::not_found, path, "there is no run '" + name + "'",
                            "`troupe runs` lists those that are known");
}

bool HeadOrders::take(const transport::Message& message, const Answer& answer) {
  const auto& type = message.type;
  const auto node = text_in(message.body, "node");
  if (type == "run.set" || type == "run.checkpoint")
    hold(message, answer);
  else if (type == "node.drain")
    drain(node, answer);
  else if (type == "node.cordon" || type == "node.uncordon")
    (*answer)(cordon(node, type == "node.cordon"));
  else if (type == "node.end")
    (*answer)(end(node));
  else if (type == actors::Chaos::type)
    (*answer)(chaos(message));
  else
    return false;
  return true;
}

void HeadOrders::hold(const transport::Message& message, const Answer& answer) {
  const auto name = text_in(message.body, "run");
  const auto run = context_.find_run(name);
  if (!run) return (*answer)(context_.no_run(name));
  if (message.type == "run.checkpoint") return run->save(with_step(answer, *run));
  const Value* given = message.body.find("from");
  if (given && !(given->integer() && *given->integer() >= 0))
    return (*answer)(transport::refusal(RefusalCode::invalid, "from",
                                        "run.set: from: wanted a number of steps, 0 or more"));
  const auto from = given ? std::optional(*given->integer()) : std::optional<std::int64_t>();
  if (auto refused = run->set(text_in(message.body, "set"), from, with_step(answer, *run, from)))
    (*answer)(*refused);
}

/// Nothing of any run is on the node any more when this is answered.
void HeadOrders::drain(const std::string& node, const Answer& answer) {
  // First, so that nothing new comes to it meanwhile.
  if (auto cordoned = cordon(node, true); !cordoned) return (*answer)(cordoned);
  const auto nodes = context_.gate.nodes().all();
  std::vector<std::shared_ptr<HeadRun>> there;
  for (const auto& run : context_.all_runs()) {
    if (!run->plays_on(node)) continue;
    there.push_back(run);
    const auto others = std::ranges::count_if(
        nodes, [&](const auto& one) { return !one.cordoned && run->can_use(one); });
    if (others >= run->fewest_nodes()) continue;
    (void)cordon(node, false);
    return (*answer)(transport::refusal(
        RefusalCode::conflict, "node",
        "node '" + node + "' cannot be spared: the run '" + run->report().name + "' wants " +
            std::to_string(run->fewest_nodes()) + " nodes at least (elastic.nodes), and " +
            std::to_string(others) + " would be left",
        "start another one, or stop the run"));
  }
  // The last of the runs answers for all; one that cannot go on answers before.
  const std::shared_ptr<void> all(nullptr, [answer, node, count = there.size()](void*) {
    Value told = Value::Map{};
    told.set("node", node);
    told.set("runs", static_cast<std::int64_t>(count));
    (*answer)(told);
  });
  for (const auto& run : there)
    // The run outlives whoever answers for it.
    run->cast_anew([answer, all, run = run.get()](const Result<std::int64_t>& step) {
      if (!step && !run->report().has_ended()) (*answer)(step.error());
    });
}

/// All nodes if `node` is empty. They are asked when this is answered, and may still be there.
Reply HeadOrders::end(const std::string& node) {
  Value::List names;
  for (const auto& one : context_.gate.nodes().all()) {
    if (!node.empty() && one.name != node) continue;
    names.emplace_back(one.name);
    (void)context_.gate.nodes().send(
        one.incarnation, transport::to_message(actors::Dismiss{"an operator asked for it"}));
  }
  if (names.empty() && !node.empty()) return unknown_node(node, "node");
  Value answer = Value::Map{};
  answer.set("nodes", std::move(names));
  return answer;
}

Reply HeadOrders::cordon(const std::string& node, bool cordoned) {
  if (!context_.gate.nodes().cordon(node, cordoned)) return unknown_node(node, "node");
  Value told = event(cordoned ? "node.cordoned" : "node.uncordoned", "");
  told.set("node", node);
  context_.publish(told);
  Value answer = Value::Map{};
  answer.set("node", node);
  return answer;
}

Reply HeadOrders::chaos(const transport::Message& message) {
  if (context_.drills == HeadOptions::Drills::forbidden)
    return transport::refusal(RefusalCode::forbidden, "", "this head allows no drills",
                              "start it with `troupe head --allow-chaos`");
  const auto chaos = transport::from_message<actors::Chaos>(message);
  if (!chaos) return transport::refusal(RefusalCode::invalid, "", chaos.error().text);
  if (chaos->what == actors::Chaos::What::disk_full) {
    const auto run = context_.find_run(chaos->target);
    if (!run) return unknown_run(chaos->target, "target");
    run->fill_disk(chaos->time());
  } else {
    const auto nodes = context_.gate.nodes().all();
    const auto found = std::ranges::find(nodes, chaos->target, &actors::NodeHere::name);
    if (found == nodes.end()) return unknown_node(chaos->target, "target");
    if (auto said = context_.gate.nodes().send(found->incarnation, transport::to_message(*chaos));
        !said)
      return said.error();
  }
  Value told = event(std::string(actors::Chaos::type), "");
  const Value body = transport::to_value(*chaos);
  for (const auto& entry : *body.map()) told.set(entry.key, entry.value);
  context_.publish(told);
  return body;
}

}  // namespace troupe::apps
