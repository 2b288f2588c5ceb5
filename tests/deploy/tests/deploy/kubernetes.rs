//! The manifests in `deploy/kubernetes` as the types of Kubernetes see them: no field is unknown, selectors
//! select, ports are those that the program is told, secrets exist, and pods have few rights.

use crate::root;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Container, Namespace, PodSpec, PodTemplateSpec, Secret, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

type Labels = BTreeMap<String, String>;

/// All manifests.
#[derive(Default)]
struct Manifests {
    namespaces: Vec<Namespace>,
    secrets: Vec<Secret>,
    services: Vec<Service>,
    policies: Vec<NetworkPolicy>,
    budgets: Vec<PodDisruptionBudget>,
    workloads: Vec<Workload>,
}

/// Something that makes pods.
struct Workload {
    name: String,
    namespace: String,
    selector: Labels,
    template: PodTemplateSpec,
    claims: Vec<String>,
    /// The service that names its pods.
    service: Option<String>,
}

impl Workload {
    fn pod(&self) -> &PodSpec {
        self.template.spec.as_ref().unwrap()
    }

    fn labels(&self) -> &Labels {
        self.template.metadata.as_ref().unwrap().labels.as_ref().unwrap()
    }

    fn container(&self) -> &Container {
        let [container] = &self.pod().containers[..] else { panic!("{}: one container", self.name) };
        container
    }

    /// The value of a flag that the program is given.
    fn flag(&self, name: &str) -> Option<&str> {
        let head = format!("--{name}=");
        self.container().args.as_ref().unwrap().iter().find_map(|word| word.strip_prefix(&head))
    }

    fn port(&self) -> i32 {
        self.flag("port").unwrap().parse().unwrap()
    }
}

fn folder() -> PathBuf {
    root().join("deploy/kubernetes")
}

fn read() -> Manifests {
    let mut all = Manifests::default();
    let mut files: Vec<_> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        for document in documents {
            all.add(document, &file.display().to_string());
        }
    }
    all
}

impl Manifests {
    fn add(&mut self, document: Value, file: &str) {
        match (document["apiVersion"].as_str().unwrap(), document["kind"].as_str().unwrap()) {
            ("v1", "Namespace") => self.namespaces.push(typed(document, file)),
            ("v1", "Secret") => self.secrets.push(typed(document, file)),
            ("v1", "Service") => self.services.push(typed(document, file)),
            ("networking.k8s.io/v1", "NetworkPolicy") => self.policies.push(typed(document, file)),
            ("policy/v1", "PodDisruptionBudget") => self.budgets.push(typed(document, file)),
            ("apps/v1", "Deployment") => {
                let Deployment { metadata, spec, .. } = typed(document, file);
                let spec = spec.unwrap();
                self.workloads.push(Workload {
                    name: metadata.name.unwrap(),
                    namespace: metadata.namespace.unwrap(),
                    selector: spec.selector.match_labels.unwrap(),
                    template: spec.template,
                    claims: Vec::new(),
                    service: None,
                });
            }
            ("apps/v1", "StatefulSet") => {
                let StatefulSet { metadata, spec, .. } = typed(document, file);
                let spec = spec.unwrap();
                let claims = spec.volume_claim_templates.unwrap_or_default();
                self.workloads.push(Workload {
                    name: metadata.name.unwrap(),
                    namespace: metadata.namespace.unwrap(),
                    selector: spec.selector.match_labels.unwrap(),
                    template: spec.template,
                    claims: claims.into_iter().map(|claim| claim.metadata.name.unwrap()).collect(),
                    service: spec.service_name,
                });
            }
            other => panic!("{file}: {other:?} is not checked"),
        }
    }
}

/// A document as its type. The types ignore fields that they do not know: the way back shows these.
fn typed<T: DeserializeOwned + Serialize>(document: Value, file: &str) -> T {
    let value: T = serde_json::from_value(document.clone()).unwrap_or_else(|bad| panic!("{file}: {bad}"));
    assert_no_field_is_lost(&document, &serde_json::to_value(&value).unwrap(), file);
    value
}

