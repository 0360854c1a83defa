#include "actors/lead/boundary_changes.h"

#include <cstddef>
#include <string>
#include <utility>

namespace troupe::actors {
namespace {

constexpr std::size_t most_boundary_changes = 64;

}  // namespace

bool BoundaryChanges::add(BoundaryChange boundary_change) {
  if (waiting_.size() >= most_boundary_changes) {
    boundary_change.done(Error{"found " + std::to_string(waiting_.size()) +
                               " changes that wait already; try again later"});
    return false;
  }
  waiting_.push_back(std::move(boundary_change));
  return true;
}

BoundaryChanges::Held BoundaryChanges::hold(std::int64_t step, const Status& saved,
                                            const std::function<void(RunSpecPtr)>& changed) {
  const auto count = static_cast<int>(waiting_.size());
  for (auto& [change, done] : std::exchange(waiting_, {})) {
    if (!saved || !change) {
      done(saved ? Result<std::int64_t>(step) : saved.error());
      continue;
    }
    auto made = change(step);
    if (!made) {
      done(made.error());
      continue;
    }
    changed(std::move(*made));
    made_.push_back(std::move(done));
  }
  return {count, !made_.empty()};
}

void BoundaryChanges::answer(const Result<std::int64_t>& what) {
  for (const auto& done : std::exchange(made_, {})) done(what);
}

void BoundaryChanges::run_has_ended() {
  for (auto& boundary_change : std::exchange(waiting_, {}))
    made_.push_back(std::move(boundary_change.done));
  answer(Error{"the run has ended"});
}

}  // namespace troupe::actors
