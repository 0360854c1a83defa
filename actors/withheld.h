#pragma once

#include <functional>
#include <utility>
#include <vector>

namespace troupe::actors {

/// While a thread has one of these, it gives work to a device, and what it would say waits until
/// the device has done that.
class Withheld {
 public:
  using Saying = std::function<void()>;

  Withheld();
  ~Withheld();
  Withheld(const Withheld&) = delete;
  Withheld& operator=(const Withheld&) = delete;

  void add(Saying saying) { waiting_.push_back(std::move(saying)); }
  /// All of it, in order.
  std::vector<Saying> take() { return std::move(waiting_); }

  /// Null where nothing is withheld.
  static Withheld* of_this_thread();

 private:
  std::vector<Saying> waiting_;
};

/// By a job: calls it on the same thread once all is done that the job has given to its device by
/// now. Where the cores compute, that is at once.
template <class Saying>
void once_done(Saying saying) {
  if (auto* withheld = Withheld::of_this_thread()) return withheld->add(std::move(saying));
  saying();
}

}  // namespace troupe::actors
