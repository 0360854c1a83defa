#include "tests/sim/cluster.h"

#include <signal.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/json.h"
#include "transport/wire/fields.h"
#include "transport/wire/wire.h"

namespace troupe::simulation {
namespace {

constexpr int head_port = 4700;
/// How long a person waits for an answer before asking again.
constexpr auto answers_within = std::chrono::seconds(10);
// A fault sends one of these again.
constexpr std::size_t kept_packets = 48;
const std::string head_secret(40, 'S');

/// Keys that only simulated networks take: their sockets compare public keys alone.
transport::KeyPair keys_of(const std::string& name) {
  std::string key = name;
  std::ranges::replace(key, '-', '.');
  key.resize(40, '0');
  return {key, head_secret};
}

std::string endpoint_of(const SimulatedMachine& head) {
  return "tcp://" + head.address + ":" + std::to_string(head_port);
}

transport::DialOptions dial_options(const std::string& name, const SimulatedMachine& head) {
  transport::DialOptions dial;
  dial.endpoint = endpoint_of(head);
  dial.keys = keys_of(name);
  dial.head_key = keys_of("head").public_key;
  dial.backoff = actors::node_backoff;
  return dial;
}

}  // namespace

bool Life::has_said(const std::string& text) const {
  return std::ranges::any_of(said, [&](const auto& line) { return line.find(text) != line.npos; });
}

class Person {
 public:
  Person(Scheduler& scheduler, Wires& wires, SimulatedMachine& machine,
         const SimulatedMachine& head)
      : head(head), process_(scheduler, wires, machine, "person") {
    process_.post([this] {
      const auto program = process_.program();
      loop_ = &process_.own(program.env.make_loop({"person"}));
      auto client = program.network.dial(
          dial_options("person", this->head),
          {.connected =
               [this] {
                 is_connected_ = true;
                 transport::Message hello;
                 hello.type = "hello";
                 hello.id = ++ids_;
                 (void)client_->send(hello);
                 for (const auto& [id, asked] : asked_) (void)client_->send(asked.message);
               },
           .message =
               [this](transport::Message message) {
                 const auto asked = asked_.extract(message.re);
                 if (asked && asked.mapped().then) asked.mapped().then(reply_of(message));
               },
           .gone = [this](transport::Gone, const std::string&) { is_connected_ = false; },
           .refused = {}},
          *loop_);
      client_ = &process_.own(std::move(*client));
      client_->start();
    });
  }

  using Then = std::function<void(const apps::Reply&)>;
  /// Asks again on the next connection if one ends. The head recognizes the id.
  void ask(const std::string& type, Value body, Then then) {
    transport::Message message;
    message.type = type;
    message.id = ++ids_;
    message.body = std::move(body);
    process_.post([this, message = std::move(message), then = std::move(then)] {
      if (is_connected_) (void)client_->send(message);
      asked_[message.id] = {message, then};
    });
  }
  /// Asks again everything without an answer: a head with a full queue drops answers.
  void ask_again() {
    process_.post([this] {
      for (const auto& [id, asked] : asked_)
        if (is_connected_) (void)client_->send(asked.message);
    });
  }

  const SimulatedMachine& head;

 private:
  struct Asked {
    transport::Message message;
    Then then;
  };

  static apps::Reply reply_of(const transport::Message& message) {
    if (message.type == transport::Refusal::type) {
      auto refusal = transport::from_message<transport::Refusal>(message);
      if (!refusal) return refusal.error();
      return std::move(*refusal);
    }
    if (!message.payload.empty()) return parse_json(message.payload[0]);
    return message.body;
  }

