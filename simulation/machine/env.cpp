#include "simulation/machine/env.h"

#include <cassert>
#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace troupe::simulation {
namespace {

/// Works of one name, one at a time. A work runs after a part of its time, its outcome is known
/// after the rest.
class Works {
 public:
  using Task = Loop::Task;

  Works(Scheduler& scheduler, QueueId back, const std::string& name,
        const MachineConditions& machine)
      : scheduler_(scheduler),
        queue_(scheduler.add_queue(scheduler.process_of(back), name)),
        back_(back),
        machine_(machine) {}
  Works(const Works&) = delete;
  Works& operator=(const Works&) = delete;
  ~Works() { scheduler_.remove(queue_); }

  QueueId queue() const { return queue_; }
  std::size_t waiting() const { return waiting_.size(); }

  void add(Task work, Task then) {
    waiting_.push_back({std::move(work), std::move(then)});
    if (!is_busy_) begin();
  }

 private:
  struct Work {
    Task work;
    Task then;
  };

  void begin() {
    is_busy_ = true;
    const auto time = scheduler_.draw_time(machine_.least_work, machine_.most_work);
    const auto before = scheduler_.draw_time(Scheduler::Duration::zero(), time);
    scheduler_.after(queue_, before, [this, rest = time - before] { run(rest); });
  }

  void run(Scheduler::Duration rest) {
    auto [work, then] = std::move(waiting_.front());
    waiting_.pop_front();
    work();
    work = nullptr;  // Frees what the work holds before `then` runs.
    scheduler_.after(queue_, rest, [this, then = std::move(then)]() mutable {
      scheduler_.post(back_, std::move(then));
      is_busy_ = false;
      if (!waiting_.empty()) begin();
    });
  }

  Scheduler& scheduler_;
  QueueId queue_;
  QueueId back_;
  const MachineConditions& machine_;
  std::deque<Work> waiting_;
  bool is_busy_ = false;
};

class SimulatedLoop final : public Loop {
 public:
  SimulatedLoop(Scheduler& scheduler, ProcessId process, LoopOptions options,
                const MachineConditions& machine)
      : scheduler_(scheduler),
        options_(std::move(options)),
        queue_(scheduler.add_queue(process, options_.name)),
        machine_(machine) {}
  ~SimulatedLoop() override { stop(); }

  Posted post(Task task) override {
    if (has_ended()) return Posted::ended;
    if (is_full()) return Posted::full;
    scheduler_.post(queue_, std::move(task));
    return Posted::yes;
  }

  std::optional<Timer> after(std::chrono::nanoseconds time, Task task) override {
    if (has_ended() || is_full()) return {};
    return scheduler_.after(queue_, time, std::move(task));
  }

  void cancel(Timer timer) override { scheduler_.cancel(timer); }

  Posted aside(const std::string& name, Task work, Task then) override {
    if (has_ended()) return Posted::ended;
    auto& works = works_[name];
    if (!works) works = std::make_unique<Works>(scheduler_, queue_, name, machine_);
    if (works->waiting() >= options_.most_waiting) return Posted::full;
    works->add(std::move(work), std::move(then));
    return Posted::yes;
  }

  void end() override { stop(); }

 private:
  bool has_ended() const {
    return is_ended_ || !scheduler_.is_alive(scheduler_.process_of(queue_));
  }
  bool is_full() const { return scheduler_.waiting(queue_) >= options_.most_waiting; }

  void stop() {
    // A real loop would wait for itself.
    const auto running = scheduler_.running_queue();
    assert(running != queue_);
    for (const auto& [name, works] : works_) assert(running != works->queue());
    is_ended_ = true;
    scheduler_.remove(queue_);
    // Destructors of works may call the loop.
    const auto dropped = std::exchange(works_, {});
  }

  Scheduler& scheduler_;
  const LoopOptions options_;
  QueueId queue_;
  const MachineConditions& machine_;
  bool is_ended_ = false;
  std::map<std::string, std::unique_ptr<Works>> works_;  // Keyed by name.
};

}  // namespace

SimulatedEnv::SimulatedEnv(Scheduler& scheduler, ProcessId process,
                           const MachineConditions& machine)
    : scheduler_(scheduler), process_(process), machine_(machine) {}

Env::WallTime SimulatedEnv::wall_time() {
  return wall_start + (scheduler_.now() - Scheduler::start) + machine_.wall_offset;
}

std::unique_ptr<Loop> SimulatedEnv::make_loop(LoopOptions options) {
  return std::make_unique<SimulatedLoop>(scheduler_, process_, std::move(options), machine_);
}

void SimulatedEnv::end_process(int code, const std::string& last_words) {
  scheduler_.end(process_, {Ending::How::ended, code, last_words});
}

void SimulatedEnv::crash(const std::string& last_words) {
  scheduler_.end(process_, {Ending::How::crashed, 0, last_words});
}

void SimulatedEnv::point(const char* name) {
  scheduler_.pass_point(name);
  if (const auto hook = hook_) hook(name);  // A copy, because the function may replace itself.
  if (!scheduler_.is_alive(process_)) throw ProcessEnded{process_};
}

}  // namespace troupe::simulation
