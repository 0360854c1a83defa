#include "apps/hosts/remote_place.h"

#include <filesystem>
#include <system_error>

#include "apps/hosts/children.h"
#include "apps/hosts/ssh.h"
#include "core/printable.h"

namespace troupe::apps {
namespace {

namespace fs = std::filesystem;

constexpr int no_such_folder = 120;

std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of("\r\n");
  if (end == std::string::npos) return {};
  const auto begin = text.find_last_of('\n', end);
  return printable(text.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin + 1) + 1));
}

}  // namespace

Result<RemotePlace> RemotePlace::like_here(const std::string& program, const std::string& folder) {
  RemotePlace place{program, folder, {}};
  std::error_code error;
  if (program.empty()) place.program = fs::read_symlink("/proc/self/exe", error).string();
  if (folder.empty()) place.folder = fs::current_path(error).string();
  if (error)
    return Error{"cannot say where this program is (" + error.message() +
                 "); give --program and --folder"};
  auto environment = read_deepspeed_env();
  if (!environment) return environment.error();
  place.environment = std::move(*environment);
  return place;
}

std::string script_to(const RemotePlace& place) {
  const std::string folder = shell_quoted(place.folder);
  std::string script = "cd " + folder + " 2>/dev/null || { echo there is no folder " + folder +
                       " >&2; exit " + std::to_string(no_such_folder) + "; }\n";
  for (const auto& [name, value] : place.environment)
    script += "export " + name + "=" + shell_quoted(value) + "\n";
  return script;
}

std::string script_to_run(const RemotePlace& place, const std::vector<std::string>& arguments) {
  return script_to(place) + "exec " + shell_quoted(place.program) + " " + shell_line(arguments) +
         "\n";
}

bool is_untouched(const std::string& host, int code, const std::string& said) {
  return code == no_such_program || code == no_such_folder ||
         ssh_failure(host, code, said).is_before_login;
}

Check judge_reached(const std::string& host, int code, const std::string& said,
                    const RemotePlace& place) {
  const std::string name = "ssh";
  if (const auto failure = ssh_failure(host, code, said); !failure.found.empty())
    return {name, Verdict::fail, failure.found, failure.fix};
  if (code == no_such_program)
    return {name, Verdict::fail, "there is no program " + place.program,
            "install the same version there, or say where it is: --program PATH"};
  if (code == no_such_folder)
    return {name, Verdict::fail, "there is no folder " + place.folder,
            "make it, or share it, or name another: --folder PATH"};
  if (code > 128)
    return {name, Verdict::fail,
            "no end within the patience, or killed (signal " + std::to_string(code - 128) + ")",
            "try it by hand: ssh " + host};
  if (code != 0 && code != 4)
    return {name, Verdict::fail,
            "exit code " + std::to_string(code) +
                (last_line(said).empty() ? "" : ": " + last_line(said)),
            ""};
  return {name, Verdict::ok, "without a password", ""};
}

}  // namespace troupe::apps
