#include "apps/head/head_service.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "apps/events/event.h"
#include "apps/events/event_backlog.h"
#include "apps/events/publisher_sink.h"
#include "apps/gpu/gpu_warnings.h"
#include "apps/head/head_journal.h"
#include "apps/head/head_orders.h"
#include "apps/head/head_questions.h"
#include "apps/head/head_run.h"
#include "apps/head/link_questions.h"
#include "apps/head/misconfigured.h"
#include "apps/head/node_gate.h"
#include "apps/head/node_questions.h"
#include "apps/head/submitted_paths.h"
#include "apps/run/run_record.h"
#include "apps/run/run_setup.h"
#include "config/load.h"
#include "config/schema/dotted.h"
#include "core/json.h"
#include "core/printable.h"
#include "transport/control/publisher.h"

namespace troupe::apps {
namespace {

constexpr std::size_t most_runs = 1000;
constexpr std::size_t most_submits = 64;  // The bound of waiting submits.

Value fields_of(const actors::NodeHere& node, actors::Time now) {
  Value value = transport::to_value(node.inventory);
  value.set("name", node.name);
  value.set("cordoned", node.cordoned);
  Value::List gpus;
  for (const auto& gpu : node.gpus_at(now)) gpus.push_back(transport::to_value(gpu));
  if (!gpus.empty()) value.set("gpus", std::move(gpus));
  return value;
}

/// Returns the previous address if `wanted` has port 0 and there is one.
std::string listen_at(const std::string& wanted, const std::string& before) {
  return wanted.ends_with(":0") && !before.empty() ? before : wanted;
}

/// Removes a field from a message that contains a configuration. Returns the field.
Value take_field(Value& config, std::string_view name) {
  Value field;
  if (auto* map = config.map())
    std::erase_if(*map, [&](const Value::Entry& entry) {
      if (entry.key != name) return false;
      field = entry.value;
      return true;
    });
  return field;
}
bool take_flag(Value& config, std::string_view name) {
  const Value field = take_field(config, name);
  return field.boolean() && *field.boolean();
}
std::int64_t take_integer(Value& config, std::string_view name) {
  const Value field = take_field(config, name);
  return field.integer() ? *field.integer() : 0;
}
std::string take_text(Value& config, std::string_view name) {
  const Value field = take_field(config, name);
  return field.text() ? *field.text() : std::string();
}

/// Returns whether a message changes something, so that its sender is recorded.
bool is_order(std::string_view type) {
  const bool is_about = type.starts_with("run.") || type.starts_with("node.") || type == "chaos";
  return is_about && transport::may_send({transport::Role::operator_}, type) &&
         !transport::may_send({transport::Role::viewer}, type);
}

std::string who_is(const transport::Peer& peer) {
  constexpr std::size_t some = 8;
  if (!peer.key.empty()) return peer.host + " (key " + peer.key.substr(0, some) + "...)";
  return peer.user ? "user " + std::to_string(*peer.user) : peer.address;
}

std::string subject_of(const transport::Message& message) {
  for (const char* key : {"run", "node", "target", "name"})
    if (auto text = text_in(message.body, key); !text.empty()) return printable(text);
  return {};
}

/// Returns the answer message. An answer that exceeds a reader's limits (wire.h), such as a long
/// list of nodes, goes as JSON in the payload.
transport::Message answer_of(const Value& body) {
  transport::Message answer;
  answer.type = transport::MessageName("answer").text();
  answer.body = body;
  const auto parts = transport::encode(answer);
  if (parts && transport::decode(std::vector<std::string_view>(parts->begin(), parts->end())))
    return answer;
  answer.body = Value::Map{};
  answer.payload.push_back(to_json(body));
  return answer;
}

}  // namespace

class HeadService::Service {
 public:
  Service(const ProgramContext& program, HeadOptions options)
      : program_(program), options_(std::move(options)) {}

  ~Service() {
    end_loops();
    // A run needs its nodes until it has ended, and nodes need the gate. So first the runs are
    // closed, then the gate closes, then the runs are destroyed. Those drop the orders that wait,
    // whose senders then learn of the end by that of their connection.
    for (const auto& run : all_runs()) run->close();
    const std::lock_guard lock(answering_);
    answers_ = false;
  }

