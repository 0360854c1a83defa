#include "apps/head/head_questions.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "apps/head/misconfigured.h"
#include "apps/run/plan_request.h"
#include "apps/run/run_choice.h"
#include "apps/run/run_setup.h"
#include "apps/run/sim_request.h"
#include "config/load.h"
#include "core/json.h"
#include "schedules/plan/plan.h"
#include "schedules/plan/plan_format.h"
#include "transport/wire/message_types.h"

namespace troupe::apps {
namespace {

namespace sched = troupe::schedules;

constexpr std::size_t most_waiting = 16;
constexpr double most_simulated_steps = 1e6;

/// A question, and what it is answered from.
struct Question {
  const transport::Message& message;
  const config::Loaded& loaded;
  const HeadQuestions::Nodes& all_nodes;
  storage::Files& files;
  Env::Time now;
  HeadQuestions::Measure measure;

  std::vector<actors::NodeHere> nodes() const {
    auto nodes = all_nodes();
    std::erase_if(nodes, [](const auto& node) { return node.cordoned || node.away; });
    actors::drop_old_links(nodes, now);
    return nodes;
  }
};

Refusal no_node() {
  return transport::refusal(RefusalCode::conflict, "", "no node is connected",
                            "start one with `troupe node --head ADDRESS`");
}

Reply validate(const Question& question) {
  const auto& loaded = question.loaded;
  const auto setup = set_up(question.files, loaded.config);
  if (!setup) return misconfigured(setup.error());
  if (auto good = check_samples(loaded.config, *setup); !good) return misconfigured(good.error());
  Value answer = Value::Map{};
  answer.set("name", loaded.config.name);
  answer.set("warnings", loaded.warnings);
  return answer;
}

Result<LivePlan> plan_of(const Question& question, const std::vector<actors::NodeHere>& nodes,
                         HeadQuestions::Measure measure) {
  auto setup = set_up(question.files, question.loaded.config);
  if (!setup) return setup.error();
  return plan_for(question.loaded.config, *setup, nodes, 1, measure);
}

double seconds_between(Env::Time from, Env::Time to) {
  return std::chrono::duration<double>(to - from).count();
}

/// Returns what was measured of the nodes and of the links between their hosts, for programs.
Value measured_value(const std::vector<actors::NodeHere>& nodes, Env::Time now) {
  Value::List speeds, links;
  for (const auto& node : nodes) {
    if (const auto& speed = node.inventory.speed) {
      Value entry = transport::to_value(*speed);
      entry.set("node", node.name);
      entry.set("seconds_ago", speed->seconds_ago + seconds_between(node.joined, now));
      speeds.push_back(std::move(entry));
    }
    for (const auto& link : node.links) {
      Value entry;
      entry.set("from", node.name);
      entry.set("to", link.host);
      entry.set("latency", link.best.latency);
      if (const auto rate = link.best.bytes_per_second) entry.set("bytes_per_second", *rate);
      entry.set("seconds_ago", seconds_between(link.told, now));
      links.push_back(std::move(entry));
    }
  }
  Value measured;
  measured.set("nodes", std::move(speeds));
  measured.set("links", std::move(links));
  return measured;
}

/// Prints the same for people.
std::string measured_table(const std::vector<actors::NodeHere>& nodes, Env::Time now) {
  constexpr double giga = 1e9, mega = 1e6, bits = 8;
  const auto ago = [](double seconds) { return sched::show(sched::Seconds(seconds)) + " ago"; };
  sched::TextTable speeds(
      {"node", "cores", "products in fp32", "in its best precision", "measured"});
  sched::TextTable links({"link", "latency", "rate", "measured"});
  bool has_links = false;
  for (const auto& node : nodes) {
    const auto& speed = node.inventory.speed;
    speeds.add({node.name, std::to_string(node.inventory.cores),
                speed ? sched::significant(speed->plain / giga) + " GFLOP/s" : "unknown",
                speed ? sched::significant(speed->best / giga) + " GFLOP/s" : "unknown",
                speed ? ago(speed->seconds_ago + seconds_between(node.joined, now)) : "never"});
    for (const auto& link : node.links) {
      has_links = true;
      const auto& [latency, rate] = link.best;
      links.add({node.name + " to " + link.host, sched::show(sched::Seconds(latency)),
                 rate ? sched::significant(*rate * bits / mega) + " Mbit/s" : "unknown",
                 ago(seconds_between(link.told, now))});
    }
  }
  return speeds.text() + "\n" +
         (has_links ? links.text()
                    : "no link between these hosts is measured: 50 us and 10 Gbit/s are assumed "
                      "until a run uses it\n");
}

Reply plan(const Question& question) {
  const auto nodes = question.nodes();
  if (nodes.empty()) return no_node();
  const auto live = plan_of(question, nodes, question.measure);
  if (!live) return misconfigured(live.error());
  const auto changes = sched::outlooks(live->request);
  Value answer = sched::to_value(live->request, live->plan);
  answer.set("chosen", transport::to_value(live->choice));
  answer.set("outlooks", sched::to_value(live->plan, changes));
  answer.set("measured", measured_value(nodes, question.now));
  answer.set("table", "precision " + live->choice.why + "\n" + live->choice.plan_why + "\n\n" +
                          measured_table(nodes, question.now) + "\n" +
                          sched::to_table(live->request, live->plan) + "\n" +
                          sched::to_table(live->plan, changes));
  return answer;
}

/// Reads the terms. Returns what is wrong with them, if anything.
std::optional<Refusal> read_terms(const Value& body, SimTerms& terms) {
  const auto read = [&](const char* key, double& into, double most) -> std::optional<Refusal> {
    const Value* value = body.find(key);
    if (!value) return {};
    if (!value->is_number() || !(value->number() >= 0 && value->number() <= most))
      return transport::refusal(RefusalCode::invalid, key,
                                "sim.request." + std::string(key) + ": wanted a number from 0 to " +
                                    std::to_string(static_cast<long>(most)));
    into = value->number();
    return {};
  };
  constexpr double most_hours = 10'000, most_seconds = 3600 * most_hours;
  if (auto bad = read("hours", terms.hours, most_hours)) return bad;
  if (auto bad = read("notice", terms.notice, most_seconds)) return bad;
  if (auto bad = read("fail_every", terms.fail_every, most_seconds)) return bad;
  if (const Value* seed = body.find("seed"); seed && seed->integer())
    terms.seed = static_cast<std::uint64_t>(*seed->integer());
  if (const Value* spot = body.find("spot"); spot && spot->boolean()) terms.spot = *spot->boolean();
  return {};
}

Reply simulated(const Question& question) {
  const auto& loaded = question.loaded;
  const auto nodes = question.nodes();
  if (nodes.empty()) return no_node();
  SimTerms terms;
  if (auto bad = read_terms(question.message.body, terms)) return *bad;
  // The simulation has no measured times either.
  const auto live = plan_of(question, nodes, nullptr);
  if (!live) return misconfigured(live.error());
  // Bounds the duration, since the answer and the end of this head wait for it.
  if (const double steps = terms.hours * 3600 / live->plan.step.count();
      steps > most_simulated_steps)
    return transport::refusal(RefusalCode::invalid, "hours",
                              "sim.request.hours: found " + shortest(terms.hours) +
                                  ", which are about " + shortest(std::round(steps)) +
                                  " steps; wanted at most " + shortest(most_simulated_steps) +
                                  " from a head",
                              "ask for less, or use `troupe sim`");
  const auto done =
      simulate(question.files, loaded.config, {.cluster = cluster_of(loaded.config, nodes)}, terms);
  if (!done) return done.error();
  return to_value(*done);
}

struct QuestionAct {
  std::string_view config;  // The field that has the configuration; empty if the body is one.
  Reply (*answer)(const Question&);
};
constexpr transport::Handles<QuestionAct> question_handlers[] = {
    {"config.validate", {"", validate}},
    {"plan.request", {"", plan}},
    {"sim.request", {"config", simulated}},
};
static_assert(transport::handles_all(transport::Handler::questions, question_handlers));

}  // namespace

HeadQuestions::HeadQuestions(Env& env, storage::Files& files, Nodes nodes, MayUse may_use,
                             Measure measure)
    : env_(env),
      files_(files),
      measure_(measure),
      nodes_(std::move(nodes)),
      may_use_(std::move(may_use)),
      loop_(env.make_loop({.name = "answering", .most_waiting = most_waiting})) {}

bool HeadQuestions::take(const transport::Message& message, const Answer& answer) {
  if (!transport::find_handler(question_handlers, message.type)) return false;
  const auto taken = loop_->post([this, message, answer] { (*answer)(answer_to(message)); });
  // On `ended`, this drops the last reference to the answer, which then answers with a refusal.
  if (taken == Loop::Posted::full)
    (*answer)(transport::refusal(
        RefusalCode::busy, "",
        "the head has " + std::to_string(most_waiting) + " such questions to answer already",
        "ask again a little later"));
  return true;
}

Reply HeadQuestions::answer_to(const transport::Message& message) const {
  const auto& act = *transport::find_handler(question_handlers, message.type);
  const Value* config = act.config.empty() ? &message.body : message.body.find(act.config);
  if (!config) {
    const std::string field(act.config);
    return transport::refusal(RefusalCode::invalid, field,
                              message.type + "." + field + ": is missing; wanted a configuration");
  }
  config::Diagnostics found;
  const auto loaded = config::load_message(*config, message.type, found);
  if (!loaded) return misconfigured(loaded.error(), found);
  if (auto inside = may_use_(*loaded); !inside) return misconfigured(inside.error());
  return act.answer({message, *loaded, nodes_, files_, env_.now(), measure_});
}

}  // namespace troupe::apps
