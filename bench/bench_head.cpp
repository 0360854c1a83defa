// Measures what a crowd of nodes costs a head that has one core: how fast the nodes join, how fast
// the head answers meanwhile and later, its memory and its processor time, how soon it misses the
// nodes that vanish, and how fast all nodes join again after a restart of the head.
//
//     ./dev bench head [ROUNDS [NODES]]

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
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
#include "bench/crowd.h"
#include "bench/figures.h"
#include "bench/live_cluster.h"
#include "storage/files/temporary_folder.h"
#include "transport/keys/keys.h"

namespace troupe::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto patience = 120s;
constexpr auto look_every = 1ms;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Waits until a condition holds. Returns false if it does not in time.
bool wait_until(const std::function<bool()>& condition, std::chrono::seconds within = patience) {
  const auto begin = Clock::now();
  while (!condition()) {
    if (Clock::now() - begin > within) return false;
    std::this_thread::sleep_for(look_every);
  }
  return true;
}

/// A head process with keys, on the first core. Its folder survives a restart.
class Head {
 public:
  Head(std::string program, std::string folder)
      : program_(std::move(program)), folder_(std::move(folder)) {}

  Status make_keys() {
    std::ofstream allowed(folder_ + "/hosts.allow");
    for (const auto& [name, roles] :
         {std::pair("head", ""), {"crowd", "node"}, {"me", "operator"}}) {
      auto keys = transport::make_key_pair();
      if (!keys) return keys.error();
      if (auto written = transport::write_key_pair(file(name) + ".key", *keys); !written)
        return written;
      if (*roles) allowed << name << " " << roles << " " << keys->public_key << "\n";
    }
    return Done{};
  }

  /// Starts the head and waits for its address.
  bool start() {
    fs::remove(file("troupe/head"));
    const std::string words =
        " head --listen 127.0.0.1:0 --events 127.0.0.1:0 --http off --state state --keys head.key "
        "--allow hosts.allow 2>>head.log";
    process_ = std::make_unique<Background>(
        ChildOrder{.command = {"sh", "-c", "exec '" + program_ + "'" + words},
                   .environment = {{"XDG_STATE_HOME", folder_}},
                   .folder = folder_});
    return wait_until([this] {
      std::ifstream address(file("troupe/head"));
      return std::getline(address, endpoint_) && !endpoint_.empty();
    });
  }
  /// Ends the head at once, as a crash would.
  void kill() { process_.reset(); }

  CrowdOptions crowd_of(int nodes) const {
    return {.endpoint = endpoint_,
            .nodes = nodes,
            .keys = *transport::read_key_pair(file("crowd.key")),
            .head_key = public_key()};
  }

  /// Returns the seconds that a command of a user takes, from the start of its process to the end.
  std::optional<double> ask(const std::vector<std::string>& words) const {
    ChildOrder order{.command = {program_},
                     .environment = {},
                     .cores = static_cast<int>(std::thread::hardware_concurrency())};
    order.command.insert(order.command.end(), words.begin(), words.end());
    const std::vector<std::string> more{"--head",       endpoint_,    "--keys",
                                        file("me.key"), "--head-key", public_key()};
    order.command.insert(order.command.end(), more.begin(), more.end());
    const auto begin = Clock::now();
    const auto asked = run_child(order);
    if (!asked || asked->exit_status != 0) return {};
    return seconds_since(begin);
  }

  double memory_kib() const {
    std::ifstream stat("/proc/" + std::to_string(process_->id()) + "/statm");
    double pages = 0, resident = 0;
    stat >> pages >> resident;
    return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1024;
  }
  /// Returns the processor time that the head has used.
  double processor_seconds() const {
    std::ifstream stat("/proc/" + std::to_string(process_->id()) + "/stat");
    constexpr int fields_before = 13;
    std::string field;
    for (int i = 0; i < fields_before; ++i) stat >> field;
    double user = 0, system = 0;
    stat >> user >> system;
    return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }

  /// Returns how many nodes the head has reported as lost so far.
  int lost() {
    if (!log_.is_open()) log_.open(file("head.log"));
    log_.clear();
    for (std::string more; std::getline(log_, more);) {
      line_ += more;
      if (log_.eof()) break;  // The rest of the line comes later.
      if (line_.find(" is lost: ") != std::string::npos) ++lost_;
      if (line_.find(" was refused: ") != std::string::npos) ++refused_;
      line_.clear();
    }
    return lost_;
  }
  /// Returns how many refused connections the head has reported until the last call of lost().
  int refused() const { return refused_; }

 private:
  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  std::string public_key() const { return transport::read_key_pair(file("head.key"))->public_key; }

  std::string program_;
  std::string folder_;
  std::string endpoint_;
  std::unique_ptr<Background> process_;
  std::ifstream log_;
  std::string line_;
  int lost_ = 0;
  int refused_ = 0;
};

