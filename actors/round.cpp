#include "actors/round.h"

#include <algorithm>
#include <cassert>
#include <string>

namespace troupe::actors {
namespace {

using schedules::Kind;

/// How the micro-batches of one replica's step are distributed over routes.
struct Dealt {
  int first = 0;   // The first micro-batch of this route.
  int before = 0;  // The number of them before the given one.
  int count = 0;
};

std::uint16_t route_of(const schedules::Schedule& schedule, int m) {
  return schedule.route_of[static_cast<std::size_t>(m) % schedule.route_of.size()];
}

/// Distributes the micro-batches of m's step. Each route gets consecutive ones, so that a holder
/// has whole reduction groups.
Dealt deal(const Round& round, std::uint16_t route, int m) {
  const int begin = m / round.step_every * round.step_every;
  Dealt dealt;
  for (int other = begin; other < begin + round.step_every; ++other) {
    const auto its = route_of(round.schedule, other);
    if (its < route) ++dealt.first;
    if (its != route) continue;
    ++dealt.count;
    if (other < m) ++dealt.before;
  }
  return dealt;
}

models::Share share_of(const Round& round, int replica, std::uint16_t route) {
  const Dealt dealt = deal(round, route, 0);
  const int begin = replica * round.step_every + dealt.first;
  auto share = models::Share::whole(round.micro_batches_in_step(), round.groups);
  while (share.first_group < round.groups && share.begin_of(share.first_group) < begin)
    ++share.first_group;
  share.last_group = share.first_group;
  while (share.last_group < round.groups && share.begin_of(share.last_group) < begin + dealt.count)
    ++share.last_group;
  return share;
}

}  // namespace

MicroBatchPlace place_of(const Round& round, int replica, int m) {
  const Dealt dealt = deal(round, route_of(round.schedule, m), m);
  return {m / round.step_every, replica * round.step_every + dealt.first + dealt.before};
}

std::string step_title(const Round& round, std::int64_t first_step, int m) {
  switch (round.purpose) {
    case Round::Purpose::training:
      return "step " + std::to_string(first_step + m / round.step_every + 1);
    case Round::Purpose::evaluation:
      return "evaluation after step " + std::to_string(first_step);
  }
  return {};
}

std::vector<Holder> holders_of(const Round& round, int stage) {
  std::vector<Holder> holders;
  const auto routes = static_cast<std::uint16_t>(round.schedule.routes.size());
  for (int replica = 0; replica < round.replicas; ++replica)
    for (std::uint16_t route = 0; route < routes; ++route) {
      if (deal(round, route, 0).count == 0) continue;
      const int device = round.schedule.routes[route][static_cast<std::size_t>(stage)];
      holders.push_back({replica, device, share_of(round, replica, route)});
    }
  return holders;
}

Status check_shares(const Round& round) {
  const auto routes = static_cast<std::uint16_t>(round.schedule.routes.size());
  for (int replica = 0; replica < round.replicas; ++replica)
    for (std::uint16_t route = 0; route < routes; ++route) {
      const Dealt dealt = deal(round, route, 0);
      const int begin = replica * round.step_every + dealt.first;
      const auto share = share_of(round, replica, route);
      if (dealt.count == 0 || (share.first_micro_batch() == begin && share.count() == dealt.count))
        continue;
      const int whole = round.micro_batches_in_step();
      return Error{"parallel.groups = " + std::to_string(round.groups) + " groups of " +
                   std::to_string(whole) + " micro-batches cannot be dealt out whole to " +
                   std::to_string(round.replicas) + " replicas" +
                   (routes > 1 ? " in " + std::to_string(routes) + " directions" : "") +
                   "; set parallel.groups = " + std::to_string(whole)};
    }
  for (int stage = 0; routes > 1 && stage < round.schedule.stages; ++stage)
    for (std::uint16_t route = 1; route < routes; ++route)
      if (round.schedule.routes[route][static_cast<std::size_t>(stage)] ==
          round.schedule.routes[0][static_cast<std::size_t>(stage)])
        return Error{"stage " + std::to_string(stage) +
                     " is on the same device in two routes; a stage that lies on several routes "
                     "needs a device for each"};
  return Done{};
}

std::vector<int> delays_of(const schedules::Lane& lane, int stage, int micro_batches) {
  std::vector<int> delays(static_cast<std::size_t>(micro_batches), -1);
  std::vector<int> before(delays.size(), 0);
  int steps = 0;
  for (const auto action : lane) {
    if (action.stage != stage) continue;
    if (action.kind == Kind::update) ++steps;
    if (action.kind == Kind::forward) before[action.micro_batch] = steps;
    if (schedules::gives_input_gradient(action.kind))
      delays[action.micro_batch] = steps - before[action.micro_batch];
  }
  return delays;
}

RoundPtr evaluation_round(const Round& training, int micro_batches) {
  auto round = std::make_shared<Round>();
  round->purpose = Round::Purpose::evaluation;
  round->schedule.name = "evaluation";
  round->schedule.stages = training.schedule.stages;
  round->schedule.micro_batches = micro_batches;
  round->schedule.routes = {training.schedule.routes[0]};
  round->schedule.lanes.resize(training.schedule.lanes.size());
  round->step_every = micro_batches;
  // All devices agree on this order: by micro-batch, then stage.
  for (int m = 0; m < micro_batches; ++m)
    for (int stage = 0; stage < round->schedule.stages; ++stage) {
      const auto device = round->schedule.routes[0][static_cast<std::size_t>(stage)];
      round->schedule.lanes[device].push_back(schedules::forward(stage, m));
    }
  return round;
}

}  // namespace troupe::actors
