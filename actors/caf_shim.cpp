#include "actors/caf_shim.h"

namespace troupe::actors::caf_shim {
namespace {

constexpr auto loss = caf::sec::cannot_connect_to_node;

caf::error failure(const std::string& text) {
  return caf::make_error(caf::sec::runtime_error, text);
}

}  // namespace

void ActorGroup::enter(caf::weak_actor_ptr actor) {
  bool kills = false;
  {
    const std::lock_guard lock(mutex_);
    actors_.emplace(actor->id(), actor);
    kills = kills_;
  }
  if (kills) kill(caf::actor_cast<caf::actor>(actor));
}

void ActorGroup::leave(caf::actor_id actor) {
  Task then;
  {
    const std::lock_guard lock(mutex_);
    actors_.erase(actor);
    if (actors_.empty()) then = std::exchange(then_, nullptr);
  }
  if (then) then();
}

void ActorGroup::when_empty(Task then) {
  {
    const std::lock_guard lock(mutex_);
    if (!actors_.empty()) {
      then_ = std::move(then);
      return;
    }
  }
  then();
}

void ActorGroup::kill_all() {
  std::vector<caf::actor> actors;  // Freed without the lock: an actor leaves its group at its end.
  {
    const std::lock_guard lock(mutex_);
    kills_ = true;
    for (const auto& [id, weak] : actors_)
      if (auto actor = caf::actor_cast<caf::actor>(weak)) actors.push_back(std::move(actor));
  }
  for (const auto& actor : actors) kill(actor);
}

void System::end_all(ActorGroup::Task then) {
  all_->kill_all();
  all_->when_empty(std::move(then));
}

Base::Base(caf::actor_config& config, Spawner spawner)
    : caf::event_based_actor(config), spawner_(std::move(spawner)) {
  for (const auto* group : {&spawner_.group, &spawner_.all})
    if (*group) (*group)->enter(caf::weak_actor_ptr(ctrl()));
  set_exception_handler([](std::exception_ptr& thrown) -> caf::error {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& exception) {
      return failure(exception.what());
    } catch (...) {
      return failure("an exception of no known type");
    }
  });
  set_default_handler(
      [](caf::scheduled_actor* self, caf::message_view& message) -> caf::result<caf::message> {
        self->quit(failure("a message that " + std::string(self->name()) +
                           " does not know: " + message.content().stringify()));
        return caf::sec::unexpected_message;
      });
  set_down_handler([this](caf::down_msg& down) {
    if (down_) down_(down.source, down.reason);
  });
}

Base::resume_result Base::resume(caf::execution_unit* unit, std::size_t most) {
  const auto result = caf::event_based_actor::resume(unit, most);
  if (result == caf::resumable::done) leave_groups();
  return result;
}

void Base::leave_groups() {
  for (auto* group : {&spawner_.group, &spawner_.all})
    if (const auto left = std::exchange(*group, nullptr)) left->leave(id());
}

void Base::end_with(const caf::actor& other) {
  on_down([this](const caf::actor_addr&, const caf::error&) { quit(); });
  watch(other);
}

void Base::fail(const std::string& reason) { quit(failure(reason)); }

void Base::end_lost(const std::string& reason) { quit(caf::make_error(loss, reason)); }

bool is_lost(const caf::error& reason) { return reason == loss; }

caf::weak_actor_ptr weak(const caf::actor& actor) {
  return caf::actor_cast<caf::weak_actor_ptr>(actor);
}

bool is_told(const caf::error& reason) { return reason && reason.category() != caf::atom("exit"); }

std::string to_text(const caf::error& reason) {
  if (!reason) return "it ended";
  if (!is_told(reason))
    return reason == caf::exit_reason::kill ? "it was killed" : "it was stopped";
  std::string text;
  if (reason.context().match_elements<std::string>())
    text = reason.context().get_as<std::string>(0);
  return text.empty() ? to_string(reason) : text;
}

Config::Config(std::size_t threads) {
  set("scheduler.policy", caf::atom("sharing"));
  set("scheduler.max-threads", threads);
  // An actor that keeps messaging itself must not starve the other actors of its thread.
  set("scheduler.max-throughput", std::size_t{50});
}

}  // namespace troupe::actors::caf_shim
