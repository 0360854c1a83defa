#include "bench/live_cluster.h"

#include <signal.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>

#include "core/json.h"

namespace troupe::bench {
namespace {

namespace fs = std::filesystem;
using Seconds = std::chrono::duration<double>;

constexpr auto head_patience = Seconds(60);
constexpr auto story_every = std::chrono::milliseconds(1);
constexpr std::size_t usual_steps = 50;

}  // namespace

double now() { return Seconds(std::chrono::system_clock::now().time_since_epoch()).count(); }

bool is_type(const Value& event, const char* type) { return text_in(event, "type") == type; }

std::optional<Value> Story::find(const std::function<bool(const Value&)>& wanted, Seconds within) {
  const auto end = std::chrono::steady_clock::now() + within;
  do {
    while (auto event = next()) {
      learn(*event);
      if (wanted(*event)) return event;
    }
    std::this_thread::sleep_for(story_every);
  } while (std::chrono::steady_clock::now() < end);
  return {};
}

void Story::catch_up() {
  while (auto event = next()) learn(*event);
}

double Story::usual() const {
  std::vector<double> sorted(steps_.begin(), steps_.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted.empty() ? 0 : sorted[sorted.size() / 2];
}

std::optional<Value> Story::next() {
  if (!file_.is_open()) file_.open(path_);
  if (!file_.is_open()) return {};
  file_.clear();
  for (std::string more; std::getline(file_, more);) {
    line_ += more;
    if (file_.eof()) return {};  // The rest of the line is not written yet.
    auto event = parse_json(line_);
    line_.clear();
    if (event) return std::move(*event);
  }
  return {};
}

void Story::learn(const Value& event) {
  if (is_type(event, "step")) {
    step_ = static_cast<std::int64_t>(number_in(event, "step"));
    goodput_ = number_in(event, "goodput");
    steps_.push_back(number_in(event, "seconds"));
    if (steps_.size() > usual_steps) steps_.pop_front();
  }
  if (is_type(event, "plan.changed")) {
    players_.clear();
    for (const auto& name : *event.find("nodes")->list()) players_.push_back(*name.text());
  }
}

std::optional<Recovery> follow_recovery(Story& story, double fault, std::int64_t before) {
  Recovery recovery;
  const auto noticed = story.find([](const Value& event) {
    return is_type(event, "warn") || is_type(event, "run.state") || is_type(event, "plan.changed");
  });
  if (!noticed) return {};
  recovery.noticed = number_in(*noticed, "time") - fault;
  const double usual = story.usual();
  const auto first = story.find([](const Value& event) { return is_type(event, "step"); });
  if (!first) return {};
  const auto after = story.step() - 1;
  const auto further = story.step() > before
                           ? first
                           : story.find([&](const Value&) { return story.step() > before; });
  if (!further) return {};
  recovery.redone = std::max<std::int64_t>(0, before - after);
  recovery.goes_on = number_in(*further, "time") - fault;
  recovery.paused = recovery.goes_on - static_cast<double>(recovery.redone + 1) * usual;
  return recovery;
}

LiveCluster::LiveCluster(ClusterOptions options) : options_(std::move(options)) {
  program_ = fs::canonical("/proc/self/exe").parent_path() / "../apps/troupe";
  std::ofstream(folder_ / "run.toml") << options_.config;
  std::vector<std::string> words{"head",     "--listen",    "127.0.0.1:0",
                                 "--events", "127.0.0.1:0", "--supervised"};
  words.insert(words.end(), options_.head_words.begin(), options_.head_words.end());
  head_ = start(std::move(words));
  const auto end = std::chrono::steady_clock::now() + head_patience;
  while (head().empty() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(story_every);
  for (int node = 0; node < options_.nodes; ++node) start_node();
  story_ = std::make_unique<Story>(folder_ / "runs/bench/events.jsonl");
}

LiveCluster::~LiveCluster() {
  for (auto& node : nodes_)
    if (node.daemon) node.daemon->end();
  for (auto& daemon : leaving_) daemon->end();
  if (head_) head_->end();
}

bool LiveCluster::submit(std::vector<std::string> words) {
  words.insert(words.begin(), {"submit", folder_ / "run.toml"});
  return ask(std::move(words));
}

bool LiveCluster::ask(std::vector<std::string> words) {
  words.insert(words.end(), {"--head", head()});
  const auto asked = run_child(order(std::move(words)));
  return asked && asked->exit_status == 0;
}

LiveCluster::Node& LiveCluster::named(const std::string& node) {
  const auto found = std::ranges::find(nodes_, node, &Node::name);
  assert(found != nodes_.end());
  return *found;
}

pid_t LiveCluster::process_of(const std::string& node) const {
  const auto found = std::ranges::find(nodes_, node, &Node::name);
  if (found == nodes_.end() || !found->daemon) return -1;
  const auto children = children_of(found->daemon->id());
  return children.empty() ? -1 : children.front();
}

pid_t LiveCluster::process_of_head() const {
  const auto children = children_of(head_->id());
  return children.empty() ? -1 : children.front();
}

/// Freezes the processes, so that the head notices only silence, unlike the end of a process.
void LiveCluster::take_away(const std::string& node) {
  kill(named(node).daemon->id(), SIGSTOP);
  if (const pid_t process = process_of(node); process > 0) kill(process, SIGSTOP);
}

void LiveCluster::bring_back(const std::string& node) {
  named(node).daemon.reset();
  named(node).daemon =
      start({"node", "--name", node, "--cores", std::to_string(options_.cores), "--head", head()});
}

void LiveCluster::start_node() {
  nodes_.push_back({"n" + std::to_string(started_++), nullptr});
  bring_back(nodes_.back().name);
}

void LiveCluster::replace(const std::string& node) {
  start_node();
  const auto found = std::ranges::find(nodes_, node, &Node::name);
  assert(found != nodes_.end());
  kill(found->daemon->id(), SIGTERM);  // The daemon passes it on. Its process heeds nobody else.
  leaving_.push_back(std::move(found->daemon));
  nodes_.erase(found);
}

bool LiveCluster::settle(std::mt19937& random) {
  story_->catch_up();
  const auto all = [&](const Value&) { return story_->players().size() == nodes_.size(); };
  if (story_->players().size() != nodes_.size()) (void)story_->find(all, Seconds(10));
  const auto until = story_->step() + 5 + static_cast<std::int64_t>(random() % 10);
  const bool is_there =
      story_->find([&](const Value&) { return story_->step() >= until; }).has_value();
  // Wait for a random part of a step.
  const double part = static_cast<double>(random() % 1000) / 1000;
  std::this_thread::sleep_for(Seconds(part * story_->usual()));
  story_->catch_up();
  return is_there;
}

std::string LiveCluster::some_player(std::mt19937& random) const {
  const auto& players = story_->players();
  return players[random() % players.size()];
}

std::string LiveCluster::head() const {
  std::string address;
  std::ifstream(folder_ / "troupe/head") >> address;
  return address;
}

ChildOrder LiveCluster::order(std::vector<std::string> words) const {
  words.insert(words.begin(), program_);
  words.emplace_back("-q");
  return {.command = std::move(words),
          .environment = {{"XDG_STATE_HOME", folder_.path()}},
          .cores = options_.machine_cores > 0
                       ? options_.machine_cores
                       : static_cast<int>(std::thread::hardware_concurrency())};
}

std::unique_ptr<Background> LiveCluster::start(std::vector<std::string> words) const {
  auto daemon = order(std::move(words));
  daemon.folder = folder_.path();
  return std::make_unique<Background>(daemon);
}

}  // namespace troupe::bench
