#include "apps/head/head_service.h"

#include <algorithm>
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
#include "apps/head/head_messages.h"
#include "apps/head/head_orders.h"
#include "apps/head/head_questions.h"
#include "apps/head/head_run.h"
#include "apps/head/head_runs.h"
#include "apps/head/link_questions.h"
#include "apps/head/node_gate.h"
#include "apps/head/node_questions.h"
#include "config/load.h"
#include "core/json.h"
#include "transport/control/publisher.h"

namespace troupe::apps {
namespace {

Value fields_of(const actors::NodeHere& node, actors::Time now) {
  Value value = transport::to_value(node.inventory);
  value.set("name", node.name);
  value.set("cordoned", node.cordoned);
  Value::List gpus;
  for (const auto& gpu : node.gpus_at(now)) gpus.push_back(transport::to_value(gpu));
  if (!gpus.empty()) value.set("gpus", std::move(gpus));
  const auto load = node.load_at(now);
  if (load.busy) value.set("busy", *load.busy);
  if (load.memory) value.set("memory_used", *load.memory);
  return value;
}

/// Returns the previous address if `wanted` has port 0 and there is one.
std::string listen_at(const std::string& wanted, const std::string& before) {
  return wanted.ends_with(":0") && !before.empty() ? before : wanted;
}

}  // namespace

class HeadService::Service {
 public:
  Service(const ProgramContext& program, HeadOptions options)
      : program_(program), options_(std::move(options)) {}

  ~Service() {
    end_loops();
    if (!runs_) return;
    // A run needs its nodes until it has ended, and nodes need the gate. So first the runs are
    // closed, then the gate closes, then the runs are destroyed. Those drop the orders that wait,
    // whose senders then learn of the end by that of their connection.
    for (const auto& run : runs_->all()) run->close();
    const std::lock_guard lock(answering_);
    answers_ = false;
  }

  void end(std::function<void()> then) {
    end_loops();
    const std::shared_ptr<void> ended(nullptr, [then = std::move(then)](void*) { then(); });
    for (const auto& run : runs_->all()) {
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
      if (const auto run = runs_->find(message.run)) run->heard(node, std::move(message));
    };
    events.asked = [this](const transport::Peer& peer, transport::Message message) {
      asked(peer, std::move(message));
    };
    events.say = options_.say;
    auto gate =
        NodeGate::open(program_.env, program_.network, std::move(gate_options), std::move(events));
    if (!gate) return gate.error();
    gate_ = std::move(*gate);
    runs_.emplace(HeadRunsContext{program_, options_, *journal_, *gate_, *publisher_});
    orders_.emplace(
        HeadOrdersContext{*gate_, [this](const std::string& name) { return runs_->find(name); },
                          [this](const std::string& name) { return runs_->no_run(name); },
                          [this] { return runs_->all(); },
                          [this](const Value& event) { publish(event); }, options_.drills});
    node_questions_.emplace(
        NodeQuestionsContext{program_.env, program_.host, gate_->nodes(),
                             [this](const std::string& name) { return runs_->find(name); },
                             [this](const std::string& name) { return runs_->no_run(name); }});
    link_questions_.emplace(LinkQuestionsContext{
        program_.env, gate_->nodes(), [this](const std::string& name) { return runs_->find(name); },
        [this](const std::string& name) { return runs_->no_run(name); }});
    questions_.emplace(
        program_.env, program_.files, [this] { return gate_->nodes().all(); },
        [this](const config::Loaded& loaded) { return options_.confinement.check(loaded); },
        program_.host.unit_times);
    auto noted = journal_->listens(endpoint(), this->events());
    if (!noted) return noted;
    runs_->resume_earlier();
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
    status.set("runs", runs_->reports());
    status.set("nodes", nodes_here());
    return status;
  }

  std::map<std::string, RunNumbers> numbers() const { return runs_->numbers(); }