/// Starts a crowd that leaves the first core to the head, if there is another one.
Result<std::unique_ptr<Crowd>> crowd_beside(const Head& head, int nodes) {
  cpu_set_t all, others;
  sched_getaffinity(0, sizeof all, &all);
  others = all;
  CPU_CLR(0, &others);
  // Threads inherit this.
  if (CPU_COUNT(&others) > 0) sched_setaffinity(0, sizeof others, &others);
  auto crowd = Crowd::start(head.crowd_of(nodes));
  sched_setaffinity(0, sizeof all, &all);
  return crowd;
}

/// The figures of some rounds, one list each.
struct Figures {
  std::vector<double> joined, asked_meanwhile, status, nodes, top, memory, busy, frozen, killed,
      rejoined;
  int wrongly_lost = 0;
};

bool complain(const std::string& why) {
  return std::fprintf(stderr, "error: %s\n", why.c_str()), false;
}

bool ask(const Head& head, const std::vector<std::string>& words, std::vector<double>& seconds) {
  const auto asked = head.ask(words);
  if (!asked) return complain("troupe " + words.front() + " failed");
  seconds.push_back(*asked);
  return true;
}

/// Waits until the head has reported the loss of `more` nodes. Adds the seconds until the last one.
bool miss(Head& head, int more, std::vector<double>& seconds) {
  const auto begin = Clock::now();
  const int all = head.lost() + more;
  if (!wait_until([&] { return head.lost() >= all; }, 30s))
    return complain("the head misses " + std::to_string(head.lost() - all + more) + " of " +
                    std::to_string(more) + " nodes that are gone");
  seconds.push_back(seconds_since(begin));
  return true;
}

bool measure_once(const std::string& program, int nodes, Figures& figures) {
  const auto folder = storage::TemporaryFolder::make();
  if (!folder) return complain(folder.error().text);
  Head head(program, folder->path());
  if (auto made = head.make_keys(); !made) return complain(made.error().text);
  if (!head.start()) return complain("the head does not come up");
  const double before = head.memory_kib();
  const int lost_before = head.lost();

  auto begin = Clock::now();
  const auto crowd = crowd_beside(head, nodes);
  if (!crowd) return complain(crowd.error().text);
  std::optional<Status> welcome;
  double joined = 0;
  std::jthread waits([&] {
    welcome = (*crowd)->wait_until_welcome(patience);
    joined = seconds_since(begin);
  });
  const auto all = static_cast<std::size_t>(nodes);
  do {
    if (!ask(head, {"status"}, figures.asked_meanwhile)) return false;
  } while ((*crowd)->counts().welcome < all && seconds_since(begin) < 60);
  waits.join();
  if (!*welcome) return complain(welcome->error().text);
  figures.joined.push_back(joined);
  figures.memory.push_back((head.memory_kib() - before) / nodes);

  // The head at rest.
  std::this_thread::sleep_for(1s);
  const double used = head.processor_seconds();
  begin = Clock::now();
  std::this_thread::sleep_for(3s);
  figures.busy.push_back((head.processor_seconds() - used) / seconds_since(begin));
  for (int i = 0; i < 5; ++i)
    if (!ask(head, {"status"}, figures.status) || !ask(head, {"nodes"}, figures.nodes) ||
        !ask(head, {"top"}, figures.top))
      return false;

  const int part = std::max(1, nodes / 8);
  (*crowd)->freeze(part);
  if (!miss(head, part, figures.frozen)) return false;
  (*crowd)->kill(part);
  if (!miss(head, part, figures.killed)) return false;

  head.kill();
  if (!wait_until([&] { return (*crowd)->counts().welcome == 0; }))
    return complain("the nodes do not notice the end of the head");
  const auto connected = (*crowd)->counts().connected;
  begin = Clock::now();
  if (!head.start()) return complain("the head does not come up again");
  const double up = seconds_since(begin);
  if (auto back = (*crowd)->wait_until_welcome(patience); !back)
    return complain("after a restart of the head: " + back.error().text);
  figures.rejoined.push_back(seconds_since(begin));
  std::this_thread::sleep_for(1s);
  figures.wrongly_lost += head.lost() - lost_before - 2 * part;
  std::fprintf(stderr,
               "%d nodes: joined in %.2f s; the head was back after %.2f s, and its nodes after "
               "%.2f s and %.2f connections each; heartbeats were at most %.0f ms late; the head "
               "reported %d refused connections\n",
               nodes, figures.joined.back(), up, figures.rejoined.back(),
               static_cast<double>((*crowd)->counts().connected - connected) / (nodes - 2 * part),
               std::chrono::duration<double, std::milli>((*crowd)->counts().most_late).count(),
               head.refused());
  return true;
}

