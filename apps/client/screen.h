#pragma once

#include <termios.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "apps/events/terminal_width.h"
#include "core/threads/event_fd.h"

namespace troupe::apps {

/// The whole terminal of a program that draws one picture after another. The destructor gives back
/// what the terminal showed before.
class Screen {
 public:
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// Shows as much of `text` as fits, and `foot` in the last row. A line that is cut ends with "…".
  void show(const std::string& text, const std::string& foot) const;
  /// Returns how many characters fit in a row, and whether the terminal has colours.
  TextForm form() const;
  /// Replaces the last row.
  void show_foot(const std::string& foot) const;
  static constexpr char end_key = 'q';

  /// Waits for a key, for a ring of the bell, or for this long. Returns the key; `end_key` if the
  /// terminal is gone.
  std::optional<char> wait(EventFd& bell, std::chrono::milliseconds patience) const;

 private:
  std::optional<termios> before_;  // How keys were read; nothing if they are not from a terminal.
};

}  // namespace troupe::apps
