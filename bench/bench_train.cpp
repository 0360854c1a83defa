// Runs `troupe bench train`, with the number of rounds first:
//
//     ./dev bench train [ROUNDS] [OPTIONS]

#include <unistd.h>

#include <cctype>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

int main(int count, char** words) {
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  std::vector<std::string> command = {here / "../apps/troupe", "bench", "train"};
  int next = 1;
  if (next < count && std::isdigit(static_cast<unsigned char>(words[next][0]))) {
    command.push_back("--rounds");
    command.push_back(words[next++]);
  }
  for (; next < count; ++next) command.push_back(words[next]);
  std::vector<char*> arguments;
  for (auto& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  std::perror(arguments[0]);
  return 1;
}
