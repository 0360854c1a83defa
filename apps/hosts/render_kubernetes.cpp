#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/hosts/render.h"
#include "core/json.h"

namespace troupe::apps {
namespace {

using Flavour = KubernetesOrder::Flavour;

constexpr const char* lead_script = R"SCRIPT(# Leads the run, and ends with it.
troupe head --listen 0.0.0.0:4700 --events 0.0.0.0:4701 --interface "$POD_IP" \
  --keys /keys/head.key --allow /keys/hosts.allow --allow-path / --state /srv/runs/.troupe --only-submitted &
head=$!
noticed=
# Before Kubernetes takes the pod away: the head finishes the step and saves.
trap 'noticed=yes; kill -TERM "$head"' TERM
TROUPE_KEYS=/keys/me.key troupe submit /run/troupe/run.json --wait --resume --head 127.0.0.1:4700 &
submit=$!
code=0
# A signal ends a wait early.
while kill -0 "$submit" 2>/dev/null; do
  if [ -z "$noticed" ]; then
    wait "$submit"
    code=$?
  elif kill -0 "$head" 2>/dev/null; then
    wait "$head"
  else
    # A head may end before it has told how the run ended. This would wait for the head.
    kill -TERM "$submit" 2>/dev/null
    wait "$submit"
  fi
done
# No other head comes after a run that is done, or that cannot begin: the nodes end, too.
case $noticed$code in
  0 | 2 | 3) TROUPE_KEYS=/keys/me.key troupe nodes end -q --head 127.0.0.1:4700 ;;
esac
[ -n "$noticed" ] || kill -TERM "$head" 2>/dev/null
wait "$head"
# Saved: the next pod goes on.
[ -z "$noticed" ] || exit 75
exit "$code"
)SCRIPT";

/// Asks the head's page whether the head answers. The page listens on the pod's loopback address,
/// which the kubelet cannot reach by HTTP.
constexpr const char* health_script = R"SCRIPT(exec 3<>/dev/tcp/127.0.0.1/4702 || exit
printf 'GET /healthz HTTP/1.0\r\n\r\n' >&3
read -r _ code _ <&3
[ "$code" = 200 ]
)SCRIPT";

/// A head may need minutes to read its state. One that does not answer for a minute is restarted.
constexpr const char* probes = R"(startupProbe:
  exec: {command: [bash, /run/troupe/healthz.sh]}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 120
livenessProbe:
  exec: {command: [bash, /run/troupe/healthz.sh]}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
)";

/// Quotes a text for YAML, which reads JSON's strings.
std::string quoted(const std::string& text) { return to_json(Value(text)); }

std::string words(const std::vector<std::string>& all) {
  std::string text = "[";
  for (const auto& word : all) text += (text.size() > 1 ? ", " : "") + quoted(word);
  return text + "]";
}

std::string labels(const std::string& name, const std::string& role) {
  return "app.kubernetes.io/name: troupe\napp.kubernetes.io/instance: " + name +
         (role.empty() ? "" : "\napp.kubernetes.io/component: " + role) + "\n";
}

/// The command of a role's pods. The head's pod keeps the runs on a volume and can read the keys of
/// the head and its user. The nodes' pods have the GPUs and can read the nodes' key.
struct Container {
  enum class Role : std::uint8_t { head, node };
  Role role;
  std::vector<std::string> command;

  bool is_head() const { return role == Role::head; }
  std::string name() const { return is_head() ? "head" : "node"; }
  std::vector<std::string> keys() const {
    if (is_head()) return {"head.key", "hosts.allow", "me.key"};
    return {"node.key"};
  }
};
using Role = Container::Role;

/// Runs as any user except root: the files of a Secret and of a volume belong to the pod's group.
constexpr const char* pod_security = R"(automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
)";

std::string name_of(Toleration::Effect effect) {
  using enum Toleration::Effect;
  switch (effect) {
    case every:
      return "";
    case no_schedule:
      return "NoSchedule";
    case prefer_no_schedule:
      return "PreferNoSchedule";
    case no_execute:
      return "NoExecute";
  }
  return "";
}

std::string to_yaml(const Toleration& toleration) {
  std::string text = "{key: " + quoted(toleration.key) + ", operator: ";
  text += toleration.value ? "Equal, value: " + quoted(*toleration.value) : std::string("Exists");
  if (const auto effect = name_of(toleration.effect); !effect.empty())
    text += ", effect: " + effect;
  return text + "}";
}