  SimulatedProcess process_;
  Loop* loop_ = nullptr;
  transport::ControlClient* client_ = nullptr;
  bool is_connected_ = false;
  std::uint64_t ids_ = 0;
  std::map<std::uint64_t, Asked> asked_;  // Keyed by id; not answered yet.
};

SimulatedCluster::SimulatedCluster(const Scheduler::Options& options)
    : scheduler_(options), wires_(scheduler_, {.kept = kept_packets}) {}

SimulatedCluster::~SimulatedCluster() {
  for (const auto& daemon : daemons_) daemon->process->kill();
  for (const auto& node : nodes_) node->process->kill();
  for (const auto& head : heads_) head->process->kill();
}

void SimulatedCluster::say(Life& life, const std::string& text) {
  scheduler_.note(life.process->name(), text);
  life.said.push_back(text);
  if (said_) said_(life.process->name(), text);
}

SimulatedMachine& SimulatedCluster::add_machine(const std::string& name) {
  return *machines_.emplace_back(std::make_unique<SimulatedMachine>(scheduler_, wires_, name));
}

HeadLife& SimulatedCluster::start_head(SimulatedMachine& machine) {
  auto& head = *heads_.emplace_back(std::make_unique<HeadLife>());
  head.process = std::make_unique<SimulatedProcess>(scheduler_, wires_, machine, "head");
  transport::AllowList allowed;
  for (const auto& each : machines_)
    allowed.add(keys_of(each->name).public_key,
                {each->name, {transport::Role::node, transport::Role::daemon}});
  allowed.add(keys_of("person").public_key, {"person", {transport::Role::operator_}});
  head.process->post([this, &head, &machine, allowed] {
    apps::HeadOptions options;
    options.state = ".troupe";
    options.listen = endpoint_of(machine);
    options.events = "tcp://" + machine.address + ":" + std::to_string(head_port + 1);
    options.keys = keys_of("head");
    options.allowed = allowed;
    options.seal = transport::TermSeal::of_key(head_secret);
    options.interface = machine.address;
    options.plain = actors::PlainTensors::anywhere;
    options.say = [this, &head](const std::string& text) { say(head, text); };
    options.deposed = [&head](std::uint64_t) {
      head.process->env().end_process(4, "a newer head leads");
    };
    auto opened = apps::HeadService::open(head.process->program(), std::move(options));
    if (!opened) head.process->env().end_process(1, opened.error().text);
    head.service = &head.process->own(std::move(*opened));
    head.endpoint = head.service->endpoint();
    head.term = head.service->term();
    head.is_ready = true;
  });
  return head;
}

void SimulatedCluster::end(HeadLife& head) {
  head.process->post([&head] {
    head.service->end([&head] {
      head.process->post([&head] {
        head.service = nullptr;
        head.process->destroy_objects();
        head.process->env().end_process(0, "");
      });
    });
  });
}

NodeLife& SimulatedCluster::start_node(SimulatedMachine& machine, const SimulatedMachine& head) {
  return start_node(machine, head, NodeOrder());
}

NodeLife& SimulatedCluster::start_node(SimulatedMachine& machine, const SimulatedMachine& head,
                                       const NodeOrder& order) {
  auto& node = *nodes_.emplace_back(std::make_unique<NodeLife>());
  node.process = std::make_unique<SimulatedProcess>(scheduler_, wires_, machine, machine.name);
  node.process->post([this, &node, &machine, &head, order] {
    auto& env = node.process->env();
    apps::NodeProgramOptions options;
    options.arguments.name = machine.name;
    options.arguments.interface = machine.address;
    options.arguments.term = order.term;
    options.arguments.term_proof = order.term_proof;
    options.life = order.life;
    options.dial = dial_options(machine.name, head);
    options.say = [this, &node](const std::string& text) { say(node, text); };
    options.apply_fault = [](const actors::Chaos&, actors::Pace&) {};
    options.stuck = [&env](const std::string& why) { env.end_process(1, why); };
    options.ended = [&node](apps::ExitCode code, const std::string& error) {
      if (!error.empty()) node.said.push_back(error);
      node.process->post([&node, code] {
        node.program = nullptr;
        node.process->destroy_objects();
        node.process->env().end_process(static_cast<int>(code), "");
      });
    };
    auto started = apps::NodeProgram::start(node.process->program(), std::move(options));
    if (!started) env.end_process(1, started.error().text);
    node.program = &node.process->own(std::move(*started));
    node.is_ready = true;
  });
  return node;
}

void SimulatedCluster::end(NodeLife& node) {
  node.process->post([&node] { node.program->leave("stopped on request"); });
}

/// Starts the node processes of a daemon.
class SimulatedCluster::NodeProcesses final : public apps::Processes {
 public:
  NodeProcesses(SimulatedCluster& cluster, SimulatedMachine& machine, const SimulatedMachine& head,
                DaemonLife& daemon)
      : cluster_(cluster), machine_(machine), head_(head), daemon_(daemon) {}

