#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "actors/play/cast.h"
#include "actors/rt.h"

namespace troupe::actors {

/// The players of an attempt, for the supervisor that leads them: who is there, and how they are.
class Players {
 public:
  explicit Players(rt::Base* self) : self_(self) {}

  /// An attempt begins with them; none is left of the one before.
  void begin(Company company);
  const Cast& cast() const { return *company_.cast; }
  /// They play this next.
  void play(const Play& round);
  template <class Order>
  void tell_optimizers(const Order& order) {
    for (const auto& optimizer : cast().optimizers) self_->tell(optimizer, order);
  }

  /// Somebody has ended: who it was, where it was one of them.
  const Player* ended(const caf::actor_addr& who);
  /// All are to go.
  void dismiss();
  bool have_gone() const { return left_ == 0; }
  void forget() { company_ = {}; }
  /// One who is there still; null where there is none.
  const Player* some_left() const;
  std::optional<PlayerId> find(const std::string& title) const;

  /// One who waits tells for whom. How it is now, where it is one of them.
  const Standing* heard(const Pulse& pulse);
  /// How all are. Whoever tells nothing until the next time is silent for a patience more.
  std::vector<Standing> look();

 private:
  rt::Base* self_;
  Company company_;
  std::size_t left_ = 0;
};

}  // namespace troupe::actors
