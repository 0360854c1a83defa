#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/value.h"

namespace troupe::apps {

enum class Verdict { ok, warn, fail, skip };

/// "ok", "warn", "FAIL", "skip"
std::string_view to_string(Verdict verdict);

/// What the doctor says of one thing.
struct Check {
  std::string name;  // "open files"
  Verdict verdict = Verdict::ok;
  std::string found;
  std::string fix;  // What to do; empty where there is nothing to be done.
};

/// A line, and one more for the fix:
///
///     warn  open files      256 a process
///           fix: ulimit -n 65536
std::string to_text(const Check& check);
/// The same as an event, for programs.
Value to_event(const Check& check);

/// "alpha, beta": what a check has found in several.
std::string joined(const std::vector<std::string>& texts);

/// What an event says; one that says nothing known becomes a failure.
Check from_event(const Value& event);

}  // namespace troupe::apps
