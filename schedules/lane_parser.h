#pragma once

#include "core/result.h"
#include "schedules/scanner.h"
#include "schedules/schedule.h"
#include "schedules/text.h"

namespace troupe::schedules {

/// Parses the items of a lane up to the end of the text line:
///
///     item   = action | group | range | loop
///     action = stage code [micro-batch] {"~" | "'"}
///     group  = "(" action {"+" action} ")"
///     range  = stage code "[" first ".." last [":" step] "]"
///     loop   = "{" item {item} "}" "*" count [":" stride]
class LaneParser {
 public:
  /// Parsing fails once the lane holds `room` actions and the text asks for one more.
  LaneParser(Scanner& scanner, LaneBounds bounds, std::size_t room)
      : scanner_(scanner), bounds_(bounds), room_(room) {}

  Result<Lane> parse();

 private:
  bool items(int depth);
  bool action();
  bool group();
  bool range(Action first);
  bool loop(int depth);
  bool repeat(std::size_t begin, int count, int stride, Position place);

  bool push(Action action, Position place);
  bool micro_batch(Action& action);
  bool flags(Action& action);
  bool signed_number(int& number, const std::string& what);
  bool separated();

  bool fail(Error error);
  bool fail_here(const std::string& wanted) { return fail(scanner_.unexpected(wanted)); }

  Scanner& scanner_;
  LaneBounds bounds_;
  std::size_t room_;
  Lane lane_;
  Error error_;
};

}  // namespace troupe::schedules
