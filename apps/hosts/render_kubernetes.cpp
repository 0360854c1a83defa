#include <algorithm>

#include "apps/hosts/render.h"

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
  wait "$submit"
  code=$?
done
# No other head comes after a run that is done, or that cannot begin: the nodes end, too.
case $noticed$code in
  0 | 2 | 3) TROUPE_KEYS=/keys/me.key troupe nodes end -q --head 127.0.0.1:4700 ;;
esac
[ -n "$noticed" ] || kill -TERM "$head" 2>/dev/null
wait "$head"
exit "$code"
)SCRIPT";

std::string words(const std::vector<std::string>& all) {
  std::string text = "[";
  for (const auto& word : all) text += (text.size() > 1 ? ", " : "") + ("\"" + word + "\"");
  return text + "]";
}

std::string labels(const std::string& name, const std::string& role) {
  return "app.kubernetes.io/name: troupe\napp.kubernetes.io/instance: " + name +
         (role.empty() ? "" : "\napp.kubernetes.io/component: " + role) + "\n";
}

/// What a pod runs, the keys that it may read, and whether it keeps what runs leave.
struct Container {
  std::string role;
  std::vector<std::string> command;
  std::vector<std::string> keys;
  bool keeps_runs = false;
};

const std::vector<std::string> keys_of_head = {"head.key", "hosts.allow", "me.key"};
const std::vector<std::string> keys_of_node = {"node.key"};

/// Any user that is not root: the files of a Secret and of a volume belong to its group.
constexpr const char* pod_security = R"(automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
)";

std::string pod_template(const KubernetesOrder& order, const Container& container,
                         const std::string& restart) {
  const JobOrder& job = order.job;
  std::string resources;
  if (job.cores > 0) resources += "cpu: \"" + std::to_string(job.cores) + "\"\n";
  if (!job.memory.empty()) resources += "memory: " + job.memory + "\n";
  std::string text = "metadata:\n  labels:\n" + indented(labels(job.name, container.role), 4);
  text += "spec:\n";
  // A JobSet gives its pods their names, and makes the Service for them.
  if (order.flavour != Flavour::jobset) text += "  subdomain: " + job.name + "\n";
  text += "  restartPolicy: " + restart + "\n";
  text += "  terminationGracePeriodSeconds: " + std::to_string(job.grace.count()) + "\n";
  text += indented(pod_security, 2);
  text += "  containers:\n";
  text += "    - name: troupe\n";
  text += "      image: " + order.image + "\n";
  text += "      workingDir: /srv\n";
  // No shell in between where it can be helped: it would not pass SIGTERM on.
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
  text += R"(      securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
      volumeMounts:
        - {name: shared-memory, mountPath: /dev/shm}
        - {name: keys, mountPath: /keys, readOnly: true}
        - {name: run, mountPath: /run/troupe, readOnly: true}
)";
  if (container.keeps_runs) text += "        - {name: runs, mountPath: /srv/runs}\n";
  text += R"(  volumes:
    - name: shared-memory
      emptyDir: {medium: Memory, sizeLimit: )" +
          order.shared_memory + R"(}
    - name: keys
      secret:
        secretName: )" +
          job.name + "-keys\n        defaultMode: 256  # 0400\n        items:\n";
  for (const auto& key : container.keys)
    text += "          - {key: " + key + ", path: " + key + "}\n";
  text += R"(    - name: run
      configMap: {name: )" +
          job.name + "-run}\n";
  if (container.keeps_runs)
    text += "    - name: runs\n      persistentVolumeClaim: {claimName: " + job.name + "-runs}\n";
  return text;
}

std::string metadata(const std::string& name, const std::string& of) {
  return "metadata:\n  name: " + name + "\n  labels:\n" + indented(labels(of, ""), 4);
}

/// The pods of a run reach each other, on any port: nodes dial each other. Nobody else reaches
/// them.
std::string network_policy(const std::string& name) {
  const std::string these = "matchLabels:\n" + indented(labels(name, ""), 2);
  return "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\n" + metadata(name, name) +
         "spec:\n  podSelector:\n" + indented(these, 4) +
         "  policyTypes: [Ingress]\n  ingress:\n    - from:\n        - podSelector:\n" +
         indented(these, 12);
}

std::string context(const KubernetesOrder& order) {
  const std::string& name = order.job.name;
  const std::string service =
      "apiVersion: v1\nkind: Service\n" + metadata(name, name) +
      "spec:\n  clusterIP: None\n  publishNotReadyAddresses: true\n  selector:\n" +
      indented(labels(name, ""), 4) +
      "  ports:\n    - {name: control, port: 4700}\n    - {name: events, port: 4701}\n---\n";
  return (order.flavour == Flavour::jobset ? "" : service) + "apiVersion: v1\nkind: ConfigMap\n" +
         metadata(name + "-run", name) + "data:\n  lead.sh: |\n" + indented(lead_script, 4) +
         "  run.json: |\n" + indented(order.job.run, 4) +
         "---\napiVersion: v1\nkind: PersistentVolumeClaim\n" + metadata(name + "-runs", name) +
         "spec:\n  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: " +
         order.storage + "}}\n---\n" + network_policy(name);
}