  void end(std::function<void()> then) {
    end_loops();
    const std::shared_ptr<void> ended(nullptr, [then = std::move(then)](void*) { then(); });
    for (const auto& run : all_runs()) {
      run->leave();
      run->when_ended([held = ended]() mutable { held.reset(); });
    }
  }

  Status open() {
    auto journal = HeadJournal::open({program_.env, program_.host.process_text()}, program_.files,
                                     options_.state);
    if (!journal) return journal.error();
    journal_ = std::move(*journal);
    transport::PublisherOptions publishing;
    publishing.endpoint = listen_at(options_.events, journal_->published());
    publishing.keys = options_.keys;
    publishing.allowed = options_.allowed;
    auto publisher = program_.network.open_publisher(std::move(publishing));
    if (!publisher) return publisher.error();
    publisher_ = std::move(*publisher);
    GateOptions gate_options;
    gate_options.listening.endpoint = listen_at(options_.listen, journal_->listened());
    gate_options.listening.keys = options_.keys;
    gate_options.listening.allowed = options_.allowed;
    gate_options.term = journal_->term();
    gate_options.seal = options_.seal;
    GateEvents events;
    events.joined = [this](const actors::NodeHere& node) { joined(node); };
    events.lost = [this](const actors::NodeHere& node, const actors::NodeLoss& loss) {
      lost(node, loss);
    };
    events.leaving = [this](const actors::NodeHere& node, const std::string& why) {
      leaving(node, why);
    };
    events.gpus = [this](const actors::NodeHere& node, const auto& gpus) {
      for (const auto& news : gpu_warnings_.news(node, gpus)) warn(news);
    };
    events.deposed = options_.deposed;
    events.answered = [this](std::uint64_t node, transport::Message message) {
      if (!link_questions_->answered(node, message))
        node_questions_->answered(node, std::move(message));
    };
    events.about_run = [this](std::uint64_t node, transport::Message message) {
      if (const auto run = find(message.run)) run->heard(node, std::move(message));
    };
    events.asked = [this](const transport::Peer& peer, transport::Message message) {
      asked(peer, std::move(message));
    };
    events.say = options_.say;
    auto gate =
        NodeGate::open(program_.env, program_.network, std::move(gate_options), std::move(events));
    if (!gate) return gate.error();
    gate_ = std::move(*gate);
    orders_.emplace(HeadOrdersContext{
        *gate_, [this](const std::string& name) { return find(name); },
        [this](const std::string& name) { return no_run(name); }, [this] { return all_runs(); },
        [this](const Value& event) { publish(event); }, options_.drills});
    node_questions_.emplace(
        NodeQuestionsContext{program_.env, program_.host, gate_->nodes(),
                             [this](const std::string& name) { return find(name); },
                             [this](const std::string& name) { return no_run(name); }});
    link_questions_.emplace(LinkQuestionsContext{
        program_.env, gate_->nodes(), [this](const std::string& name) { return find(name); },
        [this](const std::string& name) { return no_run(name); }});
    questions_.emplace(
        program_.env, program_.files, [this] { return gate_->nodes().all(); },
        [this](const config::Loaded& loaded) { return may_use(loaded); });
    auto noted = journal_->listens(endpoint(), this->events());
    if (!noted) return noted;
    go_on_with_runs();
    gate_->start();
    return Done{};
  }

  const std::string& endpoint() const { return gate_->endpoint(); }
  const std::string& events() const { return publisher_->endpoint(); }

  std::uint64_t term() const { return journal_->term(); }
  Status allow(const transport::AllowList& allowed) {
    publisher_->allow(allowed);
    return gate_->allow(allowed);
  }

  Value status() const {
    Value status = Value::Map{};
    status.set("runs", runs_known());
    status.set("nodes", nodes_here());
    return status;
  }

  std::map<std::string, RunNumbers> numbers() const {
    std::map<std::string, RunNumbers> numbers;
    const std::lock_guard lock(mutex_);
    for (const auto& [name, run] : runs_) numbers.emplace(name, run->numbers());
    return numbers;
  }

