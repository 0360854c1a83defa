#include "apps/client/screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <sstream>

#include "apps/client/table.h"

namespace troupe::apps {
namespace {

struct Size {
  std::size_t rows = 24, columns = 80;
};

Size size_of_terminal() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
    return {};
  return {size.ws_row, size.ws_col};
}

void draw_now(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

std::string row(std::size_t number) { return "\x1b[" + std::to_string(number) + ";1H"; }

}  // namespace

Screen::Screen() {
  if (termios now{}; tcgetattr(STDIN_FILENO, &now) == 0) {
    before_ = now;
    // Ctrl-C stays a signal.
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &now);
  }
  draw_now("\x1b[?1049h\x1b[?25l");  // The alternate buffer; no cursor.
}

Screen::~Screen() {
  draw_now("\x1b[?25h\x1b[?1049l");
  if (before_) tcsetattr(STDIN_FILENO, TCSANOW, &*before_);
}

// The last column stays free: terminals scroll if it is filled, or erase it with the rest of the
// row.
TextForm Screen::form() const {
  auto form = form_of(stdout);
  form.columns = size_of_terminal().columns - 1;
  return form;
}

void Screen::show(const std::string& text, const std::string& foot) const {
  const auto size = size_of_terminal();
  const auto columns = size.columns - 1;
  std::string picture = row(1);
  std::istringstream lines(text);
  std::size_t rows = 1;
  // Each row is overwritten: clearing all of them first would flicker.
  for (std::string line; rows < size.rows && std::getline(lines, line); ++rows)
    picture += cut_end(line, columns) + "\x1b[K\r\n";
  draw_now(picture + "\x1b[J");
  show_foot(foot);
}

void Screen::show_foot(const std::string& foot) const {
  const auto size = size_of_terminal();
  draw_now(row(size.rows) + cut_end(foot, size.columns - 1) + "\x1b[K");
}

std::optional<char> Screen::wait(EventFd& bell, std::chrono::milliseconds patience) const {
  pollfd ready[] = {{bell.descriptor(), POLLIN, 0}, {before_ ? STDIN_FILENO : -1, POLLIN, 0}};
  if (poll(ready, 2, static_cast<int>(patience.count())) <= 0) return {};
  if (ready[0].revents != 0) bell.clear();
  if (ready[1].revents == 0) return {};
  char key = end_key;
  (void)!read(STDIN_FILENO, &key, 1);
  return key;
}

}  // namespace troupe::apps