fn assert_no_field_is_lost(written: &Value, known: &Value, place: &str) {
    match (written, known) {
        (Value::Object(written), Value::Object(known)) => {
            for (name, value) in written {
                let place = format!("{place}.{name}");
                let found = known.get(name).unwrap_or_else(|| panic!("{place} is no field of its type"));
                assert_no_field_is_lost(value, found, &place);
            }
        }
        (Value::Array(written), Value::Array(known)) => {
            assert_eq!(written.len(), known.len(), "{place}");
            for (index, (value, found)) in written.iter().zip(known).enumerate() {
                assert_no_field_is_lost(value, found, &format!("{place}[{index}]"));
            }
        }
        (written, known) => assert_eq!(written, known, "{place}"),
    }
}

fn selects(selector: &Labels, labels: &Labels) -> bool {
    selector.iter().all(|(key, value)| labels.get(key) == Some(value))
}

/// Bytes or thousandths.
fn amount(quantity: &Quantity) -> f64 {
    let text = quantity.0.as_str();
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let factor = match unit {
        "" => 1.0,
        "m" => 1e-3,
        "Mi" => f64::from(1 << 20),
        "Gi" => f64::from(1 << 30),
        other => panic!("unit {other}"),
    };
    number.parse::<f64>().unwrap() * factor
}

#[test]
fn a_field_that_a_type_does_not_know_is_found() {
    let text = std::fs::read_to_string(folder().join("head.yaml")).unwrap();
    let misspelt = text.replace("runAsNonRoot", "runAsNoneRoot");
    let documents: Vec<Value> = serde_saphyr::from_multiple(&misspelt).unwrap();
    let outcome = std::panic::catch_unwind(|| typed::<StatefulSet>(documents[1].clone(), "head.yaml"));
    let panic = outcome.err().unwrap();
    assert!(panic.downcast_ref::<String>().unwrap().contains("runAsNoneRoot is no field"), "{panic:?}");
}

#[test]
fn all_lives_in_one_namespace_that_exists_and_restricts_pods() {
    let all = read();
    let [namespace] = &all.namespaces[..] else { panic!("one namespace") };
    let name = namespace.metadata.name.as_deref();
    let metadata = all.services.iter().map(|service| &service.metadata);
    let metadata = metadata.chain(all.secrets.iter().map(|secret| &secret.metadata));
    let metadata = metadata.chain(all.policies.iter().map(|policy| &policy.metadata));
    assert!(metadata.into_iter().all(|metadata| metadata.namespace.as_deref() == name));
    assert_eq!(all.workloads.len(), 2);
    assert!(all.workloads.iter().all(|workload| Some(workload.namespace.as_str()) == name));
    let labels = namespace.metadata.labels.as_ref().unwrap();
    assert_eq!(labels["pod-security.kubernetes.io/enforce"], "restricted");
}

#[test]
fn selectors_select_their_own_pods_alone() {
    let all = read();
    for workload in &all.workloads {
        for other in &all.workloads {
            let is_own = workload.name == other.name;
            assert_eq!(
                selects(&workload.selector, other.labels()),
                is_own,
                "{}, {}",
                workload.name,
                other.name
            );
        }
    }
    for service in &all.services {
        let name = service.metadata.name.as_deref().unwrap();
        let spec = service.spec.as_ref().unwrap();
        let selector = spec.selector.as_ref().unwrap();
        let selected: Vec<_> = all.workloads.iter().filter(|w| selects(selector, w.labels())).collect();
        let [workload] = selected[..] else { panic!("service {name} selects {} workloads", selected.len()) };
        assert_eq!(workload.service.as_deref(), Some(name));
        for port in spec.ports.as_ref().unwrap() {
            let Some(IntOrString::String(target)) = &port.target_port else { panic!("a port by name") };
            let ports = workload.container().ports.as_ref().unwrap();
            let found = ports.iter().find(|found| found.name.as_ref() == Some(target)).unwrap();
            assert_eq!(found.container_port, port.port);
        }
    }
}