  /// Rejects a configuration whose files the head must not use.
  Status may_use(const config::Loaded& loaded) const { return options_.confinement.check(loaded); }

  /// Adds the keys with which a run trains `more` steps longer than the configuration in its
  /// folder.
  Result<config::Loaded> extended(const config::Loaded& loaded, std::int64_t more, Value& body) {
    const auto keys = keys_to_extend(program_.files, "runs/" + loaded.config.name, more);
    if (!keys) return keys.error();
    for (const auto& key : *keys) config::set_at(body, key.name, key.value);
    return config::load_message(body, "run.submit");
  }

  /// How a submitted run begins.
  struct Beginning {
    RunStart start = RunStart::anew;
    std::int64_t more_steps = 0;  // Than its last configuration says.
  };

  /// Submits a run and answers with its name.
  Reply submit(Value body, const Beginning& begins, std::uint64_t submission,
               const Submitter& from) {
    config::Diagnostics found;
    auto loaded = config::load_message(body, "run.submit", found);
    if (!loaded) return misconfigured(loaded.error(), found);
    if (begins.more_steps > 0) {
      loaded = extended(*loaded, begins.more_steps, body);
      if (!loaded) return misconfigured(loaded.error());
    }
    if (auto inside = may_use(*loaded); !inside) return misconfigured(inside.error());
    const std::string name = loaded->config.name;
    {
      const std::lock_guard lock(mutex_);
      const auto known = runs_.find(name);
      if (known != runs_.end() && !known->second->report().has_ended())
        return transport::refusal(RefusalCode::conflict, "name", "a run '" + name + "' is active",
                                  "stop it, or give this run another name");
      if (runs_.size() >= most_runs && known == runs_.end())
        return transport::refusal(
            RefusalCode::busy, "",
            std::to_string(most_runs) + " runs are active, the most that a head can lead",
            "wait until one has ended, or stop one");
    }
    auto run = make_run(std::move(*loaded), begins.start);
    if (!run) return misconfigured(with_place(run.error(), program_.host, from));
    // Records the run once it is known to be valid, and starts it once it is recorded.
    if (auto noted = journal_->submitted(name, submission, body); !noted) return noted.error();
    Value answer = Value::Map{};
    answer.set("run", name);
    if (const auto choice = (*run)->choice()) answer.set("chosen", transport::to_value(*choice));
    const auto steps = std::to_string((*run)->report().steps);
    const std::string moved = (*run)->moved();
    if (!moved.empty()) answer.set("moved", moved);
    start(name, std::move(*run));
    options_.say("run " + name + " was submitted: " + steps + " steps" +
                 (moved.empty() ? "" : "; the earlier run of this name is now " + moved));
    return answer;
  }

  std::shared_ptr<HeadRun> find(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = runs_.find(name);
    return found == runs_.end() ? nullptr : found->second;
  }

 private:
  /// From now on no run begins or is cleared away, and nothing is answered.
  void end_loops() {
    is_closing_ = true;
    clearing_->end();
    submits_->end();
    if (questions_) questions_->close();
    if (node_questions_) node_questions_->close();
    if (link_questions_) link_questions_->close();
  }

  Result<std::shared_ptr<HeadRun>> make_run(config::Loaded loaded, RunStart begins,
                                            std::optional<RunChoice> kept = {}) {
    auto setup = set_up(program_.files, loaded.config);
    if (!setup) return setup.error();
    if (auto good = check_samples(loaded.config, *setup); !good) return good.error();
    const std::string name = loaded.config.name;
    auto run = std::make_shared<HeadRun>(
        std::move(loaded), std::move(*setup), begins,
        HeadRun::Context{program_, gate_->nodes(), options_.interface, options_.keys,
                         options_.plain, *publisher_, options_.notify,
                         [this](const RunStanding& run) { ended(run); },
                         [this, name] { over(name); },
                         [this, name](const RunChoice& choice) {
                           return journal_->chosen(name, transport::to_value(choice));
                         }});
    if (auto prepared = run->prepare(std::move(kept)); !prepared) return prepared.error();
    return run;
  }