bool measure(const std::string& program, int nodes, int rounds) {
  Figures figures;
  for (int round = 0; round < rounds; ++round)
    if (!measure_once(program, nodes, figures)) return false;
  const auto worst = [](const std::vector<double>& all) { return *std::ranges::max_element(all); };
  std::printf(
      "| %d | %.2f s | %.0f ms | %.0f, %.0f, %.0f ms | %.0f KiB | %.0f %% | %.2f s | %.2f s | "
      "%.2f s | %d |\n",
      nodes, median(figures.joined), 1e3 * worst(figures.asked_meanwhile),
      1e3 * median(figures.status), 1e3 * median(figures.nodes), 1e3 * median(figures.top),
      median(figures.memory), 100 * median(figures.busy), median(figures.frozen),
      median(figures.killed), median(figures.rejoined), figures.wrongly_lost);
  std::fflush(stdout);
  return true;
}

constexpr int players = 8;
constexpr int losses = 10;

/// A run on eight nodes with two cores each. One more is spare, so that no node of the crowd, which
/// have one core, ever gets a part.
const std::string run_config = R"(
extends = ")" TROUPE_ROOT R"(/config/quickstart.toml"
name = "bench"
[model]
layers = 8
[batch]
global = 16
micro = 2
[pipeline]
stages = 8
[elastic]
nodes = "8:8"
[checkpoint]
every = "10 steps"
[train]
steps = 10000000
eval_every = 10000000
[limits]
strikes = 1000000
[data]
train = "made:markov?states=32"
)";

/// Kills players of a run and prints its median step and how long it stops for a loss.
bool lose_players(LiveCluster& cluster, const std::string& where) {
  std::mt19937 random(1);
  std::vector<double> steps, paused;
  for (int loss = 0; loss < losses; ++loss) {
    constexpr int calm_steps = 30;
    auto& story = cluster.story();
    story.catch_up();
    const auto until = story.step() + calm_steps;
    if (!story.find([&](const Value&) { return story.step() >= until; }))
      return complain(where + ": the run does not go on");
    steps.push_back(story.usual());
    const auto player = cluster.process_of(cluster.some_player(random));
    const double begin = now();
    const auto before = story.step();
    if (player > 0) kill(player, SIGKILL);
    const auto recovery = follow_recovery(story, begin, before);
    if (!recovery) return complain(where + ": the run has not gone on");
    paused.push_back(recovery->paused);
  }
  std::printf("| %s | %.1f ms | %.3f s | %.3f s |\n", where.c_str(), 1e3 * median(steps),
              median(paused), *std::ranges::max_element(paused));
  std::fflush(stdout);
  return true;
}

/// Compares a run without a crowd, with a crowd at its head, and with a crowd that takes as much
/// processor time but is at another head.
bool measure_run(const std::string& program, int nodes) {
  LiveCluster cluster({.nodes = players + 1, .config = run_config, .cores = 2});
  if (!cluster.submit()) return complain("the run was not submitted");
  std::puts(
      "\n| the crowd | a step takes | a loss stops the run for | at most |\n|---|---|---|---|");
  if (!lose_players(cluster, "none")) return false;
  const std::string many = std::to_string(nodes) + " nodes";
  {
    const auto folder = storage::TemporaryFolder::make();
    if (!folder) return complain(folder.error().text);
    Head other(program, folder->path());
    if (auto made = other.make_keys(); !made) return complain(made.error().text);
    if (!other.start()) return complain("the other head does not come up");
    const auto crowd = Crowd::start(other.crowd_of(nodes));
    if (!crowd) return complain(crowd.error().text);
    if (auto joined = (*crowd)->wait_until_welcome(patience); !joined)
      return complain(joined.error().text);
    if (!lose_players(cluster, many + " at another head")) return false;
  }
  const auto crowd = Crowd::start({.endpoint = cluster.head(), .nodes = nodes});
  if (!crowd) return complain(crowd.error().text);
  if (auto joined = (*crowd)->wait_until_welcome(patience); !joined)
    return complain(joined.error().text);
  return lose_players(cluster, many + " at its head");
}

int run(int rounds, std::vector<int> crowds) {
  const std::string program =
      fs::canonical(fs::read_symlink("/proc/self/exe").parent_path() / "../apps/troupe");
  std::puts(
      "| nodes | all have joined | slowest `status` meanwhile | `status`, `nodes`, `top` | the "
      "head's memory per node | its core is busy | a frozen eighth is lost after | a killed eighth "
      "| the rest is back after a restart | wrongly lost |");
  std::puts("|---|---|---|---|---|---|---|---|---|---|");
  std::fflush(stdout);
  for (const int nodes : crowds)
    if (!measure(program, nodes, rounds)) return 1;
  return measure_run(program, crowds.back()) ? 0 : 1;
}

}  // namespace
}  // namespace troupe::bench

int main(int count, char** words) {
  const int rounds = count > 1 ? std::max(1, std::atoi(words[1])) : 3;
  std::vector<int> crowds = {10, 200, 1024, 4096};
  if (count > 2) crowds = {std::max(1, std::atoi(words[2]))};
  return troupe::bench::run(rounds, std::move(crowds));
}
