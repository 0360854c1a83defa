#include "apps/hosts/render.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/client/head_address.h"
#include "apps/command.h"
#include "apps/commands/remote_arguments.h"
#include "apps/hosts/hostfile.h"
#include "config/load.h"
#include "core/digest.h"
#include "core/json.h"
#include "core/printable.h"

namespace troupe::apps {
namespace {

/// Fails if a word has control characters, such as line ends: a rendered line would end there.
Status fits_line(const std::string& option, const std::string& word) {
  if (std::ranges::none_of(word, [](unsigned char c) { return c < ' ' || c == 0x7f; }))
    return Done{};
  return Error{"error: " + option + ": found a line end or another control character in '" +
               printable(word) + "'; wanted one line of text"};
}

struct JobArguments {
  std::string config;
  std::vector<std::string> settings;
  int nodes = 2;
  int cores = 0;
  std::optional<int> gpus;
  std::string memory;
  int grace = 120;

  void add_to(CLI::App& command) {
    command.add_option("config", config, "the run")->required();
    command.add_option("--set", settings, "key=value: override a key of the file; can be repeated");
    command.add_option("--nodes", nodes, "number of nodes (default: 2)")
        ->check(CLI::Range(1, 10'000));
    command.add_option("--cores", cores, "cores per node (default: all of a machine)")
        ->check(CLI::Range(1, 4096));
    command
        .add_option("--gpus", gpus, "GPUs per node (default: 1 if train.device is cuda, or none)")
        ->check(CLI::Range(1, 64));
    command.add_option("--memory", memory, "memory per node, in the cluster's notation");
    command
        .add_option(
            "--grace", grace,
            "seconds between a termination notice and the kill, for saving the run (default: 120)")
        ->check(CLI::Range(1, 86'400));
  }
  /// Returns the order. Errors are those of the configuration, and of words that do not fit a line.
  Result<JobOrder> order() const {
    const auto loaded = config::load({config, settings});
    if (!loaded) return loaded.error();
    const bool uses_gpus = loaded->config.train.device == config::RunConfig::Train::Device::cuda;
    if (gpus && !uses_gpus)
      return Error{
          "error: --gpus " + std::to_string(*gpus) +
          ": train.device is \"cpu\", so the run would use no GPU; --set train.device=cuda"};
    if (auto fits = fits_line("--memory", memory); !fits) return fits.error();
    return JobOrder{loaded->config.name,
                    to_json_lines(loaded->tree) + "\n",
                    nodes,
                    cores,
                    uses_gpus ? gpus.value_or(1) : 0,
                    memory,
                    std::chrono::seconds(grace),
                    "troupe"};
  }
};

/// Returns whether a name fits Kubernetes' objects: lower-case letters, digits and '-', beginning
/// with a letter.
bool is_kubernetes_name(const std::string& name) {
  constexpr std::size_t longest = 40;  // Leaves room for suffixes.
  return !name.empty() && name.size() <= longest && name.front() >= 'a' && name.front() <= 'z' &&
         name.back() != '-' && std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

struct SlurmArguments {
  JobArguments job;
  std::string time = "1-00:00:00";
  std::string partition;
  std::string account;
  std::string qos;
  std::string constraint;
  std::vector<std::string> lines;
  std::string program = "troupe";

  Status check() const {
    for (const auto& [option, word] : {std::pair("--time", &time),
                                       {"--partition", &partition},
                                       {"--account", &account},
                                       {"--qos", &qos},
                                       {"--constraint", &constraint},
                                       {"--program", &program}})
      if (auto fits = fits_line(option, *word); !fits) return fits;
    for (const auto& line : lines) {
      if (auto fits = fits_line("--line", line); !fits) return fits;
      if (!line.starts_with('-'))
        return Error{"error: --line: found '" + line +
                     "'; wanted an option of sbatch, such as --line=--mail-type=END"};
    }
    return Done{};
  }
};

ExitCode slurm(const SlurmArguments& arguments, const CommonFlags&) {
  if (auto fine = arguments.check(); !fine) return complain(ExitCode::usage, fine.error().text);
  auto job = arguments.job.order();
  if (!job) return complain(ExitCode::invalid, job.error().text);
  job->program = arguments.program;
  std::fputs(render_slurm({std::move(*job), arguments.time, arguments.partition, arguments.account,
                           arguments.qos, arguments.constraint, arguments.lines})
                 .c_str(),
             stdout);
  return ExitCode::done;
}

struct KubernetesArguments {
  JobArguments job;
  std::string flavour = "job";
  std::string image = "troupe:" TROUPE_VERSION;
  std::string shared_memory = "1Gi";
  std::string storage = "20Gi";
  std::string name_space;
  std::string priority_class;
  std::vector<std::string> node_labels;
  std::vector<std::string> tolerations;
  int evicted = 1;

  Status check() const {
    for (const auto& [option, word] : {std::pair("--image", &image),
                                       {"--shared-memory", &shared_memory},
                                       {"--storage", &storage},
                                       {"--priority-class", &priority_class}})
      if (auto fits = fits_line(option, *word); !fits) return fits;
    if (!name_space.empty() && !is_kubernetes_name(name_space))
      return Error{"error: --namespace: found '" + printable(name_space) +
                   "'; wanted small letters, digits and '-', at most 40, a letter first"};
    return Done{};
  }

  /// Returns the order for a job.
  Result<KubernetesOrder> order(JobOrder job) const {
    using Flavour = KubernetesOrder::Flavour;
    KubernetesOrder order;
    order.job = std::move(job);
    order.flavour = flavour == "job"      ? Flavour::job
                    : flavour == "jobset" ? Flavour::jobset
                                          : Flavour::statefulset;
    order.image = image;
    order.shared_memory = shared_memory;
    order.storage = storage;
    order.name_space = name_space;
    order.priority_class = priority_class;
    order.evicted = evicted;
    for (const auto& text : node_labels) {
      if (auto fits = fits_line("--node-label", text); !fits) return fits.error();
      const auto equals = text.find('=');
      if (equals == text.npos || equals == 0)
        return Error{"error: --node-label: found '" + text +
                     "'; wanted KEY=VALUE, such as node.kubernetes.io/instance-type=gpu-8"};
      order.node_labels[text.substr(0, equals)] = text.substr(equals + 1);
    }
    for (const auto& text : tolerations) {
      if (auto fits = fits_line("--toleration", text); !fits) return fits.error();
      auto toleration = Toleration::parse(text);
      if (!toleration) return Error{"error: --toleration: " + toleration.error().text};
      order.tolerations.push_back(std::move(*toleration));
    }
    return order;
  }
};

ExitCode kubernetes(const KubernetesArguments& arguments, const CommonFlags&) {
  if (auto fine = arguments.check(); !fine) return complain(ExitCode::usage, fine.error().text);
  auto job = arguments.job.order();
  if (!job) return complain(ExitCode::invalid, job.error().text);
  if (!is_kubernetes_name(job->name))
    return complain(ExitCode::invalid, "error: the run is called '" + job->name +
                                           "', and Kubernetes wants small letters, digits and "
                                           "'-', at most 40, a letter first: --set name=...");
  const auto order = arguments.order(std::move(*job));
  if (!order) return complain(ExitCode::usage, order.error().text);
  std::fputs(render_kubernetes(*order).c_str(), stdout);
  return ExitCode::done;
}

struct SshArguments {
  std::string hostfile;
  std::string head;
  std::string head_key;
  std::string node_keys;
  RemoteArguments remote;
};

ExitCode ssh(const SshArguments& arguments, const CommonFlags&) {
  const auto hosts = read_hostfile(arguments.hostfile);
  if (!hosts) return complain(ExitCode::invalid, hosts.error().text);
  const auto head = find_head(arguments.head);
  if (!head) return complain(ExitCode::usage, "error: " + head.error().text);
  // TROUPE_HEAD_KEY applies only if node keys are given: a user may have set it for other commands.
  std::string head_key = arguments.head_key;
  const char* of_environment = std::getenv("TROUPE_HEAD_KEY");
  if (head_key.empty() && !arguments.node_keys.empty() && of_environment) head_key = of_environment;
  if (arguments.node_keys.empty() != head_key.empty())
    return complain(ExitCode::usage,
                    "error: --node-keys and --head-key (or TROUPE_HEAD_KEY) go together");
  auto place = RemotePlace::like_here(arguments.remote.program, arguments.remote.folder);
  if (!place) return complain(ExitCode::invalid, place.error().text);
  // The name depends only on the head and the machines. So a script that is rendered again ends the
  // processes that an earlier one has started.
  std::string all = *head;
  for (const auto& host : *hosts) all += " " + host.name;
  const NodesOrder order{"up-" + to_string(digest_of(all)).substr(0, 16),
                         *head,
                         arguments.node_keys,
                         std::move(head_key),
                         std::move(*place),
                         std::chrono::seconds(30)};
  std::fputs(render_ssh(*hosts, order).c_str(), stdout);
  return ExitCode::done;
}

}  // namespace

void add_render(Program& program) {
  CLI::App& render = add_group(program, "render", "print job specifications");
  {
    auto [command, arguments] =
        add_command(program, render, "slurm", "print an sbatch script for a run", slurm);
    arguments.job.add_to(*command);
    command->add_option("--time", arguments.time,
                        "time limit, as for sbatch --time (default: 1-00:00:00)");
    command->add_option("--partition", arguments.partition,
                        "Slurm partition (default: the cluster's default)");
    command->add_option("--account", arguments.account, "account that is charged for the job");
    command->add_option("--qos", arguments.qos, "quality of service, as for sbatch --qos");
    command->add_option("--constraint", arguments.constraint,
                        "features that each machine must have, as for sbatch --constraint");
    command->add_option(
        "--line", arguments.lines,
        "another option of sbatch, such as --line=--mail-type=END; can be repeated");
    command->add_option("--program", arguments.program, "path of `troupe` on the machines");
  }
  {
    auto [command, arguments] =
        add_command(program, render, "k8s", "print Kubernetes objects for a run", kubernetes);
    arguments.job.add_to(*command);
    command
        ->add_option("--flavour", arguments.flavour,
                     "kind of objects: job, jobset or statefulset (default: job)")
        ->check(CLI::IsMember({"job", "jobset", "statefulset"}));
    command->add_option("--image", arguments.image,
                        "container image that contains this program (default: troupe:VERSION)");
    command->add_option("--shared-memory", arguments.shared_memory,
                        "size of /dev/shm in each pod (default: 1Gi)");
    command->add_option("--storage", arguments.storage,
                        "size of the volume for runs/ (default: 20Gi)");
    command->add_option("--namespace", arguments.name_space,
                        "namespace of all objects (default: the one that kubectl chooses)");
    command->add_option("--priority-class", arguments.priority_class, "PriorityClass of the pods");
    command
        ->add_option("--max-evicted", arguments.evicted,
                     "most nodes that voluntary evictions may take at once, as when machines are "
                     "drained (default: 1)")
        ->check(CLI::Range(1, 10'000));
    command->add_option("--node-label", arguments.node_labels,
                        "KEY=VALUE: a label that each machine must have (nodeSelector); can be "
                        "repeated");
    command->add_option("--toleration", arguments.tolerations,
                        "KEY[=VALUE][:EFFECT]: a taint that the machines may have, such as "
                        "nvidia.com/gpu:NoSchedule; can be repeated");
  }
  {
    auto [command, arguments] = add_command(
        program, render, "ssh",
        "print a script that starts and stops nodes on the machines of a hostfile", ssh);
    command
        ->add_option("hostfile", arguments.hostfile,
                     "hostfile: one machine per line, such as alpha slots=2")
        ->required();
    command->add_option("--head", arguments.head, "address at which the machines reach the head");
    command->add_option("--head-key", arguments.head_key, "public key of the head");
    command->add_option(
        "--node-keys", arguments.node_keys,
        "path of the key file on each machine; {host} stands for the machine's name");
    arguments.remote.add_to(*command);
  }
}

}  // namespace troupe::apps
