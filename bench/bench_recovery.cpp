// How long a run stands still when something is lost: a head, three nodes and a run that trains,
// and somebody who kills. Every time is of the run's own events, which carry the clock of this
// machine.
//
//     ./dev bench recovery [TIMES]

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "bench/child.h"
#include "core/json.h"

namespace troupe::bench {
namespace {

namespace fs = std::filesystem;
using Seconds = std::chrono::duration<double>;

constexpr int nodes = 3;
constexpr auto patience = Seconds(60);
constexpr auto look_every = std::chrono::milliseconds(1);
constexpr std::size_t usual_steps = 50;

const std::string config = R"(
extends = ")" TROUPE_ROOT R"(/config/quickstart.toml"
name = "bench"
[model]
layers = 4
[batch]
global = 16
micro = 2
[pipeline]
stages = 3
[checkpoint]
every = "10 steps"
[train]
steps = 10000000
eval_every = 10000000
[limits]
strikes = 1000000
)";

double now() { return Seconds(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::string text_in(const Value& event, const char* key) {
  const Value* value = event.find(key);
  return value && value->text() ? *value->text() : std::string();
}
double number_in(const Value& event, const char* key) {
  const Value* value = event.find(key);
  return value && value->is_number() ? value->number() : 0;
}

/// What a run tells, as it tells it.
class Story {
 public:
  explicit Story(std::string path) : path_(std::move(path)) {}

  /// The next event that is wanted; what comes before is passed over. Nothing where it does not
  /// come in time.
  std::optional<Value> find(const std::function<bool(const Value&)>& wanted,
                            Seconds within = patience) {
    const auto end = std::chrono::steady_clock::now() + within;
    do {
      while (auto event = next()) {
        learn(*event);
        if (wanted(*event)) return event;
      }
      std::this_thread::sleep_for(look_every);
    } while (std::chrono::steady_clock::now() < end);
    return {};
  }
  /// All that was told until now.
  void catch_up() {
    while (auto event = next()) learn(*event);
  }

  std::int64_t step() const { return step_; }
  /// Of the names in the plan.
  const std::vector<std::string>& players() const { return players_; }
  /// What a step takes.
  double usual() const {
    std::vector<double> sorted(steps_.begin(), steps_.end());
    std::sort(sorted.begin(), sorted.end());
    return sorted.empty() ? 0 : sorted[sorted.size() / 2];
  }

 private:
  std::optional<Value> next() {
    if (!file_.is_open()) file_.open(path_);
    if (!file_.is_open()) return {};
    file_.clear();
    for (std::string more; std::getline(file_, more);) {
      line_ += more;
      if (file_.eof()) return {};  // Its end comes later.
      auto event = parse_json(line_);
      line_.clear();
      if (event) return std::move(*event);
    }
    return {};
  }

  void learn(const Value& event) {
    const auto type = text_in(event, "type");
    if (type == "step") {
      step_ = static_cast<std::int64_t>(number_in(event, "step"));
      steps_.push_back(number_in(event, "seconds"));
      if (steps_.size() > usual_steps) steps_.pop_front();
    }
    if (type == "plan.changed") {
      players_.clear();
      for (const auto& name : *event.find("nodes")->list()) players_.push_back(*name.text());
    }
  }

  std::string path_;
  std::ifstream file_;
  std::string line_;
  std::int64_t step_ = 0;
  std::vector<std::string> players_;
  std::deque<double> steps_;
};

/// Seconds from the deed.
struct Measured {
  double noticed = 0;  // Until the run knows.
  double goes_on = 0;  // Until a step more is done than before,
  double paused = 0;   // and the same without the time that the steps since the save point take.
  std::int64_t redone = 0;
};

/// A head, its nodes and a run, in a folder of their own.
class Cluster {
 public:
  Cluster() {
    folder_ = (fs::temp_directory_path() / "troupe-recovery-XXXXXX").string();
    if (!mkdtemp(folder_.data())) std::perror("mkdtemp");
    program_ = fs::canonical("/proc/self/exe").parent_path() / "../apps/troupe";
    std::ofstream(folder_ + "/run.toml") << config;
    head_ = start({"head", "--listen", "127.0.0.1:0", "--events", "127.0.0.1:0", "--supervised"});
    const auto end = std::chrono::steady_clock::now() + patience;
    while (head().empty() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(look_every);
    for (int node = 0; node < nodes; ++node) {
      const auto name = "n" + std::to_string(node);
      names_.push_back(name);
      daemons_.push_back(start({"node", "--name", name, "--cores", "1", "--head", head()}));
    }
    story_ = std::make_unique<Story>(folder_ + "/runs/bench/events.jsonl");
  }
  ~Cluster() {
    for (auto& daemon : daemons_) daemon->end();
    if (head_) head_->end();
    std::error_code error;
    fs::remove_all(folder_, error);
  }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  bool submit() { return ask({"submit", folder_ + "/run.toml"}); }
  bool ask(std::vector<std::string> words) {
    words.insert(words.end(), {"--head", head()});
    const auto asked = run_child(order(std::move(words)));
    return asked && asked->exit_status == 0;
  }
  Story& story() { return *story_; }

  pid_t process_of(const std::string& name) const {
    const auto found = std::ranges::find(names_, name) - names_.begin();
    const auto children = children_of(daemons_[static_cast<std::size_t>(found)]->id());
    return children.empty() ? -1 : children.front();
  }
  pid_t process_of_head() const {
    const auto children = children_of(head_->id());
    return children.empty() ? -1 : children.front();
  }

  /// All nodes play, as far as they come, and some steps are done.
  bool settle(std::mt19937& random) {
    story_->catch_up();
    const auto all = [&](const Value&) { return story_->players().size() == nodes; };
    if (story_->players().size() != nodes) (void)story_->find(all, Seconds(10));
    const auto until = story_->step() + 5 + static_cast<std::int64_t>(random() % 10);
    const bool is_there =
        story_->find([&](const Value&) { return story_->step() >= until; }).has_value();
    // Anywhere within a step.
    const double part = static_cast<double>(random() % 1000) / 1000;
    std::this_thread::sleep_for(Seconds(part * story_->usual()));
    story_->catch_up();
    return is_there;
  }
  std::string some_player(std::mt19937& random) const {
    const auto& players = story_->players();
    return players[random() % players.size()];
  }

 private:
  std::string head() const {
    std::string address;
    std::ifstream(folder_ + "/troupe/head") >> address;
    return address;
  }
  ChildOrder order(std::vector<std::string> words) const {
    words.insert(words.begin(), program_);
    words.emplace_back("-q");
    return {.command = std::move(words),
            .environment = {{"XDG_STATE_HOME", folder_}},
            .cores = static_cast<int>(std::thread::hardware_concurrency())};
  }
  std::unique_ptr<Background> start(std::vector<std::string> words) const {
    return std::make_unique<Background>(order(std::move(words)), folder_);
  }

  std::string folder_;
  std::string program_;
  std::vector<std::string> names_;
  std::unique_ptr<Background> head_;
  std::vector<std::unique_ptr<Background>> daemons_;
  std::unique_ptr<Story> story_;
};

bool is_type(const Value& event, const char* type) { return text_in(event, "type") == type; }

/// From the deed until the run is a step further than before it.
std::optional<Measured> follow(Story& story, double deed, std::int64_t before) {
  Measured measured;
  const auto noticed = story.find([](const Value& event) {
    return is_type(event, "warn") || is_type(event, "run.state") || is_type(event, "plan.changed");
  });
  if (!noticed) return {};
  measured.noticed = number_in(*noticed, "time") - deed;
  const double usual = story.usual();
  const auto first = story.find([](const Value& event) { return is_type(event, "step"); });
  if (!first) return {};
  const auto after = story.step() - 1;
  const auto further = story.step() > before
                           ? first
                           : story.find([&](const Value&) { return story.step() > before; });
  if (!further) return {};
  measured.redone = std::max<std::int64_t>(0, before - after);
  measured.goes_on = number_in(*further, "time") - deed;
  measured.paused = measured.goes_on - static_cast<double>(measured.redone + 1) * usual;
  return measured;
}

double part_of(std::vector<double> numbers, double part) {
  std::sort(numbers.begin(), numbers.end());
  const auto last = static_cast<double>(numbers.size() - 1);
  return numbers[static_cast<std::size_t>(part * last + 0.5)];
}

void print(const std::string& what, const std::vector<Measured>& all) {
  if (all.empty()) return;
  const auto line = [&](const char* name, double Measured::*member) {
    std::vector<double> numbers;
    for (const auto& one : all) numbers.push_back(one.*member);
    std::printf("%-14s %-28s p50 %7.3f  p99 %7.3f  most %7.3f s\n", what.c_str(), name,
                part_of(numbers, 0.5), part_of(numbers, 0.99), part_of(numbers, 1));
  };
  line("noticed", &Measured::noticed);
  line("goes on, without the redone", &Measured::paused);
  line("goes on", &Measured::goes_on);
  double redone = 0;
  for (const auto& one : all) redone += static_cast<double>(one.redone);
  std::printf("%-14s %-28s mean %6.1f  of %zu times\n", what.c_str(), "steps done again",
              redone / static_cast<double>(all.size()), all.size());
  std::fflush(stdout);
}

/// Does it so many times, each time to a run that has settled.
bool measure(
    Cluster& cluster, const std::string& what, int times, std::mt19937& random,
    const std::function<void()>& deed, const std::function<void()>& afterwards = [] {}) {
  std::vector<Measured> all;
  for (int i = 0; i < times; ++i) {
    if (!cluster.settle(random)) {
      std::fprintf(stderr, "%s: the run does not go on\n", what.c_str());
      return false;
    }
    const auto before = cluster.story().step();
    const double begun = now();
    deed();
    const auto measured = follow(cluster.story(), begun, before);
    afterwards();
    if (!measured) {
      std::fprintf(stderr, "%s: the run has not gone on\n", what.c_str());
      return false;
    }
    all.push_back(*measured);
  }
  print(what, all);
  return true;
}

/// To one process; to none where there is none.
void send(pid_t process, int signal) {
  if (process > 0) kill(process, signal);
}

int main_of(int times) {
  std::mt19937 random(1);
  Cluster cluster;
  if (!cluster.submit()) return 1;
  std::string who;
  const auto some = [&] { return cluster.process_of(who = cluster.some_player(random)); };
  pid_t frozen = -1;
  const int fewer = std::max(1, times / 3);
  const bool all =
      measure(cluster, "kill", times, random, [&] { send(some(), SIGKILL); }) &&
      measure(
          cluster, "silence", fewer, random, [&] { send(frozen = some(), SIGSTOP); },
          [&] { send(frozen, SIGCONT); }) &&
      measure(cluster, "head", fewer, random, [&] { send(cluster.process_of_head(), SIGKILL); }) &&
      measure(cluster, "drain", fewer, random, [&] { send(some(), SIGTERM); });
  std::printf("a step takes %.3f s; a save point every 10 steps\n", cluster.story().usual());
  return all ? 0 : 1;
}

}  // namespace
}  // namespace troupe::bench

int main(int count, char** words) {
  return troupe::bench::main_of(count > 1 ? std::max(1, std::atoi(words[1])) : 30);
}
