#include "apps/head/link_questions.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "core/units.h"
#include "transport/wire/message_types.h"

namespace troupe::apps {
namespace {

constexpr std::size_t most_probed = 8;
static_assert(most_probed <= static_cast<std::size_t>(actors::OpenDoors::most_nodes));
constexpr auto probe_patience = std::chrono::seconds(15);
constexpr std::int64_t most_secret = std::numeric_limits<std::int64_t>::max();

Value link_value(const std::string& from, const std::string& to, const std::string& carrier) {
  Value link = Value::Map{};
  link.set("from", from);
  link.set("to", to);
  link.set("carrier", carrier);
  return link;
}

/// Adds what runs have measured of a node's ways to other hosts.
void add_traffic(const actors::NodeHere& node, Env::Time now, Value::List& links) {
  for (const auto& known : node.links) {
    Value link = link_value(node.name, known.host, "runs");
    link.set("round_trip", 2 * known.best.latency);
    if (const auto rate = known.best.bytes_per_second) link.set("bytes_per_second", *rate);
    link.set("seconds_ago", in_seconds(now - known.told));
    links.push_back(std::move(link));
  }
}

}  // namespace

LinkQuestions::LinkQuestions(LinkQuestionsContext context)
    : context_(std::move(context)), loop_(context_.env.make_loop({"probes"})) {}

bool LinkQuestions::take(const transport::Message& message, const Answer& answer) {
  using Act = void (LinkQuestions::*)(const transport::Message&, const Answer&);
  static constexpr transport::Handles<Act> handlers[] = {
      {"probe", &LinkQuestions::ask},
  };
  static_assert(transport::handles_all(transport::Handler::link_questions, handlers));
  const auto* act = transport::find_handler(handlers, message.type);
  if (!act) return false;
  // After its end the loop drops the last reference to the answer, which then is a refusal.
  (void)loop_->post([this, act, message, answer] { (this->**act)(message, answer); });
  return true;
}

bool LinkQuestions::answered(std::uint64_t node, const transport::Message& message) {
  const auto hear_it = [&](auto told) {
    if (!told) return context_.nodes.strike(node, told.error().text);
    (void)loop_->post([this, node, told = std::move(*told)] { hear(node, told); });
  };
  if (message.type == actors::NodeDoors::type)
    hear_it(transport::from_message<actors::NodeDoors>(message));
  else if (message.type == actors::NodeLinks::type)
    hear_it(transport::from_message<actors::NodeLinks>(message));
  else
    return false;
  return true;
}

void LinkQuestions::lost(std::uint64_t node) {
  (void)loop_->post([this, node] {
    if (auto* const asked = find(node)) fail(*asked, "the node was lost");
    go_on();
  });
}

// The functions below are tasks of the loop.

void LinkQuestions::ask(const transport::Message& message, const Answer& answer) {
  if (probe_)
    return (*answer)(transport::refusal(RefusalCode::busy, "", "another probe is under way",
                                        "ask again a little later"));
  const auto run_name = text_in(message.body, "run");
  Probe probe;
  probe.answer = answer;
  std::vector<actors::NodeHere> nodes;
  if (run_name.empty()) {
    nodes = context_.nodes.all();
  } else {
    const auto run = context_.find_run(run_name);
    if (!run) return (*answer)(context_.no_run(run_name));
    for (const auto& there : run->nodes_of_run())
      if (const auto now = context_.nodes.find(there.node.incarnation)) nodes.push_back(*now);
  }
  if (nodes.empty())
    return (*answer)(transport::refusal(RefusalCode::conflict, "run", "no node plays it now",
                                        "`troupe nodes` lists the connected nodes"));
  for (const auto& node : nodes) {
    if (probe.asked.size() == most_probed) break;
    add_traffic(node, context_.env.now(), probe.links);
    probe.asked.push_back({node.incarnation, node.name, context_.env.now()});
  }
  probe.left_out = nodes.size() - probe.asked.size();
  begin(std::move(probe));
}

void LinkQuestions::begin(Probe probe) {
  probe.number = ++numbers_;
  probe.secret = static_cast<std::int64_t>(context_.env.random() & most_secret);
  probe_ = std::move(probe);
  for (auto& asked : probe_->asked) {
    const actors::OpenDoors order{probe_->number, probe_->secret,
                                  static_cast<int>(probe_->asked.size())};
    asked.sent = context_.env.now();
    if (auto sent = context_.nodes.send(asked.node, transport::to_message(order)); !sent)
      fail(asked, sent.error().text);
  }
  (void)loop_->after(probe_patience, [this, number = probe_->number] {
    if (!probe_ || probe_->number != number) return;
    const std::string late =
        "the node has not answered within " + std::to_string(probe_patience.count()) + " s";
    for (auto& asked : probe_->asked) fail(asked, late);
    go_on();
  });
  go_on();
}

void LinkQuestions::hear(std::uint64_t node, actors::NodeDoors doors) {
  auto* const asked = find(node);
  if (!asked || doors.question != probe_->number || asked->at != Asked::opens) return;
  Value link = link_value("head", asked->name, "control");
  link.set("round_trip", in_seconds(context_.env.now() - asked->sent));
  if (!doors.why.empty()) link.set("why", doors.why);
  probe_->links.push_back(std::move(link));
  asked->doors = std::move(doors);
  asked->at = Asked::waits;
  go_on();
}

void LinkQuestions::hear(std::uint64_t node, actors::NodeLinks links) {
  auto* const asked = find(node);
  if (!asked || links.question != probe_->number || asked->at != Asked::measures) return;
  for (const auto& measured : links.links) {
    Value link = link_value(asked->name, measured.to, measured.carrier);
    if (measured.round_trip) link.set("round_trip", *measured.round_trip);
    if (measured.bytes_per_second) link.set("bytes_per_second", *measured.bytes_per_second);
    if (!measured.why.empty()) link.set("why", measured.why);
    probe_->bytes += measured.bytes;
    probe_->links.push_back(std::move(link));
  }
  asked->at = Asked::done;
  go_on();
}

/// Puts the reason in the place of what the node would have measured.
void LinkQuestions::fail(Asked& asked, const std::string& why) {
  if (asked.at == Asked::done) return;
  Value link = asked.at == Asked::opens ? link_value("head", asked.name, "control")
                                        : link_value(asked.name, "", "");
  link.set("why", why);
  probe_->links.push_back(std::move(link));
  asked.at = Asked::done;
}

/// Lets the next node measure, once all have opened their doors.
void LinkQuestions::go_on() {
  if (!probe_) return;
  auto& all = probe_->asked;
  const auto is_at = [](auto what) {
    return [what](const Asked& asked) { return asked.at == what; };
  };
  if (std::ranges::any_of(all, is_at(Asked::opens)) ||
      std::ranges::any_of(all, is_at(Asked::measures)))
    return;
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto& next = all[i];
    if (next.at != Asked::waits) continue;
    actors::ProbeLinks order{probe_->number, probe_->secret, static_cast<int>(i), {}};
    for (const auto& other : all)
      if (&other != &next && other.doors)
        order.targets.push_back(
            {other.name, other.doors->machine, other.doors->shm, other.doors->tcp});
    const auto sent = context_.nodes.send(next.node, transport::to_message(order));
    if (!sent) {
      fail(next, sent.error().text);
      continue;
    }
    next.at = Asked::measures;
    return;
  }
  end();
}

void LinkQuestions::end() {
  Value told = Value::Map{};
  told.set("links", std::move(probe_->links));
  told.set("bytes", probe_->bytes);
  told.set("bytes_of_each", actors::probes_of_rate * actors::probe_bytes);
  if (probe_->left_out > 0) told.set("left_out", static_cast<std::int64_t>(probe_->left_out));
  const auto answer = probe_->answer;
  probe_.reset();
  (*answer)(told);
}

LinkQuestions::Asked* LinkQuestions::find(std::uint64_t node) {
  if (!probe_) return nullptr;
  const auto found = std::ranges::find(probe_->asked, node, &Asked::node);
  return found == probe_->asked.end() ? nullptr : &*found;
}

}  // namespace troupe::apps