/// Renders which machines a pod may use, and how urgent it is.
std::string placement(const KubernetesOrder& order) {
  std::string text;
  if (!order.priority_class.empty())
    text += "priorityClassName: " + quoted(order.priority_class) + "\n";
  if (!order.node_labels.empty()) text += "nodeSelector:\n";
  for (const auto& [key, value] : order.node_labels)
    text += "  " + quoted(key) + ": " + quoted(value) + "\n";
  if (!order.tolerations.empty()) text += "tolerations:\n";
  for (const auto& toleration : order.tolerations) text += "  - " + to_yaml(toleration) + "\n";
  return text;
}

std::string pod_template(const KubernetesOrder& order, const Container& container,
                         const std::string& restart) {
  const JobOrder& job = order.job;
  std::string resources;
  if (job.cores > 0) resources += "cpu: " + quoted(std::to_string(job.cores)) + "\n";
  if (!job.memory.empty()) resources += "memory: " + quoted(job.memory) + "\n";
  if (job.gpus > 0 && !container.is_head())
    resources += "nvidia.com/gpu: " + quoted(std::to_string(job.gpus)) + "\n";
  std::string text = "metadata:\n  labels:\n" + indented(labels(job.name, container.name()), 4);
  text += "spec:\n";
  // A JobSet sets the subdomain and makes the Service itself.
  if (order.flavour != Flavour::jobset) text += "  subdomain: " + job.name + "\n";
  text += "  restartPolicy: " + restart + "\n";
  text += "  terminationGracePeriodSeconds: " + std::to_string(job.grace.count()) + "\n";
  text += indented(placement(order), 2);
  text += indented(pod_security, 2);
  text += "  containers:\n";
  text += "    - name: troupe\n";
  text += "      image: " + quoted(order.image) + "\n";
  text += "      workingDir: /srv\n";
  // Runs without a shell where possible, since a shell would not pass SIGTERM on.
  text += "      command: " + words(container.command) + "\n";
  text += R"(      env:
        - name: POD_IP
          valueFrom: {fieldRef: {fieldPath: status.podIP}}
        - name: POD_NAME
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        - name: TROUPE_HEAD_KEY
          valueFrom: {secretKeyRef: {name: )" +
          job.name + R"(-keys, key: head.public}}
)";
  if (!resources.empty())
    text += "      resources:\n        requests:\n" + indented(resources, 10) +
            "        limits:\n" + indented(resources, 10);
  if (container.is_head()) text += indented(probes, 6);
  text += R"(      securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
      volumeMounts:
        - {name: shared-memory, mountPath: /dev/shm}
        - {name: keys, mountPath: /keys, readOnly: true}
        - {name: run, mountPath: /run/troupe, readOnly: true}
)";
  if (container.is_head()) text += "        - {name: runs, mountPath: /srv/runs}\n";
  text += R"(  volumes:
    - name: shared-memory
      emptyDir: {medium: Memory, sizeLimit: )" +
          quoted(order.shared_memory) + R"(}
    - name: keys
      secret:
        secretName: )" +
          job.name + "-keys\n        defaultMode: 256  # 0400\n        items:\n";
  for (const auto& key : container.keys())
    text += "          - {key: " + key + ", path: " + key + "}\n";
  text += R"(    - name: run
      configMap: {name: )" +
          job.name + "-run}\n";
  if (container.is_head())
    text += "    - name: runs\n      persistentVolumeClaim: {claimName: " + job.name + "-runs}\n";
  return text;
}

/// Renders the metadata of an object, whose name is that of the run and an ending.
std::string metadata(const KubernetesOrder& order, const std::string& ending) {
  const std::string& run = order.job.name;
  return "metadata:\n  name: " + run + ending + "\n" +
         (order.name_space.empty() ? "" : "  namespace: " + quoted(order.name_space) + "\n") +
         "  labels:\n" + indented(labels(run, ""), 4);
}

/// Renders a policy that lets the pods of a run reach each other on any port, since nodes dial each
/// other. Nobody else can reach them.
std::string network_policy(const KubernetesOrder& order) {
  const std::string these = "matchLabels:\n" + indented(labels(order.job.name, ""), 2);
  return "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\n" + metadata(order, "") +
         "spec:\n  podSelector:\n" + indented(these, 4) +
         "  policyTypes: [Ingress]\n  ingress:\n    - from:\n        - podSelector:\n" +
         indented(these, 12);
}

