#include "core/threads/task_queue.h"

namespace troupe {

TaskQueue::Timer TaskQueue::add(Time due, Task task) {
  const Timer timer{++timers_};
  due_.emplace(timer, due);
  tasks_.emplace(std::pair(due, timer), std::move(task));
  return timer;
}

TaskQueue::Task TaskQueue::cancel(Timer timer) {
  const auto due = due_.extract(timer);
  if (!due) return {};
  return std::move(tasks_.extract(std::pair(due.mapped(), timer)).mapped());
}

std::optional<TaskQueue::Task> TaskQueue::take(Time now) {
  if (tasks_.empty() || tasks_.begin()->first.first > now) return {};
  return cancel(tasks_.begin()->first.second);
}

std::optional<TaskQueue::Time> TaskQueue::next_due() const {
  if (tasks_.empty()) return {};
  return tasks_.begin()->first.first;
}

}  // namespace troupe
