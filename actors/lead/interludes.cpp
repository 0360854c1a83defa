#include "actors/lead/interludes.h"

#include <cstddef>
#include <string>
#include <utility>

namespace troupe::actors {
namespace {

constexpr std::size_t most_interludes = 64;

}  // namespace

void Interludes::add(Interlude interlude) {
  if (waiting_.size() >= most_interludes)
    return interlude.done(Error{"found " + std::to_string(waiting_.size()) +
                                " changes that wait already; try again later"});
  waiting_.push_back(std::move(interlude));
}

bool Interludes::hold(std::int64_t step, const Status& saved,
                      const std::function<void(RunSpecPtr)>& changed) {
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
  return !made_.empty();
}

void Interludes::answer(const Result<std::int64_t>& what) {
  for (const auto& done : std::exchange(made_, {})) done(what);
}

void Interludes::run_has_ended() {
  for (auto& interlude : std::exchange(waiting_, {})) made_.push_back(std::move(interlude.done));
  answer(Error{"the run has ended"});
}

}  // namespace troupe::actors
