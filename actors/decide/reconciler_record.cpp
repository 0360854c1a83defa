#include "actors/decide/reconciler_record.h"

#include <algorithm>

namespace troupe::actors::reconciler {

Remembered remember(const std::vector<Record>& records) {
  Remembered found;
  std::vector<Life> begun;
  std::vector<std::string> begun_names;
  for (const auto& record : records) {
    found.term = std::max(found.term, record.term);
    // The first record of a run names the last attempt of an earlier run of its name.
    found.epoch = std::max(found.epoch, record.epoch);
    switch (record.kind) {
      case Record::Kind::epoch:
        found.has_begun = true;
        found.is_in_force = false;
        begun = record.lives;
        begun_names = record.names;
        break;
      case Record::Kind::active:
        found.active_epoch = record.epoch;
        found.is_in_force = true;
        found.line = record.step;
        found.members = begun;
        found.names = begun_names;
        break;
      case Record::Kind::aborted:
        if (record.epoch == found.active_epoch) found.is_in_force = false;
        break;
      case Record::Kind::dead:
        for (const Life life : record.lives)
          if (std::ranges::find(found.members, life) != found.members.end())
            found.is_in_force = false;
        break;
      case Record::Kind::ended:
        found.has_ended = true;
        found.why = record.why;
        break;
      case Record::Kind::term:
      case Record::Kind::strike:
      case Record::Kind::saved:
        break;
    }
  }
  return found;
}

}  // namespace troupe::actors::reconciler