  std::unique_ptr<apps::ChildProcess> start(apps::ProcessOrder order, Loop& loop,
                                            Ended ended) override {
    NodeOrder node_order;
    const auto& words = order.arguments;
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (words[i] == "--term") node_order.term = std::stoull(words[i + 1]);
      if (words[i] == "--term-proof") node_order.term_proof = words[i + 1];
    }
    for (const auto& variable : order.environment)
      if (const auto at = variable.find('='); at != variable.npos)
        node_order.life = std::stoll(variable.substr(at + 1));
    auto& node = cluster_.start_node(machine_, head_, node_order);
    daemon_.node = &node;
    return std::make_unique<Child>(cluster_, node, machine_.processes, loop, std::move(ended));
  }

 private:
  class Child final : public apps::ChildProcess {
   public:
    Child(SimulatedCluster& cluster, NodeLife& node, int number, Loop& loop, Ended ended)
        : cluster_(cluster), node_(node) {
      node.process->on_end([number, &loop, ended = std::move(ended)](const Ending& ending) {
        apps::ProcessEnd end{number, ending.code, 0, ending.last_words};
        if (ending.how == Ending::How::killed) end.signal = SIGKILL;
        if (ending.how == Ending::How::crashed) end.signal = SIGABRT;
        loop.post([ended, end] { ended(end); });
      });
    }
    ~Child() override {
      node_.process->on_end({});
      node_.process->kill();
    }
    void signal(Signal signal) override {
      if (signal == Signal::kill) return node_.process->kill();
      if (node_.process->is_alive()) cluster_.end(node_);
    }

   private:
    SimulatedCluster& cluster_;
    NodeLife& node_;
  };

  SimulatedCluster& cluster_;
  SimulatedMachine& machine_;
  const SimulatedMachine& head_;
  DaemonLife& daemon_;
};

DaemonLife& SimulatedCluster::start_daemon(SimulatedMachine& machine,
                                           const SimulatedMachine& head) {
  auto& daemon = *daemons_.emplace_back(std::make_unique<DaemonLife>());
  daemon.process =
      std::make_unique<SimulatedProcess>(scheduler_, wires_, machine, "daemon of " + machine.name);
  daemon.process->post([this, &daemon, &machine, &head] {
    auto& env = daemon.process->env();
    auto& processes =
        daemon.process->own(std::make_unique<NodeProcesses>(*this, machine, head, daemon));
    apps::NodeDaemonOptions options;
    options.arguments.name = machine.name;
    options.arguments.interface = machine.address;
    options.dial = dial_options(machine.name, head);
    options.say = [this, &daemon](const std::string& text) { say(daemon, text); };
    options.status = [](const std::string&) {};
    options.ended = [&daemon](int code) {
      daemon.process->post([&daemon, code] { daemon.process->env().end_process(code, ""); });
    };
    auto started = apps::NodeDaemon::start({env, daemon.process->program().network, processes},
                                           std::move(options));
    if (!started) env.end_process(1, started.error().text);
    daemon.process->own(std::move(*started));
    daemon.is_ready = true;
  });
  return daemon;
}

bool SimulatedCluster::run_until(const std::function<bool()>& condition,
                                 std::chrono::nanoseconds patience) {
  return scheduler_.run_until(condition, scheduler_.now() + patience) == Scheduler::Stopped::done;
}

Person& SimulatedCluster::person_of(const SimulatedMachine& head) {
  for (const auto& person : people_)
    if (&person->head == &head) return *person;
  add_desk();
  return *people_.emplace_back(std::make_unique<Person>(scheduler_, wires_, *desk_, head));
}

void SimulatedCluster::add_desk() {
  if (!desk_) desk_ = &add_machine("desk");
}

void SimulatedCluster::request(const SimulatedMachine& head, const std::string& type, Value body,
                               std::function<void(const apps::Reply&)> then) {
  person_of(head).ask(type, std::move(body), std::move(then));
}

apps::Reply SimulatedCluster::ask(const SimulatedMachine& head, const std::string& type,
                                  Value body) {
  const auto answer = std::make_shared<std::optional<apps::Reply>>();
  request(head, type, std::move(body), [answer](const apps::Reply& reply) { *answer = reply; });
  for (int again = 0; again < 6; ++again) {
    if (run_until([&] { return answer->has_value(); }, answers_within)) return **answer;
    person_of(head).ask_again();
  }
  return Error{"the head did not answer '" + type + "' within a minute"};
}

Value SimulatedCluster::run(const SimulatedMachine& head, const std::string& name) {
  Value body = Value::Map{};
  body.set("run", name);
  const auto reply = ask(head, "run.get", std::move(body));
  return reply ? *reply : Value();
}

}  // namespace troupe::simulation
