#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "actors/executor.h"
#include "actors/messages.h"
#include "actors/rt.h"

namespace troupe::actors {

/// The jobs of one actor. Once one of them has failed, the later ones do nothing: what they would
/// work on is not as it should be.
class Jobs {
 public:
  Jobs(Executor& executor, caf::weak_actor_ptr owner)
      : executor_(&executor), owner_(std::move(owner)) {}

  /// `done` is called with the time that it took, on the same thread, when all of the work is done
  /// and what it said is said. The owner hears of an exception, and of a device that has failed,
  /// with `place` in front of the text.
  template <class Work, class Done>
  void post(std::string place, Work work, Done done) {
    executor_->post(std::make_unique<Task<Work, Done>>(broken_, owner_, std::move(place),
                                                       std::move(work), std::move(done)));
  }
  template <class Work>
  void post(std::string place, Work work) {
    post(std::move(place), std::move(work), [](const WorkTime&) {});
  }

  const caf::weak_actor_ptr& owner() const { return owner_; }

 private:
  template <class Work, class Done>
  class Task final : public Job {
   public:
    Task(std::shared_ptr<bool> broken, caf::weak_actor_ptr owner, std::string place, Work work,
         Done done)
        : broken_(std::move(broken)),
          owner_(std::move(owner)),
          place_(std::move(place)),
          work_(std::move(work)),
          done_(std::move(done)) {}

    void work(Stream& stream) override {
      if (*broken_) return;
      const Range range(stream.device(), place_);
      try {
        (*work_)(stream);
        worked_ = true;
      } catch (const std::exception& exception) {
        fail(exception.what());
      } catch (...) {
        fail("an exception of no known type");
      }
      work_.reset();  // With all that it holds.
    }
    void done(const WorkTime& worked) override {
      if (worked_) done_(worked);
    }
    void lost(const std::string& why) override { fail(why); }

   private:
    /// Tools that look on show what a job has given to its device under the job's place.
    struct Range {
      Range(Device* device, const std::string& place) : device(device) {
        if (device) device->begin_range(place.c_str());
      }
      ~Range() {
        if (device) device->end_range();
      }
      Range(const Range&) = delete;
      Range& operator=(const Range&) = delete;
      Device* device;
    };

    void fail(const std::string& why) {
      *broken_ = true;
      rt::post(owner_, JobFailed{place_ + ": " + why});
    }

    std::shared_ptr<bool> broken_;
    caf::weak_actor_ptr owner_;
    std::string place_;
    std::optional<Work> work_;  // Until it was called.
    Done done_;
    bool worked_ = false;
  };

  Executor* executor_;
  caf::weak_actor_ptr owner_;
  // Read and written by jobs alone, which run one after another.
  std::shared_ptr<bool> broken_ = std::make_shared<bool>(false);
};

}  // namespace troupe::actors
