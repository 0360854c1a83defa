#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "actors/caf_shim.h"
#include "actors/executor.h"
#include "actors/messages.h"

namespace troupe::actors {

/// The jobs of one actor. After one of them has failed, later ones do nothing, because their data
/// may be invalid.
class Jobs {
 public:
  Jobs(Executor& executor, caf::weak_actor_ptr owner)
      : executor_(&executor), owner_(std::move(owner)) {}

  /// Posts a job. `done` is called with its time on the same thread when the work is done and its
  /// messages are sent. The owner receives JobFailed after an exception or a device's failure, with
  /// `place` in front of the text.
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
      work_.reset();  // Free what it holds.
    }
    void done(const WorkTime& worked) override {
      if (worked_) done_(worked);
    }
    void lost(const std::string& why) override { fail(why); }

   private:
    /// Shows the job's place in a profiler's view of the device.
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
      caf_shim::post(owner_, JobFailed{place_ + ": " + why});
    }

    std::shared_ptr<bool> broken_;
    caf::weak_actor_ptr owner_;
    std::string place_;
    std::optional<Work> work_;  // Set until it was called.
    Done done_;
    bool worked_ = false;
  };

  Executor* executor_;
  caf::weak_actor_ptr owner_;
  // Used only by jobs, which run one after another.
  std::shared_ptr<bool> broken_ = std::make_shared<bool>(false);
};

}  // namespace troupe::actors
