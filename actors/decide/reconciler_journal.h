#pragma once

#include <string>
#include <string_view>

#include "actors/decide/reconciler_events.h"

namespace troupe::actors::reconciler {

/// What earlier heads have written down. What is saved is not in it.
struct Journal {
  JournalRead read;
  std::string flaw;  // What is wrong and where, in one that is damaged.
};
Journal read_journal(std::string_view text);

}  // namespace troupe::actors::reconciler