#[test]
fn ports_and_addresses_are_those_that_the_program_is_told() {
    let all = read();
    for workload in &all.workloads {
        let ports: Vec<i32> =
            workload.container().ports.as_ref().unwrap().iter().map(|port| port.container_port).collect();
        assert_eq!(ports, [workload.port()], "{}", workload.name);
        assert_eq!(workload.flag("bind"), Some("0.0.0.0"), "{}", workload.name);
    }
    let head = all.workloads.iter().find(|workload| workload.service.is_some()).unwrap();
    // The name of the first pod of a set: pod.service.namespace.svc.
    let service = head.service.as_ref().unwrap();
    let name = format!("{}-0.{service}.{}.svc", head.name, head.namespace);
    assert_eq!(head.flag("host"), Some(name.as_str()));
    let worker = all.workloads.iter().find(|workload| workload.service.is_none()).unwrap();
    assert_eq!(worker.flag("address"), Some(format!("{name}:{}", head.port()).as_str()));
}

#[test]
fn secrets_that_pods_name_exist_with_their_keys() {
    let all = read();
    let mut named = 0;
    for workload in &all.workloads {
        let volumes = workload.pod().volumes.iter().flatten().filter_map(|volume| volume.secret.as_ref());
        for name in volumes.filter_map(|secret| secret.secret_name.clone()) {
            let secret = all.secrets.iter().find(|secret| secret.metadata.name.as_ref() == Some(&name));
            let keys = secret.unwrap().string_data.as_ref().unwrap();
            let file = workload.flag("token-file").unwrap();
            assert!(keys.contains_key(file.rsplit('/').next().unwrap()), "{}: {file}", workload.name);
            named += 1;
        }
        for variable in workload.container().env.iter().flatten() {
            let Some(source) = &variable.value_from else { continue };
            let wanted = source.secret_key_ref.as_ref().unwrap();
            let secret =
                all.secrets.iter().find(|secret| secret.metadata.name.as_ref() == Some(&wanted.name));
            let keys = secret.unwrap().string_data.as_ref().unwrap();
            assert!(keys.contains_key(&wanted.key), "{}: {}", wanted.name, wanted.key);
            named += 1;
        }
        // A token in the arguments would be shown to everybody who may list pods.
        assert!(workload.flag("token").is_none());
    }
    assert_eq!(named, 1);
}

#[test]
fn pods_have_no_more_rights_than_they_need() {
    for workload in &read().workloads {
        let (pod, container) = (workload.pod(), workload.container());
        let name = &workload.name;
        assert_eq!(pod.automount_service_account_token, Some(false), "{name}");
        assert!(pod.host_network.is_none() && pod.host_pid.is_none() && pod.host_ipc.is_none(), "{name}");
        let of_pod = pod.security_context.as_ref().unwrap();
        assert_eq!(of_pod.run_as_non_root, Some(true), "{name}");
        assert!(0 < of_pod.run_as_user.unwrap(), "{name}");
        assert_eq!(of_pod.seccomp_profile.as_ref().unwrap().type_, "RuntimeDefault", "{name}");
        let own = container.security_context.as_ref().unwrap();
        assert_eq!(own.run_as_non_root, Some(true), "{name}");
        assert_eq!(own.read_only_root_filesystem, Some(true), "{name}");
        assert_eq!(own.allow_privilege_escalation, Some(false), "{name}");
        assert!(own.privileged.is_none(), "{name}");
        let capabilities = own.capabilities.as_ref().unwrap();
        assert_eq!(capabilities.drop.as_deref(), Some(&["ALL".to_owned()][..]), "{name}");
        assert!(capabilities.add.is_none(), "{name}");
    }
}

