#include "apps/client/scenario_player.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "apps/machine/signals.h"
#include "config/load.h"
#include "core/json.h"
#include "core/units.h"

namespace troupe::apps {
namespace {

// The longest wait between two looks at events. Events ring the bell, but a notification can be
// lost.
constexpr auto longest_silence = std::chrono::milliseconds(250);

std::chrono::milliseconds until(std::chrono::steady_clock::time_point end) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  return std::clamp<std::chrono::milliseconds>(left, std::chrono::milliseconds(0), longest_silence);
}

Error interrupted() { return {"it was interrupted"}; }

/// Runs a command line of this program and returns its exit code.
Result<int> ended_code(const std::vector<std::string>& command, const std::string& head,
                       std::chrono::nanoseconds within) {
  std::vector<std::string> words{"troupe"};
  words.insert(words.end(), command.begin(), command.end());
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  setenv("TROUPE_HEAD", head.c_str(), 1);
  const pid_t child = fork();
  if (child < 0) return Error{"cannot start a process: " + std::string(std::strerror(errno))};
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execv("/proc/self/exe", pointers.data());
    _exit(127);
  }
  const int file = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  pollfd ended{file, POLLIN, 0};
  const auto patience = std::chrono::ceil<std::chrono::milliseconds>(within);
  const bool has_ended = poll(&ended, 1, static_cast<int>(patience.count())) > 0;
  close(file);
  if (!has_ended) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  if (!has_ended)
    return Error{"found it running still, wanted its end within " + duration_text(within)};
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Status ScenarioPlayer::begin() {
  if (auto looked = look(); !looked) return looked;
  told_.clear();
  return Done{};
}

Status ScenarioPlayer::look() {
  const auto runs = stage_.client.ask("run.list", Value::Map{});
  if (!runs) return runs.error();
  readers_.try_emplace("", stage_.client, "");
  if (const Value* list = runs->find("runs"); list && list->list())
    for (const auto& run : *list->list())
      if (const Value* name = run.find("name"); name && name->text())
        readers_.try_emplace(*name->text(), stage_.client, *name->text());
  for (auto& [_, reader] : readers_)
    if (auto read = reader.read([&](const Value& event) { told_.push_back(event); }); !read)
      return read;
  return Done{};
}

Status ScenarioPlayer::wait_for(const Pattern& pattern, std::chrono::nanoseconds within) {
  const auto end = Clock::now() + within;
  for (std::size_t next = at_;;) {
    if (auto looked = look(); !looked) return looked;
    for (; next < told_.size(); ++next)
      if (pattern.matches(told_[next])) {
        at_ = next + 1;
        return Done{};
      }
    if (signal_came()) return interrupted();
    if (Clock::now() >= end) return not_found(pattern, at_, within);
    stage_.bell.wait_for(until(end));
  }
}

Error ScenarioPlayer::not_found(const Pattern& pattern, std::size_t from,
                                std::chrono::nanoseconds within) const {
  std::string found = std::to_string(told_.size() - from) + " other events";
  const auto like = std::find_if(told_.rbegin(), told_.rend() - static_cast<std::ptrdiff_t>(from),
                                 [&](const Value& event) {
                                   const Value* type = event.find("type");
                                   return type && type->text() && *type->text() == pattern.type();
                                 });
  if (like != told_.rend() - static_cast<std::ptrdiff_t>(from))
    found += ", and the last of that type was " + to_json(*like);
  return {"found " + found + "; wanted " + pattern.text() + " within " + duration_text(within)};
}

Status ScenarioPlayer::play(const Act& act, const std::string& folder) {
  if (auto passed = pass(act.after); !passed) return passed;
  if (act.when)
    if (auto came = wait_for(*act.when, act.within); !came) return came;
  for (const auto& node : act.start)
    if (auto started = stage_.start_node(node); !started) return started;
  if (!act.submit.empty())
    if (auto submitted = submit(act, folder); !submitted) return submitted;
  if (!act.send.is_null())
    if (auto sent = send(act.send); !sent) return sent;
  if (!act.command.empty())
    if (auto ran = run(act); !ran) return ran;
  const std::size_t from = at_;
  std::size_t last = at_;
  for (const auto& pattern : act.expect) {
    at_ = from;
    if (auto came = wait_for(pattern, act.within); !came) return came;
    last = std::max(last, at_);
  }
  at_ = last;
  return act.same_weights.empty() ? Status(Done{}) : compare(act.same_weights);
}

Status ScenarioPlayer::pass(std::chrono::nanoseconds time) {
  for (const auto end = Clock::now() + time; Clock::now() < end;) {
    if (signal_came()) return interrupted();
    stage_.bell.wait_for(until(end));
  }
  return Done{};
}

Status ScenarioPlayer::submit(const Act& act, const std::string& folder) {
  const auto path = (std::filesystem::path(folder) / act.submit).lexically_normal().string();
  const auto loaded = config::load({path, act.set});
  if (!loaded) return loaded.error();
  Value body = loaded->tree;
  if (act.resume) body.set("resume", true);
  const auto answer = stage_.client.ask("run.submit", std::move(body));
  if (!answer) return within("submit " + act.submit, answer.error());
  // A run that starts anew has a new events file.
  if (!act.resume) readers_.erase(loaded->config.name);
  stage_.say("  submitted " + loaded->config.name);
  return Done{};
}

Status ScenarioPlayer::send(const Value& message) {
  Value body = message;
  const std::string type = *message.find("type")->text();
  std::erase_if(*body.map(), [](const Value::Entry& entry) { return entry.key == "type"; });
  const auto answer = stage_.client.ask_as_written(type, std::move(body));
  if (!answer) return within(type, answer.error());
  stage_.say("  " + type + ": " + to_json(*answer));
  return Done{};
}

Status ScenarioPlayer::run(const Act& act) {
  const auto code = ended_code(act.command, stage_.endpoint, act.within);
  std::string text = "troupe";
  for (const auto& word : act.command) text += " " + word;
  if (!code) return within(text, code.error());
  if (*code != act.exit_code)
    return Error{text + ": found exit code " + std::to_string(*code) + ", wanted " +
                 std::to_string(act.exit_code)};
  stage_.say("  " + text + ": exit code " + std::to_string(*code));
  return Done{};
}

std::string ScenarioPlayer::last_weights(const std::string& run) const {
  std::string found;
  const Pattern saved(Value::Map{{"type", "checkpoint.saved", {}}, {"run", run, {}}});
  for (const auto& event : told_)
    if (saved.matches(event)) found = *event.find("weights")->text();
  return found;
}

Status ScenarioPlayer::compare(const std::vector<std::string>& runs) const {
  const auto first = last_weights(runs[0]), second = last_weights(runs[1]);
  if (!first.empty() && first == second) return Done{};
  const auto said = [](const std::string& digest) { return digest.empty() ? "none" : digest; };
  return Error{"found weights " + said(first) + " in the last checkpoint of '" + runs[0] +
               "' and " + said(second) + " in that of '" + runs[1] + "'; wanted the same"};
}

}  // namespace troupe::apps
