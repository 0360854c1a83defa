#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace troupe {

/// A thread of this process, and the place in the program where it is.
struct ThreadStack {
  int thread = 0;                   // The system's number, as `top -H` shows it.
  std::string name;                 // As name_thread() set it.
  std::string state;                // "runs", "waits", "waits for a device", "is stopped"
  std::vector<std::string> frames;  // Functions, the innermost first.
  std::string why_none;             // Why there are no frames; empty if there are.
};

struct StackLimits {
  std::chrono::milliseconds patience{200};  // For all threads together.
  std::size_t threads = 128;                // Later threads are left out.
  std::size_t frames = 24;                  // The innermost frames of each thread; at most 64.
  std::size_t frame_bytes = 120;            // A longer name of a function is cut.
};

/// Returns where each thread of this process is, in the order of their start. Interrupts each
/// thread for some microseconds, in computations, locks and system calls. A thread that does not
/// answer in time has no frames, and a reason. Any thread may call it; one call runs at a time.
/// Uses the signal SIGRTMIN + 3.
std::vector<ThreadStack> thread_stacks(const StackLimits& limits = {});

/// Prints stacks for people, with at most this many frames of each thread.
std::string to_text(const std::vector<ThreadStack>& stacks, std::size_t most_frames);

}  // namespace troupe
