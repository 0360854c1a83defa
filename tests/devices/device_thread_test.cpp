#include "actors/device_thread.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "catch.h"
#include "core/memory/tensor.h"
#include "played_device.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

constexpr std::uint64_t many_looks = 50;

/// A log that jobs write from their thread.
class Log {
 public:
  void add(std::string text) {
    const std::lock_guard lock(mutex_);
    texts_.push_back(std::move(text));
    came_.notify_all();
  }
  std::vector<std::string> texts() const {
    const std::lock_guard lock(mutex_);
    return texts_;
  }
  /// Waits for `count` entries and returns them.
  std::vector<std::string> first(std::size_t count) {
    std::unique_lock lock(mutex_);
    came_.wait(lock, [&] { return texts_.size() >= count; });
    return texts_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable came_;
  std::vector<std::string> texts_;
};

class Told final : public Job {
 public:
  Told(Log& log, std::string name) : log_(log), name_(std::move(name)) {}
  void work(Stream&) override {
    once_done([&log = log_, name = name_] { log.add(name + " says"); });
  }
  void done(const WorkTime&) override { log_.add(name_ + " done"); }
  void lost(const std::string& why) override { log_.add(name_ + " lost: " + why); }

 private:
  Log& log_;
  std::string name_;
};

using Texts = std::vector<std::string>;

struct Scene {
  explicit Scene(DeviceLimits limits = {.ahead = 2, .patience = std::chrono::minutes(10)})
      : thread(std::make_unique<PlayedDevice>(queue), host_memory(), devices, limits) {}
  ~Scene() { queue->pass_all(); }
  void post(const std::string& name) { thread.post(std::make_unique<Told>(log, name)); }

  Log log;
  std::shared_ptr<PlayedQueue> queue = std::make_shared<PlayedQueue>();
  std::shared_ptr<DeviceProgress> devices = std::make_shared<DeviceProgress>();
  DeviceThread thread;
};

}  // namespace

TEST_CASE("a job's messages are sent in order, once the device has done the job", "[devices]") {
  Scene scene;
  scene.post("first");
  scene.post("second");
  scene.queue->wait_for_marks(2);
  scene.queue->wait_for_looks(many_looks);
  CHECK(scene.log.texts().empty());
  scene.queue->pass(1);
  CHECK(scene.log.first(2) == Texts{"first says", "first done"});
  scene.queue->wait_for_looks(many_looks);
  CHECK(scene.log.texts().size() == 2);
  scene.queue->pass(2);
  CHECK(scene.log.first(4) == Texts{"first says", "first done", "second says", "second done"});
}

TEST_CASE("a device has at most the allowed number of jobs ahead", "[devices]") {
  const std::size_t ahead = GENERATE(1, 2, 3);
  CAPTURE(ahead);
  Scene scene({.ahead = ahead, .patience = std::chrono::minutes(10)});
  for (int job = 0; job < 8; ++job) scene.post(std::to_string(job));
  for (Device::Mark done = 0; done < 5; ++done) {
    scene.queue->pass(done);
    scene.queue->wait_for_marks(done + ahead);
    scene.queue->wait_for_looks(many_looks);
    CHECK(scene.queue->marked() == done + ahead);
  }
}

TEST_CASE("a failed device drops all its jobs and accepts no new one", "[devices]") {
  Scene scene;
  for (const char* name : {"first", "second", "third"}) scene.post(name);
  scene.queue->wait_for_marks(2);
  CHECK_FALSE(scene.thread.fault());
  scene.queue->fail("a kernel went wrong");
  CHECK(scene.log.first(3) == Texts{"first lost: a kernel went wrong",
                                    "second lost: a kernel went wrong",
                                    "third lost: a kernel went wrong"});
  CHECK(scene.thread.fault() == "a kernel went wrong");
  CHECK(finish({&scene.thread}));
  CHECK(scene.queue->marked() == 2);
}

TEST_CASE("a device that never answers counts as failed", "[devices]") {
  Scene scene({.ahead = 2, .patience = std::chrono::milliseconds(2)});
  scene.post("first");
  scene.post("second");
  const Texts wanted = {"first lost: the device has done nothing of what it was given, for 1 s",
                        "second lost: the device has done nothing of what it was given, for 1 s"};
  CHECK(scene.log.first(2) == wanted);
  CHECK(scene.thread.fault());
}

