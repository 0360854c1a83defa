#pragma once

#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "actors/executor.h"
#include "actors/messages.h"
#include "actors/rt.h"

namespace troupe::actors {

/// The jobs of one actor. Once one of them has thrown, the later ones do nothing: what they would
/// work on is not as it should be.
class Jobs {
 public:
  Jobs(Executor& executor, caf::weak_actor_ptr owner)
      : executor_(&executor), owner_(std::move(owner)) {}

  /// The owner hears of an exception, with `place` in front of its text.
  template <class Work>
  void post(std::string place, Work work) {
    executor_->post([broken = broken_, owner = owner_, place = std::move(place),
                     work = std::move(work)](Stream& stream) mutable {
      if (*broken) return;
      try {
        do_work(stream, work);
      } catch (const std::exception& exception) {
        *broken = true;
        rt::post(owner, JobFailed{place + ": " + exception.what()});
      } catch (...) {
        *broken = true;
        rt::post(owner, JobFailed{place + ": an exception of no known type"});
      }
    });
  }

  const caf::weak_actor_ptr& owner() const { return owner_; }

 private:
  /// What it says is said once it is done, by a device too.
  template <class Work>
  static void do_work(Stream& stream, Work& work) {
    if (!stream.device()) return work(stream);
    rt::Withheld withheld;
    work(stream);
    stream.wait();
    withheld.say();
  }

  Executor* executor_;
  caf::weak_actor_ptr owner_;
  // Read and written by jobs alone, which run one after another.
  std::shared_ptr<bool> broken_ = std::make_shared<bool>(false);
};

}  // namespace troupe::actors
