#include "core/threads/thread_stacks.h"

#include <dirent.h>
#include <execinfo.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <mutex>
#include <utility>

#include "core/threads/symbols.h"

namespace troupe {
namespace {

constexpr std::size_t most_frames = 64;
constexpr std::size_t most_threads = 256;

/// A place into which the handler of a thread writes where the thread is.
struct Slot {
  enum class State : int { free, asked, writing, written };

  std::atomic<State> state = State::free;
  std::atomic<pid_t> thread = 0;
  // Written by the handler, and read once the slot is `written`.
  std::array<void*, most_frames> frames{};
  int count = 0;
  std::uintptr_t place = 0;  // The instruction at which the thread was interrupted.
};

/// The memory of the handler. It is never freed, since a thread may answer late.
struct Answers {
  std::array<Slot, most_threads> slots;
  sem_t came{};
};
std::atomic<Answers*> answers = nullptr;

int stack_signal() { return SIGRTMIN + 3; }

std::uintptr_t interrupted_at(const void* context) {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return static_cast<std::uintptr_t>(machine.pc);
#else
#error "say where the processor has the address of the interrupted instruction"
#endif
}

/// Runs on the thread that is asked. It calls nothing but functions for signal handlers, and
/// backtrace(), which allocates nothing after its first call.
void on_asked(int, siginfo_t*, void* context) {
  const int error = errno;
  auto* const all = answers.load(std::memory_order_acquire);
  const auto own = static_cast<pid_t>(syscall(SYS_gettid));
  if (all) {
    for (auto& slot : all->slots) {
      if (slot.thread.load(std::memory_order_relaxed) != own) continue;
      auto asked = Slot::State::asked;
      if (!slot.state.compare_exchange_strong(asked, Slot::State::writing)) continue;
      slot.place = interrupted_at(context);
      slot.count = backtrace(slot.frames.data(), static_cast<int>(slot.frames.size()));
      slot.state.store(Slot::State::written, std::memory_order_release);
      sem_post(&all->came);
    }
  }
  errno = error;
}

/// A thread, as the system describes it.
struct SystemView {
  std::string name;
  char state = '?';
  bool blocks = false;  // It takes no signal of ours.
};

SystemView view_of(pid_t thread) {
  SystemView view;
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/status");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (colon == line.npos) continue;
    const auto key = line.substr(0, colon);
    const auto from = line.find_first_not_of(" \t", colon + 1);
    const auto text = from == line.npos ? std::string() : line.substr(from);
    if (key == "Name") view.name = text;
    if (key == "State" && !text.empty()) view.state = text[0];
    if (key == "SigBlk") {
      constexpr int hexadecimal = 16;
      const auto mask = std::strtoull(text.c_str(), nullptr, hexadecimal);
      view.blocks = (mask >> (stack_signal() - 1) & 1) != 0;
    }
  }
  return view;
}

std::string text_of_state(char state) {
  switch (state) {
    case 'R':
      return "runs";
    case 'S':
      return "waits";
    case 'D':
      return "waits for a device";
    case 'T':
    case 't':
      return "is stopped";
    default:
      return "ends";
  }
}

std::vector<pid_t> threads_of_this_process() {
  std::vector<pid_t> threads;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/task"), closedir);
  if (!folder) return threads;
  constexpr int decimal = 10;
  while (const dirent* entry = readdir(folder.get()))
    if (const auto thread = std::strtol(entry->d_name, nullptr, decimal); thread > 0)
      threads.push_back(static_cast<pid_t>(thread));
  std::ranges::sort(threads);
  return threads;
}

/// Returns the time at which waits end, on the monotonic clock.
timespec end_after(std::chrono::milliseconds patience) {
  timespec end{};
  clock_gettime(CLOCK_MONOTONIC, &end);
  constexpr std::int64_t second = 1'000'000'000;
  const auto then = end.tv_nsec + std::chrono::nanoseconds(patience).count();
  end.tv_sec += then / second;
  end.tv_nsec = then % second;
  return end;
}

/// A thread that is asked, and the slot of its answer.
struct Question {
  pid_t thread = 0;
  SystemView view;
  Slot* slot = nullptr;
};

/// Asks a thread if it can answer. Returns whether an answer may come.
bool ask(Answers& all, Question& question) {
  if (question.view.blocks) return false;
  const auto free = std::ranges::find_if(
      all.slots, [](const Slot& slot) { return slot.state == Slot::State::free; });
  if (free == all.slots.end()) return false;
  question.slot = &*free;
  free->thread = question.thread;
  free->state.store(Slot::State::asked, std::memory_order_release);
  if (syscall(SYS_tgkill, getpid(), question.thread, stack_signal()) == 0) return true;
  free->state = Slot::State::free;  // The thread has ended.
  question.slot = nullptr;
  return false;
}

std::vector<std::string> frames_of(const Slot& slot, const Symbols& symbols,
                                   const StackLimits& limits) {
  std::vector<std::string> names;
  const auto end = slot.frames.begin() + slot.count;
  // The handler and the return from it stand before the place of the thread.
  auto frame = std::find(slot.frames.begin(), end, reinterpret_cast<void*>(slot.place));
  if (frame == end) frame = std::min(slot.frames.begin() + 2, end);
  for (bool is_first = true; frame != end && names.size() < limits.frames;
       ++frame, is_first = false) {
    const auto address = reinterpret_cast<std::uintptr_t>(*frame);
    // An address to return to may be that of the next function.
    names.push_back(
        short_name(symbols.name_at(is_first ? address : address - 1), limits.frame_bytes));
  }
  return names;
}

/// Prepares the first question of this process.
void prepare() {
  static std::once_flag once;
  std::call_once(once, [] {
    std::array<void*, 2> first{};
    (void)backtrace(first.data(), static_cast<int>(first.size()));  // Loads what it needs.
    auto made = std::make_unique<Answers>();
    sem_init(&made->came, 0, 0);
    answers.store(made.release(), std::memory_order_release);
    struct sigaction action = {};
    action.sa_sigaction = on_asked;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigfillset(&action.sa_mask);
    sigaction(stack_signal(), &action, nullptr);
  });
}

}  // namespace

