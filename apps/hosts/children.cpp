#include "apps/hosts/children.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

#include "core/descriptor.h"

namespace troupe::apps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t longest_line = 64 * 1024;

struct Pipe {
  Descriptor read_end, write_end;
};

Pipe make_pipe() {
  int ends[2];
  [[maybe_unused]] const int made = pipe2(ends, O_CLOEXEC);
  assert(made == 0);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

/// Returns an anonymous file that holds `text`, positioned at its start.
Descriptor file_with(const std::string& text) {
  Descriptor file(memfd_create("troupe-input", MFD_CLOEXEC));
  assert(file);
  for (std::size_t at = 0; at < text.size();) {
    const auto count = write(file.number(), text.data() + at, text.size() - at);
    assert(count > 0);
    at += static_cast<std::size_t>(count);
  }
  lseek(file.number(), 0, SEEK_SET);
  return file;
}

[[noreturn]] void become(std::vector<char*> words, pid_t parent, int in, int out, int error) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);  // The parent has died meanwhile.
  setpgid(0, 0);  // A group of its own, so that the child can be killed with all its descendants.
  if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(error, STDERR_FILENO) < 0)
    _exit(126);
  execvp(words[0], words.data());
  _exit(no_such_program);
}

}  // namespace

/// A running program.
struct Children::Child {
  struct Text {
    ChildOrder::Stream stream;
    Descriptor file;
    std::string unfinished;
  };

  ChildOrder order;
  pid_t process = -1;
  Descriptor ended;  // A pidfd, readable once the program has ended.
  Text texts[2];
  Clock::time_point deadline;

  void tell(Text& text, std::string line) const {
    if (line.ends_with('\r')) line.pop_back();  // ssh ends its own lines with \r\n.
    if (order.on_line) order.on_line(text.stream, line);
  }

  /// Reads what is available and closes the file at its end.
  void read(Text& text) {
    char bytes[4096];
    while (text.file) {
      const auto count = ::read(text.file.number(), bytes, sizeof bytes);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return;  // Nothing more for now.
      if (count == 0) {
        text.file = Descriptor();
        break;
      }
      text.unfinished.append(bytes, static_cast<std::size_t>(count));
      for (std::size_t end; (end = text.unfinished.find('\n')) != std::string::npos ||
                            (end = text.unfinished.size()) >= longest_line;) {
        std::string line = text.unfinished.substr(0, end);
        text.unfinished.erase(0, end + 1);
        tell(text, std::move(line));
      }
    }
  }

  /// Ends the child. All its output was read, even if its descendants keep the pipes open.
  void end() {
    int status = 0;
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
    process = -1;
    for (auto& text : texts) {
      read(text);
      if (!text.unfinished.empty()) tell(text, std::exchange(text.unfinished, {}));
    }
    if (order.on_end)
      order.on_end(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
};

Children::Children(std::size_t at_once) : at_once_(at_once) {}

Children::~Children() {
  for (const auto& child : running_) {
    kill(-child->process, SIGKILL);
    while (waitpid(child->process, nullptr, 0) < 0 && errno == EINTR) continue;
  }
}

void Children::start(ChildOrder order) {
  if (running_.size() < at_once_)
    begin(std::move(order));
  else
    waiting_.push_back(std::move(order));
}

void Children::begin(ChildOrder order) {
  assert(!order.words.empty());
  auto out = make_pipe(), error = make_pipe();
  const auto in = file_with(order.input);
  std::vector<char*> words;
  for (auto& word : order.words) words.push_back(word.data());
  words.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t process = fork();
  assert(process >= 0);
  if (process == 0)
    become(std::move(words), parent, in.number(), out.write_end.number(), error.write_end.number());
  // The parent sets the group too, since either of the two processes may run first.
  setpgid(process, process);
  auto child = std::make_unique<Child>();
  child->deadline = Clock::now() + order.patience;
  child->order = std::move(order);
  child->process = process;
  child->ended = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
  assert(child->ended);
  child->texts[0] = {ChildOrder::Stream::out, std::move(out.read_end), {}};
  child->texts[1] = {ChildOrder::Stream::error, std::move(error.read_end), {}};
  running_.push_back(std::move(child));
}

void Children::wait_once() {
  std::vector<pollfd> files;
  auto soonest = Clock::time_point::max();
  for (const auto& child : running_) {
    for (const auto& text : child->texts) files.push_back({text.file.number(), POLLIN, 0});
    files.push_back({child->ended.number(), POLLIN, 0});
    soonest = std::min(soonest, child->deadline);
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(soonest - Clock::now());
  poll(files.data(), files.size(), static_cast<int>(std::max<std::int64_t>(0, left.count())));
  // Children that callbacks start meanwhile are appended and not polled yet.
  for (std::size_t i = 0, count = running_.size(); i < count; ++i) {
    Child& child = *running_[i];
    for (std::size_t text = 0; text < 2; ++text)
      if (files[3 * i + text].revents != 0) child.read(child.texts[text]);
    if (Clock::now() >= child.deadline) kill(-child.process, SIGKILL);
    if (files[3 * i + 2].revents != 0) child.end();
  }
  std::erase_if(running_, [](const auto& child) { return child->process < 0; });
}

void Children::wait() {
  while (!running_.empty()) {
    wait_once();
    while (!waiting_.empty() && running_.size() < at_once_) {
      begin(std::move(waiting_.front()));
      waiting_.pop_front();
    }
  }
}

}  // namespace troupe::apps
