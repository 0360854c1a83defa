#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/value.h"

namespace troupe::apps {

enum class Verdict { ok, warn, fail, skip };

/// Returns "ok", "warn", "FAIL" or "skip".
std::string_view to_string(Verdict verdict);

/// The doctor's result for one subject.
struct Check {
  std::string name;  // The subject: "open files".
  Verdict verdict = Verdict::ok;
  std::string found;
  std::string fix;  // The fix; empty if there is nothing to do.
};

/// Formats a check as a line, and a second line with the fix:
///
///     warn  open files      256 a process
///           fix: ulimit -n 65536
std::string to_text(const Check& check);
/// Returns the check as an event, for programs.
Value to_event(const Check& check);

/// Joins the machines or items that a check has found: "alpha, beta".
std::string joined(const std::vector<std::string>& texts);

/// Reads a check from an event. An event with an unknown verdict becomes a failure.
Check from_event(const Value& event);

}  // namespace troupe::apps