  void start(const std::string& name, std::shared_ptr<HeadRun> run) {
    // Keeps an ended run of this name alive until the lock is released, since its threads may want
    // the lock.
    std::shared_ptr<HeadRun> before;
    const std::lock_guard lock(mutex_);
    run->start();
    gate_->set_patience(name, run->patience());
    before = std::exchange(runs_[name], std::move(run));
    ended_.erase(name);
  }

  // Runs that have ended.

  /// Called by a run.
  void ended(const RunStanding& run) {
    options_.say("run " + run.name + ": " + run.state + " after step " + std::to_string(run.step) +
                 " of " + std::to_string(run.steps) +
                 (run.why.empty() ? "" : ": " + printable(run.why)));
    // A run that stops because the head ends continues in the head's next life.
    if (is_closing_ && run.state == "stopped") return;
    if (auto noted = journal_->ended(run.name, run.state, run.why, run.step, run.steps,
                                     {run.loss, run.goodput});
        !noted)
      not_noted(run.name, run.state, noted.error());
  }

  /// Called on a run's own loop.
  void over(const std::string& name) {
    clearing_->post([this, name] { clear_away(name); });
  }

  /// Keeps only the report of a run that is over: its threads, descriptors and data go.
  void clear_away(const std::string& name) {
    const auto run = find(name);
    // Another run of this name may have replaced it.
    if (!run || !run->report().has_ended()) return;
    run->close();
    const std::lock_guard lock(mutex_);
    const auto known = runs_.find(name);
    if (known == runs_.end() || known->second != run) return;
    ended_[name] = run->report();
    runs_.erase(known);
    gate_->forget_patience(name);
    std::erase_if(ended_, [this](const auto& each) { return !journal_->knows(each.first); });
  }

  /// Resumes the runs of an earlier life.
  void go_on_with_runs() {
    for (const auto& [name, known] : journal_->runs()) {
      submitted_.emplace(known.submission, name);
      RunStanding standing;
      standing.name = name;
      standing.state = known.state;
      standing.why = known.why;
      if (options_.earlier_runs == HeadOptions::EarlierRuns::wait && !standing.has_ended()) {
        standing.state = "stopped";
        standing.why = "submit it with --resume to continue it";
      }
      if (standing.has_ended()) {
        standing.step = known.step;
        standing.steps = known.steps;
        standing.loss = known.last.loss;
        standing.goodput = known.last.goodput;
        const std::lock_guard lock(mutex_);
        ended_[name] = std::move(standing);
        continue;
      }
      auto loaded = config::load_message(known.config, "the journal's run " + name);
      if (!loaded) {
        options_.say(loaded.error().text);
        continue;
      }
      std::optional<RunChoice> kept;
      if (auto read = transport::from_value<RunChoice>(known.choice, "choice"); read)
        kept = std::move(*read);
      auto run = make_run(std::move(*loaded), RunStart::resume, std::move(kept));
      if (!run) {
        options_.say("run " + name + " cannot continue: " + run.error().text);
        standing.state = "failed";
        standing.why = run.error().text;
        ended(standing);
        const std::lock_guard lock(mutex_);
        ended_[name] = std::move(standing);
        continue;
      }
      options_.say("run " + name + " continues after step " +
                   std::to_string((*run)->report().step));
      if (known.state == "paused") (*run)->pause(true);
      if (known.state == "stopping") (*run)->drain();
      start(name, std::move(*run));
    }
  }

  /// Called when a user changes the state of a run.
  void changed(const std::string& run, const std::string& state, const std::string& why) {
    if (auto noted = journal_->changed(run, state, why); !noted)
      not_noted(run, state, noted.error());
  }
  void not_noted(const std::string& run, const std::string& state, const Error& why) {
    options_.say("a change of run " + run + " to '" + state + "' is not remembered: " + why.text);
  }

  std::vector<std::shared_ptr<HeadRun>> all_runs() const {
    std::vector<std::shared_ptr<HeadRun>> runs;
    const std::lock_guard lock(mutex_);
    for (const auto& [_, run] : runs_) runs.push_back(run);
    return runs;
  }

