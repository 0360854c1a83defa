#include "apps/events/terminal_width.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "core/text.h"

namespace troupe::apps {

std::optional<std::size_t> columns_of(std::FILE* stream) {
  constexpr std::size_t usual = 80;
  winsize size{};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) != 0) return {};
  return size.ws_col > 0 ? size.ws_col : usual;
}

void print_wrapped(const std::string& text) {
  const auto columns = columns_of(stdout);
  std::fputs((columns ? wrapped(text, *columns) : text).c_str(), stdout);
}

}  // namespace troupe::apps
