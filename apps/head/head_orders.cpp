#include "apps/head/head_orders.h"

#include <algorithm>
#include <optional>

#include "actors/chaos.h"
#include "actors/nodes/node_messages.h"
#include "apps/events/event.h"
#include "transport/wire/message_types.h"

namespace troupe::apps {
namespace {

/// Returns an answer that adds the run's step. The run outlives everything that may call it.
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

void set(const HeadOrdersContext& people, const transport::Message& message, const Answer& answer) {
  const auto name = text_in(message.body, "run");
  const auto run = people.find_run(name);
  if (!run) return (*answer)(people.no_run(name));
  const Value* given = message.body.find("from");
  if (given && !(given->integer() && *given->integer() >= 0))
    return (*answer)(transport::refusal(RefusalCode::invalid, "from",
                                        "run.set: from: wanted a number of steps, 0 or more"));
  const auto from = given ? std::optional(*given->integer()) : std::optional<std::int64_t>();
  if (auto refused = run->set(text_in(message.body, "set"), from, with_step(answer, *run, from)))
    (*answer)(*refused);
}

void checkpoint(const HeadOrdersContext& people, const transport::Message& message,
                const Answer& answer) {
  const auto name = text_in(message.body, "run");
  const auto run = people.find_run(name);
  if (!run) return (*answer)(people.no_run(name));
  run->save(with_step(answer, *run));
}

enum class Cordon : bool { off, on };
Reply cordon_node(const HeadOrdersContext& people, const std::string& node, Cordon cordon) {
  const bool is_on = cordon == Cordon::on;
  if (!people.gate.nodes().cordon(node, is_on)) return unknown_node(node, "node");
  Value told = is_on ? event("node.cordoned", "") : event("node.uncordoned", "");
  told.set("node", node);
  people.publish(told);
  Value answer = Value::Map{};
  answer.set("node", node);
  return answer;
}
void cordon(const HeadOrdersContext& people, const transport::Message& message,
            const Answer& answer) {
  (*answer)(cordon_node(people, text_in(message.body, "node"), Cordon::on));
}
void uncordon(const HeadOrdersContext& people, const transport::Message& message,
              const Answer& answer) {
  (*answer)(cordon_node(people, text_in(message.body, "node"), Cordon::off));
}

/// Answers when no run uses the node any more.
void drain(const HeadOrdersContext& people, const transport::Message& message,
           const Answer& answer) {
  const auto node = text_in(message.body, "node");
  // The cordon comes first, so that the node gets no new work meanwhile.
  if (auto cordoned = cordon_node(people, node, Cordon::on); !cordoned) return (*answer)(cordoned);
  const auto nodes = people.gate.nodes().all();
  std::vector<std::shared_ptr<HeadRun>> there;
  for (const auto& run : people.all_runs()) {
    if (!run->plays_on(node)) continue;
    there.push_back(run);
    const auto others = std::ranges::count_if(
        nodes, [&](const auto& one) { return !one.cordoned && run->can_use(one); });
    if (others >= run->fewest_nodes()) continue;
    (void)cordon_node(people, node, Cordon::off);
    return (*answer)(transport::refusal(
        RefusalCode::conflict, "node",
        "node '" + node + "' cannot be spared: the run '" + run->report().name + "' wants " +
            std::to_string(run->fewest_nodes()) + " nodes at least (elastic.nodes), and " +
            std::to_string(others) + " would be left",
        "start another one, or stop the run"));
  }
  // The answer is given when the last run drops its reference; a run that cannot go on answers
  // earlier.
  const std::shared_ptr<void> all(nullptr, [answer, node, count = there.size()](void*) {
    Value told = Value::Map{};
    told.set("node", node);
    told.set("runs", static_cast<std::int64_t>(count));
    (*answer)(told);
  });
  for (const auto& run : there)
    // The run outlives everything that may call this.
    run->cast_anew([answer, all, run = run.get()](const Result<std::int64_t>& step) {
      if (!step && !run->report().has_ended()) (*answer)(step.error());
    });
}

/// Ends all nodes if the message names none. The nodes may still be there when this is answered.
void end(const HeadOrdersContext& people, const transport::Message& message, const Answer& answer) {
  const auto node = text_in(message.body, "node");
  Value::List names;
  for (const auto& one : people.gate.nodes().all()) {
    if (!node.empty() && one.name != node) continue;
    names.emplace_back(one.name);
    (void)people.gate.nodes().send(
        one.incarnation, transport::to_message(actors::Dismiss{"an operator asked for it"}));
  }
  if (names.empty() && !node.empty()) return (*answer)(unknown_node(node, "node"));
  Value told = Value::Map{};
  told.set("nodes", std::move(names));
  (*answer)(told);
}

Reply inject(const HeadOrdersContext& people, const transport::Message& message) {
  if (people.drills == HeadOptions::Drills::forbidden)
    return transport::refusal(RefusalCode::forbidden, "",
                              "this head does not allow fault injection",
                              "start it with `troupe head --allow-chaos`");
  const auto chaos = transport::from_message<actors::Chaos>(message);
  if (!chaos) return transport::refusal(RefusalCode::invalid, "", chaos.error().text);
  if (chaos->what == actors::Chaos::What::disk_full) {
    const auto run = people.find_run(chaos->target);
    if (!run) return unknown_run(chaos->target, "target");
    run->fill_disk(chaos->time());
  } else {
    const auto nodes = people.gate.nodes().all();
    const auto found = std::ranges::find(nodes, chaos->target, &actors::NodeHere::name);
    if (found == nodes.end()) return unknown_node(chaos->target, "target");
    if (auto said = people.gate.nodes().send(found->incarnation, transport::to_message(*chaos));
        !said)
      return said.error();
  }
  Value told = event(actors::Chaos::type, "");
  const Value body = transport::to_value(*chaos);
  for (const auto& entry : *body.map()) told.set(entry.key, entry.value);
  people.publish(told);
  return body;
}
void chaos(const HeadOrdersContext& people, const transport::Message& message,
           const Answer& answer) {
  (*answer)(inject(people, message));
}

using Act = void (*)(const HeadOrdersContext&, const transport::Message&, const Answer&);
constexpr transport::Handles<Act> order_handlers[] = {
    {"run.set", set},
    {"run.checkpoint", checkpoint},
    {"node.drain", drain},
    {"node.cordon", cordon},
    {"node.uncordon", uncordon},
    {"node.end", end},
    {actors::Chaos::type, chaos},
};
static_assert(transport::handles_all(transport::Handler::orders, order_handlers));

}  // namespace

Refusal unknown_run(const std::string& name, const std::string& path) {
  return transport::refusal(RefusalCode::not_found, path, "no run is called '" + name + "'",
                            "`troupe runs` lists the known runs");
}

Refusal unknown_node(const std::string& name, const std::string& path) {
  return transport::refusal(RefusalCode::not_found, path, "no node is called '" + name + "'",
                            "`troupe nodes` lists the connected nodes");
}

bool HeadOrders::take(const transport::Message& message, const Answer& answer) {
  const auto* act = transport::find_handler(order_handlers, message.type);
  if (act) (*act)(context_, message, answer);
  return act != nullptr;
}

}  // namespace troupe::apps