/// Renders how many nodes Kubernetes may take away at once by its own choice, as when it drains
/// machines. The pods of a Job have no number of replicas that it could ask for, so for them the
/// budget counts the nodes that must stay.
std::string disruption_budget(const KubernetesOrder& order) {
  const bool is_set = order.flavour == Flavour::statefulset;
  const int stay = std::max(order.job.nodes - order.evicted, 0);
  return "apiVersion: policy/v1\nkind: PodDisruptionBudget\n" + metadata(order, "-node") +
         "spec:\n  " +
         (is_set ? "maxUnavailable: " + std::to_string(order.evicted)
                 : "minAvailable: " + std::to_string(stay)) +
         "\n  selector:\n    matchLabels:\n" + indented(labels(order.job.name, "node"), 6);
}

std::string context(const KubernetesOrder& order) {
  const std::string& name = order.job.name;
  const std::string service =
      "apiVersion: v1\nkind: Service\n" + metadata(order, "") +
      "spec:\n  clusterIP: None\n  publishNotReadyAddresses: true\n  selector:\n" +
      indented(labels(name, ""), 4) +
      "  ports:\n    - {name: control, port: 4700}\n    - {name: events, port: 4701}\n---\n";
  return (order.flavour == Flavour::jobset ? "" : service) + "apiVersion: v1\nkind: ConfigMap\n" +
         metadata(order, "-run") + "data:\n  lead.sh: |\n" + indented(lead_script, 4) +
         "  healthz.sh: |\n" + indented(health_script, 4) + "  run.json: |\n" +
         indented(order.job.run, 4) + "---\napiVersion: v1\nkind: PersistentVolumeClaim\n" +
         metadata(order, "-runs") +
         "spec:\n  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: " +
         quoted(order.storage) + "}}\n---\n" + network_policy(order) + "---\n" +
         disruption_budget(order);
}

/// Renders a node's command. Kubernetes replaces a node whose pod it evicts only if the pod's exit
/// code is not 0.
std::vector<std::string> node_command(const KubernetesOrder& order, const std::string& head) {
  std::vector<std::string> words{"troupe",
                                 "node",
                                 "--head",
                                 head,
                                 "--interface",
                                 "$(POD_IP)",
                                 "--name",
                                 "$(POD_NAME)",
                                 "--keys",
                                 "/keys/node.key",
                                 "--exit-code-on-signal",
                                 "75"};
  if (order.job.cores > 0) words.insert(words.end(), {"--cores", std::to_string(order.job.cores)});
  return words;
}

/// The policy for pods that fail. A bad command line or configuration (2 and 3) fails in any pod,
/// so it fails the Job. Evicted pods, and pods that saved their run and ask for a restart (75), do
/// not count.
constexpr const char* failure_policy = R"(backoffLimit: 20
podFailurePolicy:
  rules:
    - action: FailJob
      onExitCodes: {operator: In, values: [2, 3]}
    - action: Ignore
      onPodConditions: [{type: DisruptionTarget, status: "True"}]
    - action: Ignore
      onExitCodes: {operator: In, values: [75]}
)";

/// Renders a Job. Head and nodes have separate Jobs, since all pods of one Job are alike and would
/// have all keys.
std::string job_of(const KubernetesOrder& order, const Container& container, int pods) {
  return "apiVersion: batch/v1\nkind: Job\n" + metadata(order, "-" + container.name()) +
         "spec:\n  completionMode: Indexed\n  completions: " + std::to_string(pods) +
         "\n  parallelism: " + std::to_string(pods) + "\n" + indented(failure_policy, 2) +
         "  template:\n" + indented(pod_template(order, container, "Never"), 4);
}

std::string jobs(const KubernetesOrder& order) {
  const std::string& name = order.job.name;
  const Container head{Role::head, {"sh", "/run/troupe/lead.sh"}};
  const Container node{Role::node, node_command(order, name + "-head-0." + name + ":4700")};
  return job_of(order, head, 1) + "---\n" + job_of(order, node, order.job.nodes);
}

std::string replicated_job(const KubernetesOrder& order, const Container& container, int pods) {
  return "- name: " + container.name() + "\n  replicas: 1\n  template:\n    spec:\n" +
         "      completionMode: Indexed\n      completions: " + std::to_string(pods) +
         "\n      parallelism: " + std::to_string(pods) + "\n" + indented(failure_policy, 6) +
         "      template:\n" + indented(pod_template(order, container, "Never"), 8);
}