  /// Stamps and publishes an event of the head itself.
  void publish(const Value& event) {
    const Value told = told_at(program_.env.wall_time(), event);
    told_.add(told);
    PublisherSink(*publisher_).event(told);
  }

  void asked(const transport::Peer& peer, transport::Message message) {
    const auto answer = std::make_shared<OneAnswer>(
        [this, to = peer.id, re = message.id](const Reply& answer) { say(to, re, answer); });
    if (is_order(message.type))
      if (auto noted = journal_->ordered(who_is(peer), message.type, subject_of(message)); !noted)
        return (*answer)(noted.error());
    if (orders_->take(message, answer) || questions_->take(message, answer) ||
        node_questions_->take(message, answer) || link_questions_->take(message, answer))
      return;
    if (const auto* act = find_act(message.type)) return (this->**act)(peer, message, answer);
    (*answer)(unsupported(message));
  }

  using Act = void (Service::*)(const transport::Peer&, const transport::Message&, const Answer&);
  static const Act* find_act(std::string_view type) {
    static constexpr transport::Handles<Act> handlers[] = {
        {"hello", &Service::greet},
        {"status", &Service::tell_status},
        {"run.list", &Service::list_runs},
        {"run.get", &Service::tell_run},
        {"run.submit", &Service::take_submit},
        {"run.events", &Service::tell_events},
        {"run.pause", &Service::pause},
        {"run.resume", &Service::resume},
        {"run.stop", &Service::stop},
        {"node.list", &Service::list_nodes},
    };
    static_assert(transport::handles_all(transport::Handler::head, handlers));
    return transport::find_handler(handlers, type);
  }

  /// Another loop opens the data, which may take long. The socket's thread hears the nodes
  /// meanwhile.
  void take_submit(const transport::Peer&, const transport::Message& message,
                   const Answer& answer) {
    const auto taken = submits_->post([this, message, answer] { (*answer)(submit(message)); });
    if (taken == Loop::Posted::full)
      (*answer)(transport::refusal(
          RefusalCode::busy, "",
          "the head has " + std::to_string(most_submits) + " submitted runs to look at already",
          "submit it again a little later"));
  }

  /// Called on the loop of submits. A sender who lost the answer may send the same message again.
  Reply submit(const transport::Message& message) {
    if (const auto known = submitted_.find(message.id); known != submitted_.end()) {
      Value answer = Value::Map{};
      answer.set("run", known->second);
      return answer;
    }
    Value config = message.body;
    const bool resumes = take_flag(config, "resume");
    const bool from_scratch = take_flag(config, "from_scratch");
    const Beginning begins{!resumes       ? RunStart::anew
                           : from_scratch ? RunStart::resume_or_scratch
                                          : RunStart::resume,
                           take_integer(config, "extend")};
    if (begins.more_steps < 0 || (begins.more_steps > 0 && !resumes))
      return transport::refusal(RefusalCode::invalid, "extend",
                                "found extend = " + std::to_string(begins.more_steps) +
                                    (resumes ? ", wanted at least 1" : " without resume"),
                                "extend a run that is resumed by 1 step or more");
    const Submitter from{take_text(config, "host"), take_text(config, "folder")};
    // Names relative to the head's own folder stay as they are: checkpoints have them, too.
    if (from.folder != program_.host.folder) resolve_inputs(program_.files, from, config);
    auto submitted = submit(config, begins, message.id, from);
    if (!submitted) return submitted;
    if (submitted_.size() > most_runs) submitted_.erase(submitted_.begin());
    submitted_.emplace(message.id, text_in(*submitted, "run"));
    return submitted;
  }

  void say(transport::PeerId to, std::uint64_t re, const Reply& answer) {
    auto said = answer ? answer_of(*answer) : transport::to_message(answer.refusal());
    said.re = re;
    const std::lock_guard lock(answering_);
    if (answers_) (void)gate_->answer(to, std::move(said));
  }

  void joined(const actors::NodeHere& node) {
    Value joined = event("node.joined", "");
    joined.set("node", node.name);
    publish(joined);
    options_.say("node " + node.name + " has joined");
    for (const auto& run : all_runs()) run->arrived(node);
  }