std::vector<ThreadStack> thread_stacks(const StackLimits& limits) {
  static std::mutex one_at_a_time;
  prepare();
  const std::lock_guard lock(one_at_a_time);
  auto& all = *answers.load(std::memory_order_acquire);
  // Late answers to earlier questions.
  while (sem_trywait(&all.came) == 0) continue;
  for (auto& slot : all.slots) {
    auto late = Slot::State::written;
    (void)slot.state.compare_exchange_strong(late, Slot::State::free);
  }
  std::vector<Question> questions;
  std::size_t awaited = 0;
  for (const auto thread : threads_of_this_process()) {
    if (questions.size() >= std::min(limits.threads, most_threads)) break;
    auto& question = questions.emplace_back(Question{thread, view_of(thread), nullptr});
    if (ask(all, question)) ++awaited;
  }
  const auto end = end_after(limits.patience);
  while (awaited > 0) {
    if (sem_clockwait(&all.came, CLOCK_MONOTONIC, &end) == 0)
      --awaited;
    else if (errno != EINTR)
      break;
  }
  static const Symbols symbols = Symbols::of_this_program();
  std::vector<ThreadStack> stacks;
  for (const auto& [thread, view, slot] : questions) {
    if (view.name.empty()) continue;  // It has ended meanwhile.
    auto& stack =
        stacks.emplace_back(ThreadStack{thread, view.name, text_of_state(view.state), {}, {}});
    auto asked = Slot::State::asked;
    if (!slot) {
      stack.why_none = view.blocks ? "it blocks signals" : "there are too many threads";
    } else if (slot->state.compare_exchange_strong(asked, Slot::State::free)) {
      stack.why_none =
          "it has not answered within " + std::to_string(limits.patience.count()) + " ms";
    } else if (asked == Slot::State::writing) {
      stack.why_none = "it is slow to answer";  // Its slot is lost until it has answered.
    } else {
      stack.frames = frames_of(*slot, symbols, limits);
      slot->state.store(Slot::State::free, std::memory_order_release);
    }
  }
  return stacks;
}

std::string to_text(const std::vector<ThreadStack>& stacks, std::size_t most_frames) {
  std::string text;
  for (const auto& stack : stacks) {
    text += "  " + stack.name + " (thread " + std::to_string(stack.thread) + ") " + stack.state +
            (stack.why_none.empty() ? "" : "; " + stack.why_none) + "\n";
    const auto shown = std::min(most_frames, stack.frames.size());
    for (std::size_t i = 0; i < shown; ++i) text += "    " + stack.frames[i] + "\n";
    if (shown < stack.frames.size())
      text += "    and " + std::to_string(stack.frames.size() - shown) + " outer ones\n";
  }
  return text;
}

}  // namespace troupe
