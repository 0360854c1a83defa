#pragma once

#include <string>
#include <string_view>

#include "actors/decide/reconciler_events.h"

namespace troupe::actors::reconciler {

/// The records of earlier heads. Saves are not taken from it.
struct Journal {
  JournalRead read;
  std::string flaw;  // The error and its place in a damaged journal.
};
Journal read_journal(std::string_view text);

}  // namespace troupe::actors::reconciler
