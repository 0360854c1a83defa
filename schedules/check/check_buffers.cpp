#include <algorithm>

#include "schedules/check/rules.h"
#include "schedules/check/transfers.h"

namespace troupe::schedules {
namespace {

/// The wait graph of passes and transfers, with the slots that each transfer takes.
struct BufferGraph {
  WaitGraph graph;
  std::vector<std::size_t> queue_of;  // Indexed by transfer; those are numbered after the passes.
};

BufferGraph buffer_graph(const Schedule& schedule, const PassTable& passes,
                         const std::vector<Queue>& queues, Buffers buffers) {
  BufferGraph made{pass_graph(schedule, passes), {}};
  for (std::size_t q = 0; q < queues.size(); ++q) {
    const auto& transfers = queues[q].transfers;
    std::vector<std::uint32_t> things;
    for (std::size_t k = 0; k < transfers.size(); ++k) {
      const std::uint32_t thing = made.graph.add_thing();
      made.queue_of.push_back(q);
      made.graph.add(transfers[k].producer, thing, Cause::data);
      made.graph.add(thing, transfers[k].consumer, Cause::data);
      if (k > 0) made.graph.add(things[k - 1], thing, Cause::order);
      const auto landing = static_cast<std::size_t>(buffers.landing);
      if (k >= landing) made.graph.add(transfers[k - landing].consumer, thing, Cause::landing);
      const auto outgoing = static_cast<std::size_t>(buffers.outgoing);
      if (k >= outgoing) made.graph.add(things[k - outgoing], transfers[k].producer, Cause::room);
      things.push_back(thing);
    }
  }
  return made;
}

/// Returns the queue whose slots close the cycle of the deadlock.
const Queue& full_queue(const BufferGraph& made, const PassTable& passes,
                        const std::vector<Queue>& queues) {
  for (const WaitGraph::Edge& edge : made.graph.shortest_circle()) {
    if (edge.cause == Cause::landing) return queues[made.queue_of[edge.then - passes.size()]];
    if (edge.cause == Cause::room) return queues[made.queue_of[edge.first - passes.size()]];
  }
  return queues.front();
}

/// Finds a tensor that is consumed before an earlier-made one; returns the end if there is none.
auto out_of_order(const Queue& queue) {
  return std::ranges::adjacent_find(queue.transfers, std::ranges::greater{}, &Transfer::producer);
}

int fewest(const Schedule& schedule, const PassTable& passes, const std::vector<Queue>& queues,
           int outgoing) {
  for (const Queue& queue : queues)
    if (out_of_order(queue) != queue.transfers.end()) return schedule.micro_batches;
  const auto finishes = [&](int landing) {
    return buffer_graph(schedule, passes, queues, {landing, outgoing}).graph.finishes();
  };
  // With one slot for each micro-batch no transfer waits for a slot.
  int enough = 1;
  int too_few = 0;
  while (enough < schedule.micro_batches && !finishes(enough)) {
    too_few = enough;
    enough = std::min(2 * enough, schedule.micro_batches);
  }
  while (enough - too_few > 1) {
    const int middle = too_few + (enough - too_few) / 2;
    (finishes(middle) ? enough : too_few) = middle;
  }
  return enough;
}

}  // namespace

int fewest_landing_slots(const Schedule& schedule, int outgoing) {
  const PassTable passes(schedule);
  return fewest(schedule, passes, queues_of(schedule, passes), outgoing);
}

void check_buffers(const Schedule& schedule, const PassTable& passes, Buffers buffers,
                   Findings& findings) {
  const std::vector<Queue> queues = queues_of(schedule, passes);
  bool in_order = true;
  for (const Queue& queue : queues) {
    const auto late = out_of_order(queue);
    if (late == queue.transfers.end()) continue;
    in_order = false;
    findings.add(Rule::bounded_buffers, queue.target, passes.position(late->consumer),
                 queue.describe() + " are not used in the order of their making: " +
                     to_string(passes.action(late->consumer)) + " is before " +
                     to_string(passes.action((late + 1)->consumer)) + ", but " +
                     to_string(passes.action(late->producer)) + " after " +
                     to_string(passes.action((late + 1)->producer)));
  }
  if (!in_order) return;

  const BufferGraph made = buffer_graph(schedule, passes, queues, buffers);
  if (made.graph.finishes()) return;
  const Queue& queue = full_queue(made, passes, queues);
  findings.add(Rule::bounded_buffers, queue.target,
               passes.position(queue.transfers.front().consumer),
               queue.describe() + " get stuck with " + std::to_string(buffers.landing) +
                   " landing and " + std::to_string(buffers.outgoing) +
                   " outgoing slots; the fewest landing slots that do are " +
                   std::to_string(fewest(schedule, passes, queues, buffers.outgoing)));
}

}  // namespace troupe::schedules
