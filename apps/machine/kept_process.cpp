#include "apps/machine/kept_process.h"

#include <cstring>
#include <utility>

#include "core/threads/event_fd.h"

namespace troupe::apps {

std::string to_text(const ProcessEnd& end) {
  if (end.signal == 0) return "ended with code " + std::to_string(end.code);
  return "was ended by signal " + std::to_string(end.signal) + " (" + strsignal(end.signal) + ")";
}

KeptProcess::KeptProcess(Env& env, Processes& processes, KeepOptions options)
    : env_(env),
      processes_(processes),
      options_(std::move(options)),
      loop_(env.make_loop({"keeping alive"})),
      backoff_(options_.backoff, env.random()) {
  loop_->post([this] { start(); });
}

KeptProcess::~KeptProcess() { loop_->end(); }

void KeptProcess::start() {
  begun_ = env_.now();
  process_ = processes_.start({options_.arguments(), options_.environment()}, *loop_,
                              [this](const ProcessEnd& end) { ended(end); });
}

void KeptProcess::ended(const ProcessEnd& end) {
  process_.reset();
  stop_timer();
  const bool again = options_.ended(end);
  if (shall_end_) return tell_ended();
  if (!again) return;
  if (env_.now() - begun_ >= options_.while_lived) backoff_.reset();
  timer_ = loop_->after(backoff_.next(), [this] {
    timer_.reset();
    start();
  });
}

void KeptProcess::end(std::function<void()> then) {
  loop_->post([this, then = std::move(then)]() mutable {
    when_ended_.push_back(std::move(then));
    if (!std::exchange(shall_end_, true)) ask_to_end();
    if (!process_) tell_ended();
  });
}

void KeptProcess::ask_to_end() {
  stop_timer();
  if (!process_) return;
  process_->signal(ChildProcess::Signal::end);
  timer_ = loop_->after(options_.end_patience, [this] {
    timer_.reset();
    process_->signal(ChildProcess::Signal::kill);
  });
}

void KeptProcess::stop_timer() {
  if (timer_) loop_->cancel(*timer_);
  timer_.reset();
}

void KeptProcess::tell_ended() {
  for (const auto& then : std::exchange(when_ended_, {})) then();
}

void end_and_wait(const std::vector<std::unique_ptr<KeptProcess>>& processes) {
  EventFd all_ended;
  {
    const std::shared_ptr<void> ended(nullptr, [&all_ended](void*) { all_ended.ring(); });
    for (const auto& process : processes) process->end([held = ended]() mutable { held.reset(); });
  }
  all_ended.wait();
}

}  // namespace troupe::apps
