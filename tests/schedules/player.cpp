#include "player.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "core/random.h"

namespace troupe::schedules {
namespace {

/// A token between actions: what it is, its stage and its micro-batch.
enum class What { activation, gradient, stash, whole_stash, half_done };
using Token = std::tuple<What, int, std::uint32_t>;

struct Channel {
  std::deque<std::uint32_t> outgoing;
  std::deque<std::uint32_t> landed;
};
using ChannelKey = std::tuple<What, int, int, int>;  // Source, target, stage.

class Player {
 public:
  Player(const Schedule& schedule, const std::optional<Buffers>& buffers)
      : schedule_(schedule), buffers_(buffers), at_(schedule.lanes.size(), 0) {
    for (const Lane& lane : schedule.lanes)
      for (const Action action : lane)
        if (action.kind == Kind::recompute)
          recomputed_.insert({What::whole_stash, action.stage, action.micro_batch});
  }

  bool play(std::uint64_t seed) {
    std::vector<int> order(schedule_.lanes.size());
    for (std::uint32_t round = 0;; ++round) {
      for (std::size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int>(d);
      for (std::size_t d = order.size(); d > 1; --d) {
        const RandomKey key{seed, round, static_cast<std::uint32_t>(d), 0};
        std::swap(order[d - 1], order[key.words(0)[0] % d]);
      }
      bool moved = false;
      for (const int device : order) moved |= step(device);
      moved |= transfer();
      if (moved) continue;
      for (std::size_t d = 0; d < order.size(); ++d)
        if (at_[d] < schedule_.lanes[d].size()) return false;
      return true;
    }
  }

 private:
  /// Runs the next group of a device if all inputs of the group exist.
  bool step(int device) {
    const Lane& lane = schedule_.lanes[device];
    if (at_[device] == lane.size()) return false;
    std::size_t end = at_[device] + 1;
    while (lane[end - 1].flags & Action::with_next) ++end;
    std::map<ChannelKey, std::size_t> taken, made;
    for (std::size_t k = at_[device]; k < end; ++k)
      if (!can_take(device, lane[k], taken) || !can_make(device, lane[k], made)) return false;
    for (std::size_t k = at_[device]; k < end; ++k) take(device, lane[k]);
    for (std::size_t k = at_[device]; k < end; ++k) make(device, lane[k]);
    at_[device] = end;
    return true;
  }

  /// Returns the queue of the tensor that an action receives from another device, if any.
  std::optional<ChannelKey> incoming(int device, Action action) const {
    const bool activation = action.kind == Kind::forward && action.stage > 0;
    const bool gradient = gives_input_gradient(action.kind) && action.stage + 1 < schedule_.stages;
    if (!activation && !gradient) return std::nullopt;
    const int source = schedule_.route(action.micro_batch)[action.stage + (activation ? -1 : 1)];
    return ChannelKey{activation ? What::activation : What::gradient, source, device, action.stage};
  }
  std::optional<ChannelKey> outgoing(int device, Action action) const {
    const bool activation = action.kind == Kind::forward && action.stage + 1 < schedule_.stages;
    const bool gradient = gives_input_gradient(action.kind) && action.stage > 0;
    if (!activation && !gradient) return std::nullopt;
    const int stage = action.stage + (activation ? 1 : -1);
    return ChannelKey{activation ? What::activation : What::gradient, device,
                      schedule_.route(action.micro_batch)[stage], stage};
  }
  bool bounded(const ChannelKey& key) const {
    return buffers_ && std::get<1>(key) != std::get<2>(key);
  }
  static Token token(const ChannelKey& key, std::uint32_t m) {
    return {std::get<0>(key), std::get<3>(key), m};
  }

  bool can_take(int device, Action action, std::map<ChannelKey, std::size_t>& taken) const {
    const std::uint32_t m = action.micro_batch;
    if (const auto key = incoming(device, action)) {
      if (!bounded(*key)) {
        if (!here_.contains(token(*key, m))) return false;
      } else {
        const auto channel = channels_.find(*key);
        const std::size_t place = taken[*key]++;
        if (channel == channels_.end() || channel->second.landed.size() <= place ||
            channel->second.landed[place] != m)
          return false;
      }
    }
    const bool recomputes = recomputed_.contains({What::whole_stash, action.stage, m});
    if (action.kind == Kind::recompute) return here_.contains({What::stash, action.stage, m});
    if (gives_input_gradient(action.kind))
      return here_.contains({recomputes ? What::whole_stash : What::stash, action.stage, m});
    if (action.kind == Kind::backward_weight)
      return here_.contains({What::half_done, action.stage, m});
    return true;
  }

  bool can_make(int device, Action action, std::map<ChannelKey, std::size_t>& made) const {
    const auto key = outgoing(device, action);
    if (!key || !bounded(*key)) return true;
    const auto channel = channels_.find(*key);
    const std::size_t waiting = channel == channels_.end() ? 0 : channel->second.outgoing.size();
    return waiting + made[*key]++ < static_cast<std::size_t>(buffers_->outgoing);
  }

  void take(int device, Action action) {
    const auto key = incoming(device, action);
    if (key && bounded(*key)) channels_[*key].landed.pop_front();
  }

  void make(int device, Action action) {
    const std::uint32_t m = action.micro_batch;
    if (action.kind == Kind::forward) here_.insert({What::stash, action.stage, m});
    if (action.kind == Kind::recompute) here_.insert({What::whole_stash, action.stage, m});
    if (action.kind == Kind::backward_input) here_.insert({What::half_done, action.stage, m});
    const auto key = outgoing(device, action);
    if (!key) return;
    if (bounded(*key))
      channels_[*key].outgoing.push_back(m);
    else
      here_.insert(token(*key, m));
  }

  bool transfer() {
    bool moved = false;
    for (auto& [key, channel] : channels_)
      while (!channel.outgoing.empty() &&
             channel.landed.size() < static_cast<std::size_t>(buffers_->landing)) {
        channel.landed.push_back(channel.outgoing.front());
        channel.outgoing.pop_front();
        moved = true;
      }
    return moved;
  }

  const Schedule& schedule_;
  const std::optional<Buffers>& buffers_;
  std::vector<std::size_t> at_;
  std::set<Token> recomputed_;
  std::set<Token> here_;
  std::map<ChannelKey, Channel> channels_;
};

}  // namespace

bool plays_to_the_end(const Schedule& schedule, const std::optional<Buffers>& buffers,
                      std::uint64_t seed) {
  return Player(schedule, buffers).play(seed);
}

}  // namespace troupe::schedules
