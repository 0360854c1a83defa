// The program on terminals of several widths.

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "apps/program.h"
#include "apps/quickstart.h"
#include "catch.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

/// A terminal of this width, to which a program writes.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) : master_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    REQUIRE(master_ >= 0);
    REQUIRE(grantpt(master_) == 0);
    REQUIRE(unlockpt(master_) == 0);
    const winsize size{24, columns, 0, 0};
    slave_ = open(ptsname(master_), O_RDWR | O_NOCTTY | O_CLOEXEC);
    REQUIRE(slave_ >= 0);
    REQUIRE(ioctl(slave_, TIOCSWINSZ, &size) == 0);
  }
  ~Terminal() {
    close(master_);
    if (slave_ >= 0) close(slave_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  int slave() const { return slave_; }
  /// Reads what is written until all writers have closed the terminal.
  std::string read_all() {
    close(slave_);
    slave_ = -1;
    std::string text;
    char bytes[4096];
    for (ssize_t count; (count = read(master_, bytes, sizeof bytes)) > 0;)
      text.append(bytes, static_cast<std::size_t>(count));
    return text;
  }

 private:
  int master_ = -1;
  int slave_ = -1;
};

/// Returns each state of each line, without the sequence that clears the rest of a line.
std::vector<std::string> drawn(const std::string& text) {
  std::vector<std::string> states;
  std::string state;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 3, "\x1b[K") == 0) {
      i += 2;
    } else if (text[i] == '\r' || text[i] == '\n') {
      states.push_back(state);
      state.clear();
    } else {
      state += text[i];
    }
  }
  states.push_back(state);
  return states;
}

std::string train_on(unsigned short columns) {
  const Workplace here;
  Terminal terminal(columns);
  std::string shown;
  const Ended ended = tests::troupe(here, Launch{{"train", quickstart, "--set", "train.steps=120"},
                                                 {},
                                                 [&] { dup2(terminal.slave(), STDERR_FILENO); },
                                                 [&](pid_t) { shown = terminal.read_all(); }});
  CHECK(ended.code == 0);
  return shown;
}

}  // namespace

TEST_CASE("the progress line fits terminals of 60, 80 and 100 columns", "[apps]") {
  for (const unsigned short columns : {60, 80, 100}) {
    const std::string shown = train_on(columns);
    INFO(columns << " columns:\n" << shown);
    int lines = 0;
    for (const auto& line : drawn(shown)) {
      if (!line.starts_with("step ") || line.find(" of 120 ") == std::string::npos) continue;
      ++lines;
      CHECK(line.size() < columns);
      CHECK(line.find("  loss ") != std::string::npos);
      CHECK(line.find('-') == std::string::npos);  // No number is below 0.
    }
    CHECK(lines == 120);
    CHECK(shown.find("step 120 of 120  100 %  ") != std::string::npos);
    // One line at most stays for the steps.
    CHECK(std::count(shown.begin(), shown.end(), '\n') < 15);
  }
}

TEST_CASE("without a terminal every tenth step has a line of its own", "[apps]") {
  const Workplace here;
  const Ended ended = tests::troupe(here, {"train", quickstart, "--set", "train.steps=40"});
  REQUIRE(ended.code == 0);
  CHECK(ended.err.find('\r') == std::string::npos);
  CHECK(ended.err.find('\x1b') == std::string::npos);
  std::istringstream text(ended.err);
  int lines = 0;
  for (std::string line; std::getline(text, line);)
    lines += line.find(" of 40 ") != std::string::npos ? 1 : 0;
  CHECK(lines == 4);
  CHECK(ended.err.find("\nstep 10 of 40   25 %  loss ") != std::string::npos);
}
