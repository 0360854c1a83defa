#include "simulation/machine/scheduler.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdio>

#include "core/random.h"

namespace troupe::simulation {
namespace {

/// Mixes a number into a hash (the last steps of SplitMix64, Steele et al. 2014).
std::uint64_t mixed(std::uint64_t hash, std::uint64_t number) {
  hash = (hash ^ number) + 0x9e3779b97f4a7c15u;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
  return hash ^ (hash >> 31);
}

std::uint64_t mixed(std::uint64_t hash, std::string_view text) {
  hash = mixed(hash, text.size());
  for (std::size_t at = 0; at < text.size(); at += 8) {
    std::uint64_t word = 0;
    for (const char byte : text.substr(at, 8)) word = word << 8 | static_cast<unsigned char>(byte);
    hash = mixed(hash, word);
  }
  return hash;
}

std::uint64_t since_start(Scheduler::Time time) {
  return static_cast<std::uint64_t>((time - Scheduler::start).count());
}

std::string to_text(const Ending& ending) {
  const auto words = ending.last_words.empty() ? "" : ": " + ending.last_words;
  switch (ending.how) {
    case Ending::How::ended:
      return "ends with code " + std::to_string(ending.code) + words;
    case Ending::How::crashed:
      return "crashes" + words;
    case Ending::How::killed:
      return "is killed" + words;
  }
  return {};
}

}  // namespace

/// Notes whose code runs, as long as this object exists.
class Scheduler::Running {
 public:
  Running(Scheduler& scheduler, ProcessId process) : scheduler_(scheduler) {
    scheduler_.running_ = process;
    scheduler_.is_running_ = true;
  }
  ~Running() {
    scheduler_.running_ = world;
    scheduler_.is_running_ = false;
    scheduler_.running_queue_.reset();
    scheduler_.running_thing_.reset();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  Scheduler& scheduler_;
};

Scheduler::Scheduler(const Options& options) : options_(options) {
  static_cast<void>(add_process("world"));
  // Few changes let one thing wait long. Many changes make a run similar to an even one.
  if (options_.manner == Manner::by_priorities) between_changes_ = std::uint64_t{32} << draw(6);
}

Scheduler::~Scheduler() {
  // The destructors of tasks may still call the scheduler, which then rejects new tasks.
  for (auto& process : processes_) process.is_alive = false;
  for (auto& process : processes_) dropped_.push_back([on_end = std::move(process.on_end)] {});
  sources_.clear();
  for (std::size_t queue = 0; queue < queues_.size(); ++queue)
    drop_tasks(QueueId{static_cast<std::uint32_t>(queue)}, dropped_);
  dropped_.clear();
}

ProcessId Scheduler::add_process(std::string name, std::function<void(const Ending&)> on_end) {
  processes_.push_back({std::move(name), std::move(on_end), true, false});
  return ProcessId{static_cast<std::uint32_t>(processes_.size() - 1)};
}

QueueId Scheduler::add_queue(ProcessId process, std::string name) {
  Queue& queue = queues_.emplace_back();
  queue.process = process;
  queue.name = std::move(name);
  return QueueId{static_cast<std::uint32_t>(queues_.size() - 1)};
}

bool Scheduler::takes(const Queue& queue) const {
  return !queue.is_removed && is_alive(queue.process);
}

void Scheduler::remove(QueueId queue) {
  queues_[at(queue)].is_removed = true;
  std::vector<Task> dropped;
  drop_tasks(queue, dropped);
}

void Scheduler::count_in(Queue& queue) {
  queue.most_waiting = std::max(queue.most_waiting, ++queue.waiting);
}

bool Scheduler::post(QueueId id, Task task) {
  Queue& queue = queues_[at(id)];
  if (!takes(queue)) return false;
  queue.ready.push_back({++numbers_, Timer{0}, std::move(task)});
  count_in(queue);
  relist(id);
  return true;
}

Scheduler::Timer Scheduler::after(QueueId id, Duration time, Task task) {
  Queue& queue = queues_[at(id)];
  if (!takes(queue)) return Timer{0};
  const Timer timer{++timers_};
  count_in(queue);
  if (time <= Duration::zero()) {
    tasks_by_timer_.emplace(timer, std::pair(now_, id));
    queue.ready.push_back({++numbers_, timer, std::move(task)});
    relist(id);
    return timer;
  }
  const Time due = time > Time::max() - now_ ? Time::max() : now_ + time;
  tasks_by_timer_.emplace(timer, std::pair(due, id));
  timers_by_time_.emplace(std::pair(due, timer), Waiting{id, std::move(task)});
  return timer;
}

bool Scheduler::cancel(Timer timer) {
  const auto found = tasks_by_timer_.extract(timer);
  if (!found) return false;
  const auto [due, id] = found.mapped();
  Queue& queue = queues_[at(id)];
  --queue.waiting;
  if (const auto waiting = timers_by_time_.extract(std::pair(due, timer))) return true;
  const auto ready = std::find_if(queue.ready.begin(), queue.ready.end(),
                                  [&](const Ready& task) { return task.timer == timer; });
  assert(ready != queue.ready.end());
  const Task dropped = std::move(ready->task);  // Destroyed last: it may call the scheduler.
  queue.ready.erase(ready);
  relist(id);
  return true;
}

void Scheduler::stall(Duration time) {
  if (time <= Duration::zero()) return;
  if (running_thing_) return running_thing_->first->stall(running_thing_->second, time);
  if (!running_queue_) return;
  Queue& queue = queues_[at(*running_queue_)];
  stalls_.erase({queue.stalled_until, *running_queue_});
  queue.stalled_until = std::max(queue.stalled_until, now_) + time;
  stalls_.emplace(queue.stalled_until, *running_queue_);
  relist(*running_queue_);
}

/// Moves the tasks of a queue to the caller, who destroys them: their destructors may call the
/// scheduler.
void Scheduler::drop_tasks(QueueId id, std::vector<Task>& dropped) {
  Queue& queue = queues_[at(id)];
  stalls_.erase({queue.stalled_until, id});
  if (queue.waiting == 0) return;
  for (auto& ready : queue.ready) dropped.push_back(std::move(ready.task));
  queue.ready.clear();
  queue.waiting = 0;
  std::erase_if(tasks_by_timer_, [&](const auto& task) {
    const auto& [timer, place] = task;
    if (place.second != id) return false;
    if (auto waiting = timers_by_time_.extract(std::pair(place.first, timer)))
      dropped.push_back(std::move(waiting.mapped().task));
    return true;
  });
  relist(id);
}

SourceId Scheduler::add_source(ProcessId process, std::string name, Source& source) {
  const SourceId id{++sources_made_};
  sources_.push_back({id, process, std::move(name), &source, is_frozen(process), {}});
  source.advance(now_);
  return id;
}

void Scheduler::remove(SourceId source) {
  std::erase_if(sources_, [&](const Listed& listed) { return listed.id == source; });
}

/// Updates whether a queue is among those that may run next.
void Scheduler::relist(QueueId id) {
  Queue& queue = queues_[at(id)];
  const bool is_ready = takes(queue) && !queue.is_frozen && !is_frozen(queue.process) &&
                        queue.stalled_until <= now_ && !queue.ready.empty();
  if (is_ready == queue.is_listed) return;
  queue.is_listed = is_ready;
  if (is_ready)
    ready_queues_.push_back(id);
  else
    std::erase(ready_queues_, id);
}

void Scheduler::relist_all(ProcessId process) {
  for (std::size_t queue = 0; queue < queues_.size(); ++queue)
    if (queues_[queue].process == process) relist(QueueId{static_cast<std::uint32_t>(queue)});
}

void Scheduler::set_frozen(ProcessId process, bool is_frozen) {
  processes_[at(process)].is_frozen = is_frozen;
  for (auto& source : sources_)
    if (source.process == process) source.is_frozen = is_frozen;
  relist_all(process);
}

void Scheduler::freeze(ProcessId process) {
  assert(process != world);
  set_frozen(process, true);
  if (freezes_changed_) freezes_changed_();
}

void Scheduler::thaw(ProcessId process) {
  set_frozen(process, false);
  if (freezes_changed_) freezes_changed_();
  if (!is_alive(process)) return;
  for (const auto& source : sources_)
    if (source.process == process) source.source->advance(now_);
}

void Scheduler::freeze(QueueId queue) {
  queues_[at(queue)].is_frozen = true;
  relist(queue);
}

void Scheduler::thaw(QueueId queue) {
  queues_[at(queue)].is_frozen = false;
  relist(queue);
}

void Scheduler::kill(ProcessId process, Ending::How how) {
  finish(process, {how, 0, {}});
  if (!is_running_) tell_endings();
}

void Scheduler::end(ProcessId process, Ending ending) {
  finish(process, std::move(ending));
  throw ProcessEnded{process};
}

void Scheduler::finish(ProcessId process, Ending ending) {
  assert(process != world);
  if (!is_alive(process)) return;
  processes_[at(process)].is_alive = false;
  // The tasks are destroyed later: they may own an object whose function is on the stack.
  for (std::size_t queue = 0; queue < queues_.size(); ++queue)
    if (queues_[queue].process == process)
      drop_tasks(QueueId{static_cast<std::uint32_t>(queue)}, dropped_);
  std::erase_if(sources_, [&](const Listed& source) { return source.process == process; });
  trace(at(process));
  trace(name(process), to_text(ending));
  endings_.emplace_back(process, std::move(ending));
}

/// Destroys what ended processes left, and tells their owners.
void Scheduler::tell_endings() {
  while (!endings_.empty()) {
    const auto [process, ending] = std::move(endings_.front());
    endings_.erase(endings_.begin());
    // A process that an owner kills is told of after this one.
    const Running running(*this, world);
    std::exchange(dropped_, {}).clear();
    if (const auto on_end = std::exchange(processes_[at(process)].on_end, nullptr)) on_end(ending);
  }
}

std::uint64_t Scheduler::draw_bits() {
  const auto count = draws_++;
  const auto words = philox(
      {static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(count >> 32), 0, 0},
      {static_cast<std::uint32_t>(options_.seed), static_cast<std::uint32_t>(options_.seed >> 32)});
  return std::uint64_t{words[0]} << 32 | words[1];
}

std::uint64_t Scheduler::draw(std::uint64_t below) {
  assert(below > 0);
  return draw_bits() % below;
}

Scheduler::Duration Scheduler::draw_time(Duration least, Duration most) {
  assert(least <= most);
  return least + Duration(draw(static_cast<std::uint64_t>((most - least).count()) + 1));
}

void Scheduler::trace(std::string_view who, std::string_view what) {
  hash_ = mixed(hash_, since_start(now_));
  hash_ = mixed(mixed(hash_, who), what);
  if (has_history()) write(who, what);
}

void Scheduler::trace(std::uint64_t number) { hash_ = mixed(hash_, number); }

void Scheduler::write(std::string_view who, std::string_view what) {
  std::array<char, 32> time{};
  std::snprintf(time.data(), time.size(), "%8.3f s  ",
                std::chrono::duration<double>(now_ - start).count());
  std::string line(time.data());
  line += who;
  line.append(who.size() < 14 ? 14 - who.size() : 1, ' ');
  line += what;
  history_.push_back(std::move(line));
}

/// Returns how many things are ready. Gives numbers to things of sources that became ready since
/// the last call.
std::size_t Scheduler::count_ready() {
  std::size_t all = ready_queues_.size();
  for (auto& source : sources_) {
    if (source.is_frozen) continue;
    if (const auto next = source.source->next_timeout(); next && *next <= now_)
      source.source->advance(now_);
    const auto count = source.source->ready();
    while (source.numbers.size() > count) source.numbers.pop_back();
    while (source.numbers.size() < count) source.numbers.push_back(++numbers_);
    all += count;
  }
  return all;
}

Scheduler::Thing Scheduler::thing(std::size_t index) const {
  if (index < ready_queues_.size()) return {false, index, 0};
  index -= ready_queues_.size();
  for (std::size_t source = 0;; ++source) {
    if (sources_[source].is_frozen) continue;
    if (index < sources_[source].numbers.size()) return {true, source, index};
    index -= sources_[source].numbers.size();
  }
}

std::uint64_t Scheduler::number(const Thing& thing) const {
  if (thing.is_of_source) return sources_[thing.at].numbers[thing.which];
  return queues_[at(ready_queues_[thing.at])].ready.front().number;
}

Scheduler::Identity Scheduler::identity(const Thing& thing) const {
  if (!thing.is_of_source) return {0, at(ready_queues_[thing.at])};
  const auto& source = sources_[thing.at];
  return {at(source.id), source.source->identity(thing.which)};
}

std::int64_t Scheduler::priority(const Identity& identity) {
  const auto [place, is_new] = priorities_.try_emplace(identity);
  if (is_new) place->second = static_cast<std::int64_t>(draw_bits() >> 1);
  return place->second;
}

Scheduler::Thing Scheduler::choose(std::size_t count) {
  switch (options_.manner) {
    case Manner::evenly:
      return thing(count == 1 ? 0 : draw(count));
    case Manner::by_priorities:
      return highest();
    case Manner::in_order:
      return oldest();
  }
  assert(false);
  return {};
}

Scheduler::Thing Scheduler::highest() {
  Thing best;
  std::optional<std::int64_t> highest;
  const auto compare = [&](const Thing& thing) {
    const auto of_thing = priority(identity(thing));
    if (highest && *highest >= of_thing) return;
    highest = of_thing;
    best = thing;
  };
  for (std::size_t at = 0; at < ready_queues_.size(); ++at) compare({false, at, 0});
  for (std::size_t at = 0; at < sources_.size(); ++at)
    for (std::size_t which = 0; !sources_[at].is_frozen && which < sources_[at].numbers.size();
         ++which)
      compare({true, at, which});
  if (draw(between_changes_) == 0) priorities_[identity(best)] = --lowest_;
  return best;
}

Scheduler::Thing Scheduler::oldest() const {
  Thing best;
  std::optional<std::uint64_t> lowest;
  const auto compare = [&](const Thing& thing) {
    const auto of_thing = number(thing);
    if (lowest && *lowest <= of_thing) return;
    lowest = of_thing;
    best = thing;
  };
  for (std::size_t at = 0; at < ready_queues_.size(); ++at) compare({false, at, 0});
  for (std::size_t at = 0; at < sources_.size(); ++at)
    if (!sources_[at].is_frozen && !sources_[at].numbers.empty()) compare({true, at, 0});
  return best;
}

void Scheduler::run(const Thing& thing) {
  const auto [kind, which] = identity(thing);
  hash_ = mixed(mixed(hash_, kind), which);
  hash_ = mixed(mixed(hash_, since_start(now_)), draws_);
  ++events_;
  if (thing.is_of_source)
    run_source(thing, which);
  else
    run_queue(ready_queues_[thing.at]);
}

void Scheduler::run_queue(QueueId id) {
  Queue& queue = queues_[at(id)];
  Task task = std::move(queue.ready.front().task);
  tasks_by_timer_.erase(queue.ready.front().timer);
  queue.ready.pop_front();
  --queue.waiting;
  relist(id);
  if (options_.history == History::everything) write(name(queue.process), queue.name);
  const Running running(*this, queue.process);
  running_queue_ = id;
  try {
    task();
    begin_next_stall(queue.name);
  } catch (const ProcessEnded&) {
    // finish() has recorded it.
  }
  task = nullptr;  // Its destructor is code of the process.
}

/// Begins a stall of what runs now, if stall_next() has asked for one.
void Scheduler::begin_next_stall(const std::string& name) {
  if (next_stalls_.empty()) return;
  for (const auto& asked : {std::pair(running_, name), std::pair(running_, std::string())})
    if (const auto next = next_stalls_.extract(asked); next && is_alive(running_))
      stall(next.mapped());
}

void Scheduler::run_source(const Thing& thing, std::uint64_t identity) {
  auto& listed = sources_[thing.at];
  Source& source = *listed.source;
  // The thing may be gone once it has run.
  const auto name_of_thing = next_stalls_.empty() ? std::string() : source.name(thing.which);
  listed.numbers.erase(listed.numbers.begin() + static_cast<std::ptrdiff_t>(thing.which));
  if (options_.history == History::everything)
    write(name(listed.process), listed.name + " " + std::to_string(identity));
  const Running running(*this, listed.process);
  running_thing_.emplace(&source, identity);
  try {
    source.run(thing.which);
    begin_next_stall(name_of_thing);
  } catch (const ProcessEnded&) {
    // finish() has recorded it.
  }
}

std::optional<Scheduler::Time> Scheduler::next_time() const {
  std::optional<Time> first;
  const auto take = [&](Time time) {
    if (time < Time::max() && (!first || time < *first)) first = time;
  };
  if (!timers_by_time_.empty()) take(timers_by_time_.begin()->first.first);
  if (!stalls_.empty()) take(stalls_.begin()->first);
  for (const auto& source : sources_)
    if (!source.is_frozen)
      if (const auto next = source.source->next_timeout()) take(*next);
  return first;
}

void Scheduler::move_time(Time time) {
  now_ = std::max(now_, time);
  while (!timers_by_time_.empty() && timers_by_time_.begin()->first.first <= now_) {
    auto due = timers_by_time_.extract(timers_by_time_.begin());
    const QueueId queue = due.mapped().queue;
    queues_[at(queue)].ready.push_back(
        {++numbers_, due.key().second, std::move(due.mapped().task)});
    relist(queue);
  }
  while (!stalls_.empty() && stalls_.begin()->first <= now_)
    relist(stalls_.extract(stalls_.begin()).value().second);
  for (const auto& source : sources_) {
    if (source.is_frozen) continue;
    source.source->advance(now_);
    assert(!source.source->next_timeout() || *source.source->next_timeout() > now_);
  }
}

Scheduler::Stopped Scheduler::run_until(const std::function<bool()>& condition, Time latest) {
  assert(!is_running_);
  for (tell_endings(); !condition(); tell_endings()) {
    if (events_ >= options_.most_events) return Stopped::too_many_events;
    if (const auto count = count_ready(); count > 0) {
      run(choose(count));
      continue;
    }
    const auto next = next_time();
    if (!next) return Stopped::idle;
    if (*next > latest) {
      move_time(latest);
      return Stopped::late;
    }
    move_time(*next);
  }
  return Stopped::done;
}

}  // namespace troupe::simulation
