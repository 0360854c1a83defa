#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace troupe::apps {

/// A thread that runs errands in the order in which they were posted. The number of waiting errands
/// is bounded.
class Errands {
 public:
  using Errand = std::function<void()>;
  enum class Taken { yes, full, closed };

  Errands(std::string thread_name, std::size_t most_waiting);
  ~Errands() { close(); }
  Errands(const Errands&) = delete;
  Errands& operator=(const Errands&) = delete;

  /// Adds an errand; any thread.
  Taken post(Errand errand);
  /// Waits for the current errand, drops the waiting ones and rejects new ones.
  void close();

 private:
  void run(const std::string& thread_name);

  const std::size_t most_waiting_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<Errand> waiting_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace troupe::apps
