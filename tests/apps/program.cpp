#include "apps/program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cassert>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "core/json.h"

namespace troupe::tests {
namespace {

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void redirect(const std::filesystem::path& path, int descriptor, int flags) {
  const int file = open(path.c_str(), flags, 0600);
  if (file < 0 || dup2(file, descriptor) < 0) _exit(126);
  close(file);
}

}  // namespace

std::string Workplace::write(const std::string& name, const std::string& text) const {
  std::ofstream(path_ / name, std::ios::binary) << text;
  return (path_ / name).string();
}

std::string Workplace::read(const std::string& name) const { return contents(path_ / name); }

std::vector<Value> Ended::events(const std::string& type) const {
  std::vector<Value> found;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    auto event = parse_json(line);
    if (event && event->find("type") && *event->find("type")->text() == type)
      found.push_back(std::move(*event));
  }
  return found;
}

Ended troupe(const Workplace& workplace, const Launch& launch) {
  // Output goes to files, so that the program never blocks on a full pipe.
  const auto out = workplace.path() / ".out", err = workplace.path() / ".err",
             in = workplace.path() / ".in";
  std::ofstream(in, std::ios::binary) << launch.input;
  const pid_t child = fork();
  assert(child >= 0);
  if (child == 0) {
    redirect(in, STDIN_FILENO, O_RDONLY);
    redirect(out, STDOUT_FILENO, O_WRONLY | O_CREAT | O_TRUNC);
    redirect(err, STDERR_FILENO, O_WRONLY | O_CREAT | O_TRUNC);
    if (chdir(workplace.path().c_str()) != 0) _exit(126);
    if (launch.before_start) launch.before_start();
    std::vector<char*> words{const_cast<char*>(TROUPE_PROGRAM)};
    for (const auto& word : launch.arguments) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execv(words[0], words.data());
    _exit(127);
  }
  if (launch.while_it_runs) launch.while_it_runs(child);
  int status = 0;
  waitpid(child, &status, 0);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, contents(out), contents(err)};
}

Ended troupe(const Workplace& workplace, const std::vector<std::string>& arguments) {
  return troupe(workplace, Launch{arguments, {}, {}, {}});
}

std::vector<std::string> offered(const Workplace& here, std::vector<std::string> words) {
  words.insert(words.begin(), {"complete", "--"});
  std::istringstream text(troupe(here, words).out);
  std::vector<std::string> found;
  for (std::string line; std::getline(text, line);)
    found.push_back(line.substr(0, line.find('\t')));
  return found;
}

}  // namespace troupe::tests
