#include "cluster/cluster.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "catch.h"
#include "core/json.h"

namespace troupe::tests {

const std::string gpt = R"(
seed = 3
[model]
kind    = "gpt2"
vocab   = 32
context = 16
width   = 32
heads   = 2
layers  = 4
dropout = 0.1
[data]
train = "made:markov?states=32"
validate = "made:markov?states=32&stream=1"
[batch]
global = 16
micro  = 2
[optimizer]
kind = "adamw"
lr   = 3e-3
clip_norm = 1.0
[precision]
compute = "fp32"
[pipeline]
stages = 1
[checkpoint]
every = "20 steps"
[train]
steps = 12
eval_every = 6
)";

namespace {

std::vector<pid_t> processes_in(const Workplace& here) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto folder = std::filesystem::read_symlink(entry.path() / "cwd", error);
    if (!error && folder == std::filesystem::canonical(here.path()))
      found.push_back(static_cast<pid_t>(std::stol(entry.path().filename().string())));
  }
  return found;
}

}  // namespace

std::vector<std::string> with(std::vector<std::string> words,
                              const std::vector<std::string>& settings) {
  for (const auto& setting : settings) {
    words.push_back("--set");
    words.push_back(setting);
  }
  return words;
}

std::vector<Value> events(const Workplace& here, const std::string& run, const std::string& type) {
  std::ifstream file(here.path() / "runs" / run / "events.jsonl");
  std::vector<Value> found;
  for (std::string line; std::getline(file, line);) {
    auto event = parse_json(line);
    if (event && *event->find("type")->text() == type) found.push_back(std::move(*event));
  }
  return found;
}

std::string digest(const Workplace& here, const std::string& run) {
  const auto saved = events(here, run, "checkpoint.saved");
  return saved.empty() ? "" : *saved.back().find("weights")->text();
}

std::string digest_of_one(const Workplace& here, const std::vector<std::string>& settings) {
  auto words = with({"train", "gpt.toml", "-q", "--set", "name=one"}, settings);
  const Ended one = troupe(here, words);
  INFO(one.err);
  REQUIRE(one.code == 0);
  return digest(here, "one");
}

std::map<std::int64_t, int> times_done(const Workplace& here, const std::string& run) {
  std::map<std::int64_t, int> times;
  for (const auto& step : events(here, run, "step")) ++times[*step.find("step")->integer()];
  return times;
}

std::string head_of(const Workplace& here) {
  std::string address;
  std::ifstream(here.path() / "troupe/head") >> address;
  return address;
}

std::set<std::string> leavings(const Workplace& here) {
  std::set<std::string> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", error))
    found.insert(entry.path().string());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(here.path()))
    if (entry.is_socket()) found.insert(entry.path().string());
  return found;
}

int processes_of_program(const Workplace& here) {
  for (const pid_t process : processes_in(here)) (void)is_gone(process);
  return static_cast<int>(processes_in(here).size());
}

long resident_bytes(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/statm");
  long pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

bool is_gone(pid_t process, std::chrono::seconds patience) {
  const int file = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  if (file < 0) return true;
  pollfd ended{file, POLLIN, 0};
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(patience);
  const bool has_ended = poll(&ended, 1, static_cast<int>(milliseconds.count())) > 0;
  close(file);
  return has_ended;
}

std::vector<std::string> head_words(const std::vector<std::string>& more) {
  std::vector<std::string> words{"head", "--listen", "127.0.0.1:0", "--events", "127.0.0.1:0"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Cluster::Cluster(const Workplace& place, const std::vector<std::string>& names,
                 const std::vector<std::string>& more,
                 const std::vector<std::string>& more_for_head)
    : here(place), head(place, head_words(more_for_head)) {
  INFO(head.said());
  REQUIRE(head.says("troupe submit"));
  for (const auto& name : names) start_node(name, more);
}

void Cluster::start_node(const std::string& name, const std::vector<std::string>& more) {
  std::vector<std::string> words{"node", "--name", name};
  words.insert(words.end(), more.begin(), more.end());
  if (std::ranges::count(more, "--cores") == 0) words.insert(words.end(), {"--cores", "1"});
  nodes.push_back(std::make_unique<Process>(here, words));
  INFO(nodes.back()->said());
  REQUIRE(nodes.back()->says("joined"));
}

pid_t Cluster::node_process(std::size_t node) const {
  const auto children = children_of(nodes[node]->id());
  REQUIRE(children.size() == 1);
  return children.front();
}

void Cluster::end() {
  for (const auto& node : nodes) node->send(SIGTERM);
  for (const auto& node : nodes) CHECK(node->wait() == 0);
  head.send(SIGTERM);
  const auto code = head.wait();
  INFO(head.said());
  CHECK(code == 0);
}

}  // namespace troupe::tests