std::string jobset(const KubernetesOrder& order) {
  const std::string& name = order.job.name;
  const Container head{Role::head, {"sh", "/run/troupe/lead.sh"}};
  const Container node{Role::node, node_command(order, name + "-head-0-0." + name + ":4700")};
  return "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n" + metadata(order, "") +
         "spec:\n  network: {enableDNSHostnames: true, subdomain: " + name +
         "}\n  # It ends with its head, whichever nodes are left.\n"
         "  successPolicy: {operator: All, targetReplicatedJobs: [head]}\n"
         "  failurePolicy:\n    maxRestarts: 20\n    rules:\n"
         "      - {action: FailJobSet, onJobFailureReasons: [PodFailurePolicy]}\n"
         "  replicatedJobs:\n" +
         indented(replicated_job(order, head, 1), 4) +
         indented(replicated_job(order, node, order.job.nodes), 4);
}

std::string stateful_set(const KubernetesOrder& order, const Container& container, int pods) {
  const std::string& name = order.job.name;
  return "apiVersion: apps/v1\nkind: StatefulSet\n" + metadata(order, "-" + container.name()) +
         "spec:\n  serviceName: " + name + "\n  replicas: " + std::to_string(pods) +
         "\n  podManagementPolicy: Parallel\n  selector:\n    matchLabels:\n" +
         indented(labels(name, container.name()), 6) + "  template:\n" +
         indented(pod_template(order, container, "Always"), 4);
}

std::string stateful_sets(const KubernetesOrder& order) {
  const std::string& name = order.job.name;
  const Container head{
      Role::head,
      {"troupe", "head", "--listen", "0.0.0.0:4700", "--events", "0.0.0.0:4701", "--interface",
       "$(POD_IP)", "--keys", "/keys/head.key", "--allow", "/keys/hosts.allow",
       // A restarted head continues its runs.
       "--state", "/srv/runs/.troupe"}};
  const Container node{Role::node, node_command(order, name + "-head-0." + name + ":4700")};
  return stateful_set(order, head, 1) + "---\n" + stateful_set(order, node, order.job.nodes);
}

std::string introduction(const KubernetesOrder& order) {
  const std::string& name = order.job.name;
  const std::string space = order.name_space.empty() ? "" : " -n " + order.name_space;
  std::string text =
      "# The run " + name + " on a head and " + std::to_string(order.job.nodes) +
      " nodes. Keys first, once:\n"
      "#\n"
      "#   troupe keys new head\n"
      "#   troupe keys new node > hosts.allow\n"
      "#   troupe keys new me --roles operator >> hosts.allow\n"
      "#   kubectl create secret generic" +
      space + " " + name +
      "-keys --from-file=head.key --from-file=node.key --from-file=me.key \\\n"
      "#     --from-file=hosts.allow --from-literal=head.public=\"$(sed -n 's/^public //p' "
      "head.key)\"\n"
      "#\n";
  if (order.flavour == Flavour::statefulset)
    text +=
        "# then kubectl apply -f THIS, and to give it the run, or any other:\n#\n#   kubectl "
        "exec" +
        space + " " + name +
        "-head-0 -- sh -c 'TROUPE_KEYS=/keys/me.key troupe submit /run/troupe/run.json "
        "--resume'\n";
  else
    text += "# then kubectl apply -f THIS.\n";
  return text;
}

}  // namespace

Result<Toleration> Toleration::parse(const std::string& text) {
  const auto colon = text.rfind(':');
  const std::string taint = text.substr(0, colon);
  const auto equals = taint.find('=');
  Toleration toleration;
  toleration.key = taint.substr(0, equals);
  if (equals != taint.npos) toleration.value = taint.substr(equals + 1);
  const Error wrong{"found '" + text +
                    "'; wanted KEY[=VALUE][:EFFECT] with an effect of NoSchedule, "
                    "PreferNoSchedule or NoExecute, such as nvidia.com/gpu:NoSchedule"};
  if (toleration.key.empty()) return wrong;
  if (colon == text.npos) return toleration;
  for (const auto effect : {Effect::no_schedule, Effect::prefer_no_schedule, Effect::no_execute})
    if (text.substr(colon + 1) == name_of(effect)) {
      toleration.effect = effect;
      return toleration;
    }
  return wrong;
}

std::string indented(const std::string& text, int blanks) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    if (end > at) out += std::string(static_cast<std::size_t>(blanks), ' ');
    out += text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return out;
}

std::string render_kubernetes(const KubernetesOrder& order) {
  const auto workload = [&] {
    switch (order.flavour) {
      case Flavour::job:
        return jobs(order);
      case Flavour::jobset:
        return jobset(order);
      case Flavour::statefulset:
        return stateful_sets(order);
    }
    return std::string();
  };
  return introduction(order) + "---\n" + context(order) + "---\n" + workload();
}

}  // namespace troupe::apps
