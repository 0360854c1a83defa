#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/client/event_reader.h"
#include "apps/client/head_address.h"
#include "apps/client/scenario.h"
#include "apps/client/scenario_player.h"
#include "apps/client/which_head.h"
#include "apps/command.h"
#include "apps/head/head_service.h"
#include "apps/machine/kept_process.h"
#include "apps/machine/signals.h"
#include "apps/real/real_context.h"
#include "apps/real/real_processes.h"
#include "config/toml/document.h"
#include "core/json.h"
#include "storage/files/temporary_folder.h"

namespace troupe::apps {
namespace {

constexpr auto nodes_patience = std::chrono::seconds(30);

struct PlayArguments {
  WhichHead head;
  std::string scenario;
};

/// A head in this process, and daemons on this machine, for one scenario.
class OwnCluster {
 public:
  explicit OwnCluster(const ProgramContext& program) : program_(program) {}
  /// Lets runs save what they have. They need their nodes until they have ended.
  ~OwnCluster() {
    if (head_) {
      EventFd ended;
      head_->end([&ended] { ended.ring(); });
      ended.wait();
    }
    head_.reset();
    end_and_wait(nodes_);
    nodes_.clear();
  }
  OwnCluster(const OwnCluster&) = delete;
  OwnCluster& operator=(const OwnCluster&) = delete;

  Status open(int nodes) {
    auto state = storage::TemporaryFolder::make();
    if (!state) return state.error();
    state_ = std::move(*state);
    HeadOptions options;
    options.state = state_->path();
    options.listen = options.events = "tcp://127.0.0.1:0";
    options.drills = HeadOptions::Drills::allowed;
    options.say = [](const std::string&) {};
    auto head = HeadService::open(program_, std::move(options));
    if (!head) return head.error();
    head_ = std::move(*head);
    cores_ = std::max(1, program_.host.cores / nodes);
    return Done{};
  }
  void start(const std::string& name) {
    KeepOptions kept;
    kept.arguments = [words = std::vector<std::string>{"node", "--head", endpoint(), "--name", name,
                                                       "--cores", std::to_string(cores_), "-q"}] {
      return words;
    };
    kept.ended = [](const ProcessEnd&) { return true; };
    nodes_.push_back(std::make_unique<KeptProcess>(program_.env, processes_, std::move(kept)));
  }
  const std::string& endpoint() const { return head_->endpoint(); }

 private:
  const ProgramContext program_;
  int cores_ = 1;
  std::optional<storage::TemporaryFolder> state_;
  std::unique_ptr<HeadService> head_;
  RealProcesses processes_;
  std::vector<std::unique_ptr<KeptProcess>> nodes_;
};

/// Stops all runs that a failed scenario has left, without waiting.
void stop_all(HeadClient& client) {
  const auto runs = client.ask("run.list", Value::Map{});
  if (!runs) return;
  const Value* list = runs->find("runs");
  if (!list || !list->list()) return;
  for (const auto& run : *list->list()) {
    Value body = Value::Map{};
    body.set("run", text_of(run, "name"));
    body.set("mode", "now");
    (void)client.ask("run.stop", std::move(body));
  }
}

ExitCode play(const PlayArguments& arguments, const CommonFlags& flags) {
  const auto say = [quiet = flags.quiet](const std::string& text) {
    if (!quiet) std::fprintf(stderr, "%s\n", text.c_str());
  };
  const auto text = config::read_text_file(arguments.scenario);
  if (!text) return invalid(text.error());
  const auto scenario = parse_scenario(arguments.scenario, *text);
  if (!scenario) return invalid(scenario.error());

  WhichHead head = arguments.head;
  RealContext real;
  EventFd bell;  // Outlives the cluster: a signal may come while that ends.
  std::unique_ptr<OwnCluster> own;
  if (scenario->nodes > 0 && head.address.empty()) {
    own = std::make_unique<OwnCluster>(real.get());
    if (auto opened = own->open(scenario->nodes); !opened)
      return complain(ExitCode::failed, "error: " + opened.error().text);
    head = {.address = own->endpoint(), .keys = {}};
  }
  auto client = head.dial(flags);
  if (!client) return no_head(client.error());
  const auto events = head.events_of(**client);
  if (!events) return no_head(events.error());
  ring_on_signals(bell);
  auto ringing = EventBell::open(*events, bell);
  if (!ringing) return no_head(ringing.error());

  ScenarioPlayer player({**client, bell, head.options()->endpoint,
                         [&](const std::string& name) -> Status {
                           if (!own) return Error{"start: this cluster is not the scenario's own"};
                           own->start(name);
                           return Done{};
                         },
                         say});
  const auto fail = [&](int line, const std::string& what) {
    if (own) stop_all(**client);
    const std::string place = scenario->path + ":" + std::to_string(line) + ": ";
    return complain(signal_came() ? ExitCode::interrupted : ExitCode::failed,
                    "error: " + place + what);
  };
  const auto start = std::chrono::steady_clock::now();
  if (!own)
    if (auto begun = player.begin(); !begun) return no_head(begun.error());
  for (int i = 1; own && i <= scenario->nodes; ++i) {
    // Starts nodes one after another, since a run takes them in the order of their arrival.
    const std::string name = "node-" + std::to_string(i);
    const Pattern joined(Value(Value::Map{{"type", "node.joined", {}}, {"node", name, {}}}));
    own->start(name);
    const auto started = player.wait_for(joined, nodes_patience);
    if (!started) return fail(1, "cluster: " + started.error().text);
  }
  for (std::size_t i = 0; i < scenario->acts.size(); ++i) {
    const Act& act = scenario->acts[i];
    if (auto played =
            player.play(act, std::filesystem::path(scenario->path).parent_path().string());
        !played)
      return fail(act.line, "act " + std::to_string(i + 1) + ": " + played.error().text);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    char line[80];
    std::snprintf(line, sizeof line, "act %zu of %zu is done, after %.1f s", i + 1,
                  scenario->acts.size(), passed.count());
    say(line);
  }
  say("all expectations were met");
  return ExitCode::done;
}

}  // namespace

void add_play(Program& program) {
  auto [command, arguments] =
      add_command(program, program.app, "play",
                  "run a scenario: send messages and check the expected events", play);
  command
      ->add_option("scenario", arguments.scenario,
                   "scenario: a .toml file; config/scenarios has examples")
      ->required();
  arguments.head.add_to(*command);
}

}  // namespace troupe::apps
