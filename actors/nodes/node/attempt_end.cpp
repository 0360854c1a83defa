#include <utility>

#include "actors/nodes/node/attempt_work.h"

namespace troupe::actors {

void NodeAttempt::Work::end(std::function<void()> then) {
  if (phase_ == Phase::ended) return then();
  when_ended_.push_back(std::move(then));
  if (!enter(Event::end_asked)) return;
  stop_timers();
  // Devices must not wait for each other now.
  if (mesh_) mesh_->abort("the attempt has ended");
  {
    const std::lock_guard lock(gate_);
    is_closed_ = true;
    if (const auto warden = std::exchange(warden_, nullptr)) caf_shim::stop(warden);
    for (const auto* group : {&here_, &proxies_})
      for (const auto& [id, actor] : *group) caf_shim::stop(actor);
    here_.clear();
    proxies_.clear();
  }
  if (!is_working_) await_actors();
}

void NodeAttempt::Work::await_actors() {
  group_->when_empty(
      [self = shared_from_this()] { self->post([work = self.get()] { work->settle(); }); });
}

/// Waits until no state is copied any more.
void NodeAttempt::Work::settle() {
  if (!store_) return let_go();
  store_->settle(
      [self = shared_from_this()] { self->post([work = self.get()] { work->let_go(); }); });
}

/// Waits until devices have let go of transfers.
void NodeAttempt::Work::let_go() {
  if (!mesh_) return close();
  const auto ended = std::make_shared<Status>(Done{});
  context_.loop.aside(
      "edges", [this, ended] { *ended = mesh_->end(); },
      [this, ended] {
        if (!*ended) order_.stuck(ended->error().text);
        close();
      });
}

/// Closes the channels, and waits for the executors.
void NodeAttempt::Work::close() {
  if (spec_)
    for (const auto* executor : spec_->executors)
      if (const auto fault = executor ? executor->fault() : std::nullopt)
        order_.stuck("a device has failed: " + *fault);
  mesh_.reset();  // Nothing arrives any more.
  waiting_.clear();
  states_.clear();
  spec_.reset();
  if (!home_) return close_home();
  // A device calls this on its own thread, which must never own the devices: it cannot wait for
  // itself. An attempt that is dropped meanwhile waits for its devices when it is destroyed.
  home_->finish([link = link_] {
    const std::lock_guard lock(link->mutex);
    if (link->work) link->work->post([work = link->work] { work->close_home(); });
  });
}

void NodeAttempt::Work::close_home() {
  context_.loop.aside(
      devices_aside, [this] { home_.reset(); },
      [this] {
        store_.reset();
        enter(Event::gone);
        for (const auto& then : std::exchange(when_ended_, {})) then();
      });
}

/// From now on it calls nobody, and lives as long as its actors and the copies of its states.
void NodeAttempt::Work::drop(std::shared_ptr<Work> self) {
  {
    const std::lock_guard lock(link_->mutex);
    link_->work = nullptr;
  }
  {
    const std::scoped_lock lock(gate_, telling_);
    is_dropped_ = is_closed_ = true;
    here_.clear();
    proxies_.clear();
    warden_ = nullptr;
  }
  if (phase_ == Phase::ended) return;
  if (mesh_) mesh_->abort("the attempt was dropped");
  group_->kill_all();
  // It may hold memory of the store, which must outlive it, and a store cannot be destroyed on its
  // own thread. So the last job of that thread owns the attempt, and somebody else the store.
  group_->when_empty([self = std::move(self), store = std::exchange(store_, nullptr)]() mutable {
    if (store) store->settle([self = std::move(self)] {});
  });
}

}  // namespace troupe::actors