#[test]
fn what_the_program_writes_is_on_a_volume() {
    for workload in &read().workloads {
        let volumes = workload.pod().volumes.iter().flatten().map(|volume| volume.name.clone());
        let volumes: Vec<String> = volumes.chain(workload.claims.iter().cloned()).collect();
        let mounts = workload.container().volume_mounts.as_ref().unwrap();
        assert!(mounts.iter().all(|mount| volumes.contains(&mount.name)), "{}", workload.name);
        assert_eq!(mounts.len(), volumes.len(), "{}: every volume is mounted", workload.name);
        let is_on_volume =
            |path: &str| mounts.iter().any(|mount| Path::new(path).starts_with(&mount.mount_path));
        for flag in ["socket", "identity-dir", "spill-dirs", "state"] {
            assert!(workload.flag(flag).is_none_or(is_on_volume), "{}: --{flag}", workload.name);
        }
        assert!(is_on_volume("/tmp/x") && is_on_volume("/dev/shm/x"), "{}", workload.name);
    }
}

#[test]
fn limits_are_at_least_what_is_requested_and_hold_the_cpus_that_are_offered() {
    for workload in &read().workloads {
        let resources = workload.container().resources.as_ref().unwrap();
        let (requests, limits) = (resources.requests.as_ref().unwrap(), resources.limits.as_ref().unwrap());
        for kind in ["cpu", "memory"] {
            assert!(amount(&requests[kind]) <= amount(&limits[kind]), "{}: {kind}", workload.name);
        }
        // Memory that was not requested may be taken back, and the node with it.
        assert_eq!(requests["memory"], limits["memory"], "{}", workload.name);
        // The head holds the key of the authority, and runs nothing.
        let offered = workload.flag("num-cpus").map(|cpus| cpus.parse::<f64>().unwrap());
        assert_eq!(offered.is_some(), workload.name != "tharsis-head", "{}", workload.name);
        assert!(offered.unwrap_or(0.0) <= amount(&limits["cpu"]), "{}", workload.name);
    }
}

#[test]
fn probes_ask_the_node_at_its_own_socket() {
    for workload in &read().workloads {
        let container = workload.container();
        for probe in [&container.startup_probe, &container.readiness_probe, &container.liveness_probe] {
            let command = probe.as_ref().unwrap().exec.as_ref().unwrap().command.as_ref().unwrap();
            let socket = format!("--socket={}", workload.flag("socket").unwrap());
            assert_eq!(command[1..], ["status".to_owned(), socket], "{}", workload.name);
        }
        let start = container.startup_probe.as_ref().unwrap();
        let wait_s = start.period_seconds.unwrap() * start.failure_threshold.unwrap();
        assert!(30 <= wait_s, "{}: a node may wait for its head", workload.name);
    }
}

#[test]
fn a_node_drains_within_the_grace_of_its_pod_and_has_time_to_answer() {
    for workload in &read().workloads {
        let grace_s = workload.pod().termination_grace_period_seconds.unwrap();
        let drain = workload.flag("drain-timeout").and_then(|text| text.strip_suffix('s')).unwrap();
        let drain_s: i64 = drain.parse().unwrap();
        // Submitted programs have two seconds after it, and one to be killed.
        assert!((20..=grace_s - 4).contains(&drain_s), "{}: {drain_s} of {grace_s}", workload.name);
        let container = workload.container();
        for probe in [&container.startup_probe, &container.readiness_probe, &container.liveness_probe] {
            assert!(5 <= probe.as_ref().unwrap().timeout_seconds.unwrap(), "{}", workload.name);
        }
        let alive = container.liveness_probe.as_ref().unwrap();
        let patience_s = alive.period_seconds.unwrap() * alive.failure_threshold.unwrap();
        assert!(180 <= patience_s, "{}: a busy node would lose its objects", workload.name);
        let of_pod = workload.pod().security_context.as_ref().unwrap();
        assert_eq!(of_pod.fs_group_change_policy.as_deref(), Some("OnRootMismatch"), "{}", workload.name);
    }
}