TEST_CASE("memory that a failed device may still write is never reused", "[devices]") {
  Scene scene;
  auto& pool = scene.thread.memory();
  const std::byte* place = nullptr;
  scene.thread.post([&](Stream& stream) {
    const Tensor made = stream.make({64});
    place = made.block()->memory;
  });
  scene.queue->wait_for_marks(1);
  scene.queue->fail("a kernel went wrong");
  CHECK(finish({&scene.thread}));
  CHECK(pool.counters().bytes_in_use == 0);
  CHECK(pool.take(256).get()->memory != place);
}

TEST_CASE("the times of jobs are the device's and do not overlap", "[devices]") {
  struct Timed final : Job {
    Timed(std::vector<WorkTime>& times, Log& log) : times(times), log(log) {}
    void work(Stream&) override {}
    void done(const WorkTime& worked) override {
      times.push_back(worked);
      log.add("done");
    }
    std::vector<WorkTime>& times;
    Log& log;
  };
  Scene scene;
  std::vector<WorkTime> times;
  std::vector<std::chrono::steady_clock::time_point> passed;
  for (int job = 0; job < 6; ++job) scene.thread.post(std::make_unique<Timed>(times, scene.log));
  for (Device::Mark mark = 1; mark <= 6; ++mark) {
    scene.queue->wait_for_marks(mark);
    scene.queue->wait_for_looks(many_looks);
    passed.push_back(std::chrono::steady_clock::now());
    scene.queue->pass(mark);
    (void)scene.log.first(mark);
  }
  REQUIRE(times.size() == 6);
  for (std::size_t job = 0; job < 6; ++job) {
    CHECK(times[job].end >= passed[job]);
    if (job > 0) CHECK(times[job].start == times[job - 1].end);
  }
}

TEST_CASE("a job that depends on another device begins when that device is ready", "[devices]") {
  Scene scene;
  PlayedDevice other(std::make_shared<PlayedQueue>());
  struct Following final : Job {
    Following(Device& other, WorkTime& time, Log& log) : other(other), time(time), log(log) {}
    void work(Stream& stream) override {
      DeferredSends::of_this_thread()->begin_after(*stream.device(), {&other, 1});
    }
    void done(const WorkTime& worked) override {
      time = worked;
      log.add("done");
    }
    Device& other;
    WorkTime& time;
    Log& log;
  };
  WorkTime time;
  scene.thread.post(std::make_unique<Following>(other, time, scene.log));
  scene.queue->wait_for_marks(2);  // The marks of the job's beginning and end.
  const auto given = std::chrono::steady_clock::now();
  scene.queue->wait_for_looks(many_looks);
  scene.queue->pass(1);
  scene.queue->wait_for_looks(many_looks);
  CHECK(scene.log.texts().empty());
  const auto begun = std::chrono::steady_clock::now();
  scene.queue->pass(2);
  (void)scene.log.first(1);
  CHECK(time.start > given);
  CHECK(time.start < begun);
  CHECK(time.end > begun);
}

TEST_CASE("a hand-over happens at once and carries the mark that follows it", "[devices]") {
  Scene scene;
  scene.thread.post([&](Stream&) {
    auto& deferred_sends = *DeferredSends::of_this_thread();
    deferred_sends.add(DeferredSends::Saying([&] { scene.log.add("said"); }));
    deferred_sends.add(DeferredSends::Handing([&](const DeviceMark& after) {
      scene.log.add("handed over, after " + std::to_string(after.mark));
    }));
  });
  CHECK(scene.log.first(1) == Texts{"handed over, after 1"});
  scene.queue->wait_for_looks(many_looks);
  CHECK(scene.log.texts().size() == 1);
  scene.queue->pass(1);
  CHECK(scene.log.first(2) == Texts{"handed over, after 1", "said"});
}

TEST_CASE("waiting for a device's thread waits for the device", "[devices]") {
  Scene scene;
  scene.thread.post([](Stream& stream) { (void)stream.make({64}); });
  scene.queue->wait_for_marks(1);
  CHECK_FALSE(finish({&scene.thread}, std::chrono::steady_clock::now()));
  scene.queue->pass_all();
  CHECK(finish({&scene.thread}));
  CHECK(scene.thread.memory().counters().bytes_in_use == 0);
}