  void warn(const std::string& text) {
    options_.say("warning: " + text);
    Value warning = event("warn", "");
    warning.set("text", text);
    publish(warning);
  }

  void lost(const actors::NodeHere& node, const actors::NodeLoss& loss) {
    const auto& why = loss.why;
    gpu_warnings_.forget(node.incarnation);
    node_questions_->lost(node.incarnation);
    link_questions_->lost(node.incarnation);
    options_.say("node " + node.name + " is lost: " + why);
    Value lost = event("node.lost", "");
    lost.set("node", node.name);
    lost.set("why", why);
    publish(lost);
    for (const auto& run : all_runs()) run->lost(node, loss);
  }

  void leaving(const actors::NodeHere& node, const std::string& why) {
    options_.say("node " + node.name + " is leaving: " + why);
    Value leaving = event("node.leaving", "");
    leaving.set("node", node.name);
    leaving.set("why", why);
    publish(leaving);
    for (const auto& run : all_runs())
      if (run->plays_on(node.name)) run->cast_anew([](const Result<std::int64_t>&) {});
  }

  void greet(const transport::Peer& peer, const transport::Message&, const Answer& answer) {
    Value welcome = Value::Map{};
    welcome.set("version", TROUPE_VERSION);
    welcome.set("events", events());
    welcome.set("rights", transport::to_string(peer.roles));
    welcome.set("term_proof", gate_->term_proof());
    (*answer)(welcome);
  }
  void tell_status(const transport::Peer&, const transport::Message&, const Answer& answer) {
    (*answer)(status());
  }
  void list_runs(const transport::Peer&, const transport::Message&, const Answer& answer) {
    Value runs = Value::Map{};
    runs.set("runs", runs_known());
    (*answer)(runs);
  }
  void list_nodes(const transport::Peer&, const transport::Message&, const Answer& answer) {
    Value nodes = Value::Map{};
    nodes.set("nodes", nodes_here());
    (*answer)(nodes);
  }
  void tell_events(const transport::Peer&, const transport::Message& message,
                   const Answer& answer) {
    (*answer)(events_of(message));
  }

  static Refusal unsupported(const transport::Message& message) {
    return transport::refusal(
        RefusalCode::unsupported, "type",
        "'" + message.type + "' is not a message type that this head supports");
  }

  Value::List runs_known() const {
    Value::List runs;
    const std::lock_guard lock(mutex_);
    for (const auto& [name, standing] : ended_) runs.push_back(transport::to_value(standing));
    for (const auto& [_, run] : runs_) runs.push_back(transport::to_value(run->report()));
    return runs;
  }
  /// Returns by node what slows a run down there.
  std::map<std::string, Value::List> stragglers_known() const {
    std::map<std::string, Value::List> stragglers;
    for (const auto& run : all_runs())
      for (auto& straggler : run->report().stragglers)
        stragglers[text_of(straggler, "node")].push_back(std::move(straggler));
    return stragglers;
  }
  Value::List nodes_here() const {
    Value::List nodes;
    const auto now = program_.env.now();
    auto stragglers = stragglers_known();
    for (const auto& node : gate_->nodes().all()) {
      auto fields = fields_of(node, now);
      if (const auto slow = stragglers.find(node.name); slow != stragglers.end())
        fields.set("stragglers", std::move(slow->second));
      nodes.push_back(std::move(fields));
    }
    return nodes;
  }

  bool has_ended(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    return ended_.contains(name);
  }

  Refusal no_run(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto known = ended_.find(name);
    if (known == ended_.end()) return unknown_run(name);
    return transport::refusal(RefusalCode::conflict, "run",
                              "the run '" + name + "' is not active: it is " + known->second.state);
  }