 private:
  /// From now on no run begins or is cleared away, and nothing is answered.
  void end_loops() {
    if (runs_) runs_->end_loops();
    if (questions_) questions_->close();
    if (node_questions_) node_questions_->close();
    if (link_questions_) link_questions_->close();
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
        {"hello", &Service::greet},        {"status", &Service::tell_status},
        {"run.list", &Service::list_runs}, {"run.get", &Service::tell_run},
        {"run.submit", &Service::submit},  {"run.events", &Service::tell_events},
        {"run.pause", &Service::pause},    {"run.resume", &Service::resume},
        {"run.stop", &Service::stop},      {"node.list", &Service::list_nodes},
    };
    static_assert(transport::handles_all(transport::Handler::head, handlers));
    return transport::find_handler(handlers, type);
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
    for (const auto& run : runs_->all()) run->arrived(node);
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
    for (const auto& run : runs_->all()) run->lost(node, loss);
  }

  void leaving(const actors::NodeHere& node, const std::string& why) {
    options_.say("node " + node.name + " is leaving: " + why);
    Value leaving = event("node.leaving", "");
    leaving.set("node", node.name);
    leaving.set("why", why);
    publish(leaving);
    for (const auto& run : runs_->all())
      if (run->plays_on(node.name)) run->cast_anew([](const Result<std::int64_t>&) {});
  }

  void submit(const transport::Peer&, const transport::Message& message, const Answer& answer) {
    runs_->submit(message, answer);
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
    runs.set("runs", runs_->reports());
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

  /// Returns by node what slows a run down there.
  std::map<std::string, Value::List> stragglers_known() const {
    std::map<std::string, Value::List> stragglers;
    for (const auto& run : runs_->all())
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

  /// Returns events of a run, or of the head itself if the message names no run.
  Reply events_of(const transport::Message& message) {
    const auto name = text_in(message.body, "run");
    const Value* asked = message.body.find("from");
    const std::int64_t from =
        asked && asked->integer() ? std::max<std::int64_t>(0, *asked->integer()) : 0;
    if (name.empty()) return transport::to_value(told_.page(from));
    const auto run = runs_->find(name);
    if (!run && !runs_->ended(name)) return unknown_run(name);
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
    if (const auto run = runs_->find(name)) {
      order(name, *run);
      return transport::to_value(run->report());
    }
    const auto before = runs_->ended(name);
    return before ? Reply(transport::to_value(*before)) : Reply(unknown_run(name));
  }
  void tell_run(const transport::Peer&, const transport::Message& message, const Answer& answer) {
    (*answer)(answer_about_run(message, [](const std::string&, HeadRun&) {}));
  }
  void stop(const transport::Peer&, const transport::Message& message, const Answer& answer) {
    (*answer)(answer_about_run(message, [&](const std::string& name, HeadRun& run) {
      if (!run.report().has_ended()) runs_->changed(name, "stopping", "");
      text_in(message.body, "mode") == "now" ? run.stop_now() : run.drain();
    }));
  }
  void pause(const transport::Peer&, const transport::Message& message, const Answer& answer) {
    (*answer)(answer_about_run(message, [this](const std::string& name, HeadRun& run) {
      if (!run.report().has_ended()) runs_->changed(name, "paused", "");
      run.pause(true);
    }));
  }
  void resume(const transport::Peer&, const transport::Message& message, const Answer& answer) {
    (*answer)(answer_about_run(message, [this](const std::string& name, HeadRun& run) {
      if (!run.report().has_ended()) runs_->changed(name, "running", "");
      run.pause(false);
    }));
  }

  const ProgramContext program_;
  HeadOptions options_;
  EventBacklog told_;
  GpuWarnings gpu_warnings_;
  std::unique_ptr<HeadJournal> journal_;
  std::mutex answering_;
  bool answers_ = true;  // False once the gate closes.
  std::unique_ptr<transport::Publisher> publisher_;
  std::optional<HeadRuns> runs_;
  std::optional<HeadQuestions> questions_;
  std::optional<HeadOrders> orders_;
  std::optional<NodeQuestions> node_questions_;
  std::optional<LinkQuestions> link_questions_;
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