#[test]
fn workers_are_spread_over_machines_and_leave_one_at_a_time() {
    let all = read();
    let worker = all.workloads.iter().find(|workload| workload.service.is_none()).unwrap();
    let [spread] = &worker.pod().topology_spread_constraints.as_ref().unwrap()[..] else { panic!("one") };
    assert_eq!(spread.topology_key, "kubernetes.io/hostname");
    let spread = spread.label_selector.as_ref().unwrap().match_labels.as_ref().unwrap();
    let [budget] = &all.budgets[..] else { panic!("one budget") };
    let spec = budget.spec.as_ref().unwrap();
    assert_eq!(spec.max_unavailable, Some(IntOrString::Int(1)));
    assert_eq!(budget.metadata.namespace.as_ref(), Some(&worker.namespace));
    let held = spec.selector.as_ref().unwrap().match_labels.as_ref().unwrap();
    for workload in &all.workloads {
        let is_worker = workload.name == worker.name;
        assert_eq!(
            (selects(spread, workload.labels()), selects(held, workload.labels())),
            (is_worker, is_worker)
        );
    }
}

#[test]
fn only_members_and_drivers_reach_the_ports_of_members() {
    let all = read();
    let selects_all = |policy: &NetworkPolicy| {
        let selector = policy.spec.as_ref().unwrap().pod_selector.as_ref().unwrap();
        let labels = selector.match_labels.as_ref().unwrap();
        all.workloads.iter().all(|workload| selects(labels, workload.labels()))
    };
    let [members] = all.policies.iter().filter(|policy| selects_all(policy)).collect::<Vec<_>>()[..] else {
        panic!("one policy for all members")
    };
    let spec = members.spec.as_ref().unwrap();
    assert_eq!(spec.policy_types.as_deref(), Some(&["Ingress".to_owned(), "Egress".to_owned()][..]));
    let [ingress] = &spec.ingress.as_ref().unwrap()[..] else { panic!("one rule") };
    let mut ports: Vec<i32> = ingress.ports.as_ref().unwrap().iter().map(number_of).collect();
    ports.sort_unstable();
    let mut wanted: Vec<i32> = all.workloads.iter().map(Workload::port).collect();
    wanted.sort_unstable();
    assert_eq!(ports, wanted);
    // No policy lets in anybody but pods of this namespace with the common label.
    for policy in &all.policies {
        for rule in policy.spec.as_ref().unwrap().ingress.as_ref().unwrap() {
            for from in rule.from.as_ref().unwrap() {
                assert!(from.namespace_selector.is_none() && from.ip_block.is_none());
                let labels = from.pod_selector.as_ref().unwrap().match_labels.as_ref().unwrap();
                assert_eq!(labels["app.kubernetes.io/name"], "tharsis");
            }
        }
    }
    // Members reach each other at any port, and names.
    let egress = spec.egress.as_ref().unwrap();
    let to_members = egress.iter().any(|rule| {
        let mut peers =
            rule.to.iter().flatten().filter_map(|peer| peer.pod_selector.as_ref()?.match_labels.as_ref());
        rule.ports.is_none() && peers.any(|labels| all.workloads.iter().all(|w| selects(labels, w.labels())))
    });
    let to_names = egress.iter().any(|rule| rule.ports.iter().flatten().any(|port| number_of(port) == 53));
    assert!(to_members && to_names);
}

fn number_of(port: &k8s_openapi::api::networking::v1::NetworkPolicyPort) -> i32 {
    match port.port {
        Some(IntOrString::Int(number)) => number,
        _ => panic!("a port by number"),
    }
}
