#include "apps/machine/print_stacks.h"

#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

#include "core/threads/event_fd.h"
#include "core/threads/thread_name.h"
#include "core/threads/thread_stacks.h"

namespace troupe::apps {
namespace {

constexpr std::size_t most_frames = 24;

// The only state that the signal handler touches. It is never destroyed.
EventFd* bell_for_stacks = nullptr;

void on_quit(int) { bell_for_stacks->ring(); }

}  // namespace

void print_stacks_on_quit() {
  bell_for_stacks = new EventFd;
  std::thread([] {
    name_thread("stacks");
    for (;;) {
      bell_for_stacks->wait();
      const auto text =
          "where the threads of this process are:\n" + to_text(thread_stacks(), most_frames);
      std::fputs(text.c_str(), stderr);
    }
  }).detach();
  struct sigaction action = {};
  action.sa_handler = on_quit;
  action.sa_flags = SA_RESTART;
  sigaction(SIGQUIT, &action, nullptr);
}

}  // namespace troupe::apps
