#include <algorithm>
#include <array>
#include <tuple>

#include "schedules/check/rules.h"
#include "schedules/check/transfers.h"

namespace troupe::schedules {
namespace {

/// One end of a transfer, posted to a stream of its device.
struct Post {
  std::array<int, 4> stream;  // The device, and the fields that distinguish its streams.
  std::uint64_t moment;       // A receive is posted before its pass, a send after it.
  std::uint32_t transfer;
};

std::array<int, 4> stream_of(Streams streams, const Queue& queue, std::size_t index, bool sends) {
  const int device = sends ? queue.source : queue.target;
  const int peer = sends ? queue.target : queue.source;
  const int direction = sends ? 1 : 0;
  const int kind = queue.kind == Kind::forward ? 1 : 0;
  switch (streams) {
    case Streams::per_device:
      return {device, 0, 0, 0};
    case Streams::per_peer:
      return {device, peer, 0, 0};
    case Streams::per_peer_and_direction:
      return {device, peer, direction, 0};
    case Streams::per_peer_direction_and_kind:
      return {device, peer, direction, kind};
    case Streams::per_queue:
      return {device, static_cast<int>(index), direction, 0};
  }
  return {};
}

/// Return the first or last position of the group that contains an action.
std::uint64_t group_begin(const Lane& lane, std::size_t position) {
  while (position > 0 && (lane[position - 1].flags & Action::with_next)) --position;
  return position;
}
std::uint64_t group_end(const Lane& lane, std::size_t position) {
  while (lane[position].flags & Action::with_next) ++position;
  return position;
}

std::string describe(const Transfer& transfer, const PassTable& passes) {
  return "the transfer from " + passes.describe(transfer.producer) + " to " +
         passes.describe(transfer.consumer);
}

}  // namespace

void check_streams(const Schedule& schedule, const PassTable& passes, Streams streams,
                   Findings& findings) {
  WaitGraph graph = pass_graph(schedule, passes);
  std::vector<Transfer> transfers;
  std::vector<Post> posts;
  const std::vector<Queue> queues = queues_of(schedule, passes);
  for (std::size_t q = 0; q < queues.size(); ++q)
    for (const Transfer& transfer : queues[q].transfers) {
      transfers.push_back(transfer);
      const std::uint32_t thing = graph.add_thing();
      graph.add(transfer.producer, thing, Cause::data);
      graph.add(thing, transfer.consumer, Cause::data);
      const auto sent = group_end(schedule.lanes[queues[q].source],
                                  static_cast<std::size_t>(passes.position(transfer.producer)));
      const auto received =
          group_begin(schedule.lanes[queues[q].target],
                      static_cast<std::size_t>(passes.position(transfer.consumer)));
      posts.push_back({stream_of(streams, queues[q], q, true), 2 * sent + 1, thing});
      posts.push_back({stream_of(streams, queues[q], q, false), 2 * received, thing});
    }
  std::ranges::sort(posts, {}, [](const Post& post) {
    return std::tie(post.stream, post.moment, post.transfer);
  });
  for (std::size_t k = 1; k < posts.size(); ++k)
    if (posts[k - 1].stream == posts[k].stream)
      graph.add(posts[k - 1].transfer, posts[k].transfer, Cause::stream);
  if (graph.finishes()) return;

  std::vector<std::string> crossing;
  int device = -1;
  int position = 0;
  for (const WaitGraph::Edge& edge : graph.shortest_circle()) {
    if (edge.cause != Cause::stream || crossing.size() == 2) continue;
    const Transfer& then = transfers[edge.then - passes.size()];
    const Transfer& first = transfers[edge.first - passes.size()];
    if (crossing.empty()) {
      device = passes.device(then.consumer);
      position = passes.position(then.consumer);
    }
    crossing.push_back(describe(then, passes) + " is behind " + describe(first, passes));
  }
  findings.add(Rule::streams, device, position,
               "two streams wait for each other: in one " + crossing.front() +
                   (crossing.size() == 2 ? ", in the other " + crossing.back()
                                         : ", which cannot begin before it ends"));
}

}  // namespace troupe::schedules