/// Kubernetes replaces a node whose pod it takes away only if that pod ends with another code than
/// 0.
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

/// What a Job does about pods that fail. No other pod mends a command line or a configuration (2
/// and 3). Those that were taken away, and those that saved their run and ask to be run again (75),
/// do not count.
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

/// Jobs of their own for head and nodes: all pods of one Job are alike, and would have all keys.
std::string job_of(const KubernetesOrder& order, const Container& container, int pods) {
  const std::string name = order.job.name + "-" + container.role;
  return "apiVersion: batch/v1\nkind: Job\n" + metadata(name, order.job.name) +
         "spec:\n  completionMode: Indexed\n  completions: " + std::to_string(pods) +
         "\n  parallelism: " + std::to_string(pods) + "\n" + indented(failure_policy, 2) +
         "  template:\n" + indented(pod_template(order, container, "Never"), 4);
}

std::string jobs(const KubernetesOrder& order) {
  const std::string& name = order.job.name;
  const Container head{"head", {"sh", "/run/troupe/lead.sh"}, keys_of_head, true};
  const Container node{"node", node_command(order, name + "-head-0." + name + ":4700"),
                       keys_of_node};
  return job_of(order, head, 1) + "---\n" + job_of(order, node, order.job.nodes);
}

std::string replicated_job(const KubernetesOrder& order, const Container& container, int pods) {
  return "- name: " + container.role + "\n  replicas: 1\n  template:\n    spec:\n" +
         "      completionMode: Indexed\n      completions: " + std::to_string(pods) +
         "\n      parallelism: " + std::to_string(pods) + "\n" + indented(failure_policy, 6) +
         "      template:\n" + indented(pod_template(order, container, "Never"), 8);
}

std::string jobset(const KubernetesOrder& order) {
  const std::string& name = order.job.name;
  const Container head{"head", {"sh", "/run/troupe/lead.sh"}, keys_of_head, true};
  const Container node{"node", node_command(order, name + "-head-0-0." + name + ":4700"),
                       keys_of_node};
  return "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n" + metadata(name, name) +
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
  return "apiVersion: apps/v1\nkind: StatefulSet\n" + metadata(name + "-" + container.role, name) +
         "spec:\n  serviceName: " + name + "\n  replicas: " + std::to_string(pods) +
         "\n  podManagementPolicy: Parallel\n  selector:\n    matchLabels:\n" +
         indented(labels(name, container.role), 6) + "  template:\n" +
         indented(pod_template(order, container, "Always"), 4);
}

std::string stateful_sets(const KubernetesOrder& order) {
  const std::string& name = order.job.name;
  const Container head{
      "head",
      {"troupe", "head", "--listen", "0.0.0.0:4700", "--events", "0.0.0.0:4701", "--interface",
       "$(POD_IP)", "--keys", "/keys/head.key", "--allow", "/keys/hosts.allow",
       // A head that comes back leads its runs on.
       "--state", "/srv/runs/.troupe"},
      keys_of_head,
      true};
  const Container node{"node", node_command(order, name + "-head-0." + name + ":4700"),
                       keys_of_node};
  return stateful_set(order, head, 1) + "---\n" + stateful_set(order, node, order.job.nodes);
}

std::string introduction(const KubernetesOrder& order) {
  const std::string& name = order.job.name;
  std::string text =
      "# The run " + name + " on a head and " + std::to_string(order.job.nodes) +
      " nodes. Keys first, once:\n"
      "#\n"
      "#   troupe keys new head\n"
      "#   troupe keys new node > hosts.allow\n"
      "#   troupe keys new me --roles operator >> hosts.allow\n"
      "#   kubectl create secret generic " +
      name +
      "-keys --from-file=head.key --from-file=node.key --from-file=me.key \\\n"
      "#     --from-file=hosts.allow --from-literal=head.public=\"$(sed -n 's/^public //p' "
      "head.key)\"\n"
      "#\n";
  if (order.flavour == Flavour::statefulset)
    text +=
        "# then kubectl apply -f THIS, and to give it the run, or any other:\n#\n#   kubectl "
        "exec " +
        name +
        "-head-0 -- sh -c 'TROUPE_KEYS=/keys/me.key troupe submit /run/troupe/run.json "
        "--resume'\n";
  else
    text += "# then kubectl apply -f THIS.\n";
  return text;
}

}  // namespace

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