  /// Returns events of a run, or of the head itself if the message names no run.
  Reply events_of(const transport::Message& message) {
    const auto name = text_in(message.body, "run");
    const Value* asked = message.body.find("from");
    const std::int64_t from =
        asked && asked->integer() ? std::max<std::int64_t>(0, *asked->integer()) : 0;
    if (name.empty()) return transport::to_value(told_.page(from));
    const auto run = find(name);
    if (!run && !has_ended(name)) return unknown_run(name);
    // Until the run has begun, the file may still belong to an earlier run of that name.
    if (run && run->report().began < 0) return transport::to_value(EventPage{{}, from, false});
    const auto page = read_page(program_.files, "runs/" + name + "/events.jsonl", from);
    if (!page) return page.error();
    return transport::to_value(*page);
  }

  /// Answers with the state of a run. First gives the run an order, unless it has ended.
  template <class Order>
  Reply answer_about_run(const transport::Message& message, Order order) {
    const auto name = text_in(message.body, "run");
    if (const auto run = find(name)) {
      order(name, *run);
      return transport::to_value(run->report());
    }
    const std::lock_guard lock(mutex_);
    const auto before = ended_.find(name);
    if (before != ended_.end()) return transport::to_value(before->second);
    return unknown_run(name);
  }
  void tell_run(const transport::Peer&, const transport::Message& message, const Answer& answer) {
    (*answer)(answer_about_run(message, [](const std::string&, HeadRun&) {}));
  }
  void stop(const transport::Peer&, const transport::Message& message, const Answer& answer) {
    (*answer)(answer_about_run(message, [&](const std::string& name, HeadRun& run) {
      if (!run.report().has_ended()) changed(name, "stopping", "");
      text_in(message.body, "mode") == "now" ? run.stop_now() : run.drain();
    }));
  }
  void pause(const transport::Peer&, const transport::Message& message, const Answer& answer) {
    (*answer)(answer_about_run(message, [this](const std::string& name, HeadRun& run) {
      if (!run.report().has_ended()) changed(name, "paused", "");
      run.pause(true);
    }));
  }
  void resume(const transport::Peer&, const transport::Message& message, const Answer& answer) {
    (*answer)(answer_about_run(message, [this](const std::string& name, HeadRun& run) {
      if (!run.report().has_ended()) changed(name, "running", "");
      run.pause(false);
    }));
  }

  const ProgramContext program_;
  HeadOptions options_;
  EventBacklog told_;
  GpuWarnings gpu_warnings_;
  std::unique_ptr<HeadJournal> journal_;
  std::atomic<bool> is_closing_ = false;
  std::mutex answering_;
  bool answers_ = true;  // False once the gate closes.
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<HeadRun>> runs_;
  // Reports of runs that ended in this life of the head or earlier.
  std::map<std::string, RunStanding> ended_;
  std::map<std::uint64_t, std::string> submitted_;  // Used only on the loop of submits.
  std::unique_ptr<transport::Publisher> publisher_;
  std::optional<HeadQuestions> questions_;
  std::optional<HeadOrders> orders_;
  std::optional<NodeQuestions> node_questions_;
  std::optional<LinkQuestions> link_questions_;
  std::unique_ptr<Loop> submits_ =
      program_.env.make_loop({.name = "submits", .most_waiting = most_submits});
  std::unique_ptr<Loop> clearing_ = program_.env.make_loop({"ended runs"});
  std::unique_ptr<NodeGate> gate_;  // Last: its peers may ask until its threads have ended.
};

HeadService::HeadService(std::unique_ptr<Service> service) : service_(std::move(service)) {}
HeadService::~HeadService() = default;

Result<std::unique_ptr<HeadService>> HeadService::open(const ProgramContext& program,
                                                       HeadOptions options) {
  auto service = std::make_unique<Service>(program, std::move(options));
  if (auto opened = service->open(); !opened) return opened.error();
  return std::unique_ptr<HeadService>(new HeadService(std::move(service)));
}

void HeadService::end(std::function<void()> then) { service_->end(std::move(then)); }
const std::string& HeadService::endpoint() const { return service_->endpoint(); }
const std::string& HeadService::events() const { return service_->events(); }
Value HeadService::status() const { return service_->status(); }
std::map<std::string, RunNumbers> HeadService::numbers() const { return service_->numbers(); }
Status HeadService::allow(const transport::AllowList& allowed) { return service_->allow(allowed); }
std::uint64_t HeadService::term() const { return service_->term(); }

}  // namespace troupe::apps
