#include "schedules/plan/plan_search.h"

#include <algorithm>

#include "schedules/operators.h"
#include "schedules/search/search.h"

namespace troupe::schedules {

namespace {

constexpr int most_chunks = 4;

/// Returns, for each number of chunks, the cuts of a schedule with that number.
std::vector<PlanDraft> cuts_by_chunks(const PlanRequest& request, const PlanDraft& draft) {
  std::vector<PlanDraft> all;
  for (int chunks = 1; chunks <= most_chunks; ++chunks) {
    PlanShape shape = draft.shape;
    shape.schedule = chunks == 1 ? "1f1b" : "interleaved";
    shape.chunks = chunks;
    if (shape.stages() > static_cast<int>(request.units.size())) break;
    auto drafted = troupe::schedules::draft(request, shape);
    if (drafted && drafted->places == draft.places) all.push_back(std::move(*drafted));
  }
  return all;
}

/// Returns, by position, the memory for activations that every draft leaves.
std::vector<double> caps_of(const PlanRequest& request, const std::vector<PlanDraft>& drafts) {
  std::vector<double> caps;
  for (int p = 0; p < drafts.front().shape.positions; ++p) {
    Bytes least = memory_at(request, drafts.front(), p);
    for (const PlanDraft& draft : drafts) {
      Bytes left = memory_at(request, draft, p);
      for (const PlannedSeat& seat : draft.seats)
        if (seat.position == p) left -= seat.memory.total() - seat.memory.activations;
      least = std::min(least, left);
    }
    caps.push_back(static_cast<double>(least));
  }
  return caps;
}

}  // namespace

std::optional<Plan> search_lanes(const PlanRequest& request, const PlanDraft& draft) {
  const SchedulePtr& played = draft.schedules.front();
  const bool alike = std::ranges::all_of(
      draft.schedules, [&](const SchedulePtr& schedule) { return schedule == played; });
  if (!alike || request.recompute.anywhere()) return std::nullopt;
  const auto drafts = cuts_by_chunks(request, draft);
  if (drafts.empty()) return std::nullopt;

  SearchRequest wanted;
  wanted.devices = draft.shape.positions;
  wanted.micro_batches = played->micro_batches;
  for (const PlanDraft& cut : drafts) wanted.partitions.push_back(costs_of(request, cut, 0));
  wanted.caps = caps_of(request, drafts);
  wanted.objective = request.objective;
  wanted.effort = request.effort;
  const auto found = search(wanted);
  if (!found) return std::nullopt;

  const int chunks = found->schedule.stages / draft.shape.positions;
  const auto cut = std::ranges::find(drafts, chunks, [](const auto& d) { return d.shape.chunks; });
  if (cut == drafts.end()) return std::nullopt;
  const auto lanes = std::make_shared<const Schedule>(with_updates(found->schedule));
  auto fitted = with_lanes(request, *cut, {draft.schedules.size(), lanes});
  if (!fitted) return std::nullopt;
  auto plan = finish(request, *fitted);
  if (!plan) return std::nullopt;
  return *plan;
}

}  // namespace troupe::schedules
