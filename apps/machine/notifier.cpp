#include "apps/machine/notifier.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "core/descriptor.h"
#include "core/json.h"
#include "core/threads/thread_name.h"

namespace troupe::apps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t most_waiting = 64;
constexpr std::array<const char*, 6> all_kinds = {"done",      "failed", "stopped",
                                                  "recovered", "warn",   "evaluated"};

/// Returns the parts of a text between separators, without empty ones.
std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char character : text)
    if (character == separator)
      parts.emplace_back();
    else
      parts.back() += character;
  std::erase(parts, "");
  return parts;
}

/// Returns a file without a name that contains the text, to be read from its beginning.
Descriptor file_with(const std::string& text) {
  Descriptor file(memfd_create("event", MFD_CLOEXEC));
  if (!file) return file;
  for (std::string_view rest = text; !rest.empty();) {
    const auto written = write(file.number(), rest.data(), rest.size());
    if (written <= 0) return {};
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  return lseek(file.number(), 0, SEEK_SET) == 0 ? std::move(file) : Descriptor();
}

/// Starts a program with this stdin. It has its own process group and no other descriptors of this
/// process. Returns an errno.
int spawn(const std::vector<std::string>& words, int input, pid_t& process) {
  std::vector<char*> pointers;
  for (const auto& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  // Answers of `troupe` go to stdout, so the command's words go elsewhere.
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  const int error = posix_spawnp(&process, words.front().c_str(), &actions, &attributes,
                                 pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

/// Returns "notify: 1 event was dropped" or the like.
std::string dropped_text(std::int64_t count) {
  return "notify: " + std::to_string(count) +
         (count == 1 ? " event was dropped" : " events were dropped");
}

}  // namespace

Result<Notification> Notification::parse(const NotifyOptions& options) {
  Notification notification;
  notification.words = parts_of(options.command, ' ');
  if (notification.words.empty())
    return Error{"--notify: found no command; wanted a program and its arguments"};
  for (auto& kind : parts_of(options.on, ',')) {
    if (std::ranges::find(all_kinds, kind) == all_kinds.end()) {
      std::string known;
      for (const char* one : all_kinds) known += (known.empty() ? "" : ", ") + std::string(one);
      return Error{"--notify-on: there is no kind of event '" + kind + "'; wanted some of " +
                   known + ", separated by commas"};
    }
    notification.kinds.insert(std::move(kind));
  }
  return notification;
}

std::string notified_kind(const Value& event) {
  const std::string type = text_in(event, "type");
  if (type == "run.recovered") return "recovered";
  if (type == "warn") return "warn";
  if (type == "eval") return "evaluated";
  if (type != "run.state") return {};
  const std::string state = text_in(event, "state");
  return state == "done" || state == "failed" || state == "stopped" ? state : std::string();
}

Notifier::Notifier(Notification notification, std::function<void(const std::string&)> say,
                   std::chrono::milliseconds limit)
    : notification_(std::move(notification)),
      say_(std::move(say)),
      limit_(limit),
      thread_([this] { run(); }) {}

Notifier::~Notifier() { finish(); }

void Notifier::tell(const Value& event) {
  if (!notification_.kinds.contains(notified_kind(event))) return;
  {
    const std::lock_guard lock(mutex_);
    if (ends_) return;
    if (waiting_.size() >= most_waiting) {
      ++dropped_;
      return;
    }
    waiting_.push_back({event, std::exchange(dropped_, 0)});
  }
  bell_.ring();
}

void Notifier::finish() {
  {
    const std::lock_guard lock(mutex_);
    if (!ends_) end_by_ = Clock::now() + limit_;
    ends_ = true;
  }
  bell_.ring();
  if (thread_.joinable()) thread_.join();
}

void Notifier::run() {
  name_thread("notifier");
  for (;;) {
    std::optional<Waiting> next;
    std::int64_t left = 0;
    bool ends = false;
    {
      const std::lock_guard lock(mutex_);
      ends = ends_;
      left = dropped_;
      for (const auto& one : waiting_) left += 1 + one.dropped;
      if (!waiting_.empty() && Clock::now() < end_by_) {
        next = std::move(waiting_.front());
        waiting_.pop_front();
      }
    }
    if (next)
      deliver(*next);
    else if (!ends)
      bell_.wait();
    else
      return left > 0 ? say_(dropped_text(left) + " at the end") : void();
  }
}

void Notifier::deliver(const Waiting& waiting) {
  Value event = waiting.event;
  if (waiting.dropped > 0) {
    event.set("dropped", waiting.dropped);
    say_(dropped_text(waiting.dropped) + ", because commands take longer than events come");
  }
  const auto problem = run_command(to_json(event) + "\n");
  if (!problem.empty()) say_("notify: " + notification_.words.front() + ": " + problem);
}

/// Returns what went wrong, or nothing.
std::string Notifier::run_command(const std::string& input) {
  const auto file = file_with(input);
  pid_t process = -1;
  const int error = file ? spawn(notification_.words, file.number(), process) : errno;
  if (error != 0) return std::string("cannot be started: ") + strerror(error);
  const Descriptor death(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
  const auto killed_at = Clock::now() + limit_;
  bool has_ended = !death;
  while (!has_ended) {
    // A ring may mean that the notifier ends, which leaves less time.
    (void)bell_.clear();
    auto left = killed_at - Clock::now();
    {
      const std::lock_guard lock(mutex_);
      left = std::min(left, end_by_ - Clock::now());
    }
    if (left.count() <= 0) break;
    pollfd items[] = {{death.number(), POLLIN, 0}, {bell_.descriptor(), POLLIN, 0}};
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    has_ended = poll(items, 2, static_cast<int>(wait)) > 0 && items[0].revents != 0;
  }
  if (!has_ended) kill(-process, SIGKILL);
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (!has_ended) return "was killed, because it did not end in time";
  if (WIFSIGNALED(status)) return std::string("was ended by ") + strsignal(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? std::string()
                                  : "ended with code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace troupe::apps
