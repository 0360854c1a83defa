"""Checks that a file is a valid Kubernetes manifest of a run: check_kubernetes.py FLAVOUR FILE. Prints what is wrong, and exits with 1."""

import json
import sys
from typing import Any

import yaml

KINDS = {
    "job": ["Service", "ConfigMap", "PersistentVolumeClaim", "NetworkPolicy", "PodDisruptionBudget", "Job", "Job"],
    "jobset": ["ConfigMap", "PersistentVolumeClaim", "NetworkPolicy", "PodDisruptionBudget", "JobSet"],
    "statefulset": ["Service", "ConfigMap", "PersistentVolumeClaim", "NetworkPolicy", "PodDisruptionBudget", "StatefulSet", "StatefulSet"],
}
VERSIONS = {
    "Service": "v1",
    "ConfigMap": "v1",
    "PersistentVolumeClaim": "v1",
    "NetworkPolicy": "networking.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1",
    "Job": "batch/v1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "StatefulSet": "apps/v1",
}


def want(is_so: bool, what: str) -> None:
    if not is_so:
        sys.exit(f"wanted: {what}")


def pods(thing: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the pod templates of a workload."""
    spec = thing["spec"]
    if thing["kind"] == "JobSet":
        return [one["template"]["spec"]["template"] for one in spec["replicatedJobs"]]
    return [spec["template"]]


def check_place(spec: dict[str, Any]) -> None:
    """Checks which machines a pod may use."""
    labels = spec.get("nodeSelector", {})
    want(all(isinstance(word, str) for pair in labels.items() for word in pair), "labels of machines as texts")
    for toleration in spec.get("tolerations", []):
        want(set(toleration) <= {"key", "operator", "value", "effect"}, "a toleration")
        want(("value" in toleration) == (toleration["operator"] == "Equal"), "a value if it must be equal")
        want(toleration["operator"] in ("Equal", "Exists"), "an operator")
        want(toleration.get("effect", "NoSchedule") in ("NoSchedule", "PreferNoSchedule", "NoExecute"), "an effect")
    want(isinstance(spec.get("priorityClassName", ""), str), "the name of a PriorityClass")


def check_pod(template: dict[str, Any], things: dict[str, dict[str, Any]]) -> None:
    spec = template["spec"]
    want(spec["terminationGracePeriodSeconds"] >= 30, "time to save the run")
    if "Service" in things:
        want(spec["subdomain"] in things["Service"], "a Service for the pods' names")
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    want(volumes["shared-memory"]["emptyDir"]["medium"] == "Memory", "shared memory in memory")
    want(volumes["keys"]["secret"]["defaultMode"] == 0o400, "keys that their owner alone may read")
    want(volumes["run"]["configMap"]["name"] in things["ConfigMap"], "the run's ConfigMap")
    keys = [item["key"] for item in volumes["keys"]["secret"]["items"]]
    is_head = template["metadata"]["labels"]["app.kubernetes.io/component"] == "head"
    want(keys == (["head.key", "hosts.allow", "me.key"] if is_head else ["node.key"]), "its own keys for each pod, and no other")
    want(("runs" in volumes) == is_head, "runs/ in the pod of the head alone")
    if "runs" in volumes:
        claim = volumes["runs"]["persistentVolumeClaim"]["claimName"]
        want(claim in things["PersistentVolumeClaim"], "the claim for runs/")
    (container,) = spec["containers"]
    want(bool(container["image"]), "an image")
    # The requirements of Pod Security's `restricted` level, and a group that can read the keys.
    pod, rights = spec["securityContext"], container["securityContext"]
    want(pod["runAsNonRoot"] and pod["runAsUser"] > 0 and pod["fsGroup"] > 0, "a user that is not root")
    want(pod["seccompProfile"] == {"type": "RuntimeDefault"}, "the seccomp profile of the runtime")
    want(rights == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}, "no rights beyond a user's")
    want(spec["automountServiceAccountToken"] is False, "no token of the cluster's API")
    if is_head:
        for name in ("startupProbe", "livenessProbe"):
            probe = container[name]
            want(probe["exec"]["command"] == ["bash", "/run/troupe/healthz.sh"], "a probe that asks the head's page")
            want(probe["timeoutSeconds"] <= probe["periodSeconds"], "a probe that ends before the next one")
    else:
        words = container["command"]
        want(words[words.index("--exit-code-on-signal") + 1] == "75", "a node that is replaced when its pod is taken away")
        cores = container.get("resources", {}).get("limits", {}).get("cpu")
        want(cores is None or words[words.index("--cores") + 1] == cores, "as many cores as its pod has")
    want(all(isinstance(word, str) for word in container["command"]), "a command of words")
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    want(set(mounts) == set(volumes), "each volume mounted, and each mount a volume")
    want(mounts["shared-memory"] == "/dev/shm", "shared memory where programs look for it")
    names = [variable["name"] for variable in container["env"]]
    want("TROUPE_HEAD_KEY" in names and "POD_IP" in names, "the head's key and the pod's address")
    resources = container.get("resources", {"requests": {}, "limits": {}})
    want(resources["requests"] == resources["limits"], "requests that are the limits, as GPUs need it")
    want(set(resources["limits"]) <= {"cpu", "memory"} | (set() if is_head else {"nvidia.com/gpu"}), "resources, and GPUs for nodes alone")
    want(all(isinstance(amount, str) for amount in resources["limits"].values()), "amounts as texts")
    check_place(spec)


def check_workload(thing: dict[str, Any], things: dict[str, dict[str, Any]]) -> None:
    for template in pods(thing):
        check_pod(template, things)
        restart = template["spec"]["restartPolicy"]
        want(restart == ("Always" if thing["kind"] == "StatefulSet" else "Never"), f"another restartPolicy than {restart}")
    spec = thing["spec"]
    if thing["kind"] == "StatefulSet":
        want(spec["serviceName"] in things["Service"], "the Service of the StatefulSet")
        labels = spec["template"]["metadata"]["labels"]
        want(spec["selector"]["matchLabels"].items() <= labels.items(), "a selector that finds its pods")
        want(spec["podManagementPolicy"] == "Parallel", "pods that do not wait for each other")
    if thing["kind"] == "Job":
        want(spec["completionMode"] == "Indexed" and spec["completions"] == spec["parallelism"], "all pods at once")
    if thing["kind"] == "JobSet":
        names = [one["name"] for one in spec["replicatedJobs"]]
        want(spec["successPolicy"]["targetReplicatedJobs"] == ["head"] and "head" in names, "an end with its head")
        rules = spec["failurePolicy"]["rules"]
        want({"action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]} in rules, "no restart of what cannot begin")
    jobs = [spec] if thing["kind"] == "Job" else [one["template"]["spec"] for one in spec.get("replicatedJobs", [])]
    for job in jobs:
        first = job["podFailurePolicy"]["rules"][0]
        want(first == {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [2, 3]}}, "an end of what cannot begin, first")
        ignored = [rule for rule in job["podFailurePolicy"]["rules"] if rule["action"] == "Ignore"]
        want(any(75 in rule.get("onExitCodes", {}).get("values", []) for rule in ignored), "75 is no failure")
        want(any("onPodConditions" in rule for rule in ignored), "preemption is no failure")


def check_budget(budget: dict[str, Any], templates: list[dict[str, Any]], flavour: str) -> None:
    """Checks that voluntary evictions leave most nodes, and that the budget counts nodes alone."""
    spec = budget["spec"]
    limits = set(spec) - {"selector"}
    # Kubernetes accepts only a whole minAvailable for pods of a Job, which has no scale.
    want(limits == {"maxUnavailable" if flavour == "statefulset" else "minAvailable"}, "one limit that the pods' controller allows")
    want(all(type(spec[limit]) is int and spec[limit] >= 0 for limit in limits), "a whole number")
    want(spec.get("maxUnavailable", 1) > 0, "evictions that can go on")
    chosen = spec["selector"]["matchLabels"]
    found = [template for template in templates if chosen.items() <= template["metadata"]["labels"].items()]
    roles = [template["metadata"]["labels"]["app.kubernetes.io/component"] for template in found]
    want(roles == ["node"], "a budget of the nodes alone")


def main() -> None:
    flavour, path = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        all_things = [thing for thing in yaml.safe_load_all(file) if thing is not None]
    want([thing["kind"] for thing in all_things] == KINDS[flavour], f"{KINDS[flavour]}")
    things: dict[str, dict[str, Any]] = {}
    for thing in all_things:
        want(thing["apiVersion"] == VERSIONS[thing["kind"]], f"{VERSIONS[thing['kind']]} of {thing['kind']}")
        things.setdefault(thing["kind"], {})[thing["metadata"]["name"]] = thing
    want(len({thing["metadata"].get("namespace") for thing in all_things}) == 1, "one namespace for all")
    (config_map,) = things["ConfigMap"].values()
    want(json.loads(config_map["data"]["run.json"])["name"] != "", "the run")
    want(config_map["data"]["lead.sh"].count("troupe head") == 1, "the script that leads")
    want("GET /healthz" in config_map["data"]["healthz.sh"], "the script that asks whether the head answers")
    (policy,) = things["NetworkPolicy"].values()
    want(policy["spec"]["policyTypes"] == ["Ingress"], "a policy of who reaches the pods")
    want(policy["spec"]["ingress"] == [{"from": [{"podSelector": policy["spec"]["podSelector"]}]}], "the run's pods alone")
    workloads = [thing for thing in all_things if thing["kind"] in ("Job", "JobSet", "StatefulSet")]
    for thing in workloads:
        check_workload(thing, things)
    for template in (template for thing in workloads for template in pods(thing)):
        chosen = policy["spec"]["podSelector"]["matchLabels"]
        want(chosen.items() <= template["metadata"]["labels"].items(), "a policy for all pods")
    (budget,) = things["PodDisruptionBudget"].values()
    check_budget(budget, [template for thing in workloads for template in pods(thing)], flavour)
    for service in things.get("Service", {}).values():
        spec = service["spec"]
        want(spec["clusterIP"] == "None" and spec["publishNotReadyAddresses"], "a headless Service")
        for template in (template for thing in workloads for template in pods(thing)):
            labels = template["metadata"]["labels"]
            want(spec["selector"].items() <= labels.items(), "a Service that finds the pods")


main()
