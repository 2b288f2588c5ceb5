//! Being a member: joining, staying, seeing who else is there, leaving.
//!
//! Only the control store says who is dead. A member whose stream to another one broke has it look for that
//! node at once. While it cannot be reached nobody is dead: running work goes on, and
//! the membership is read again when it is back. A node that hears that it has been declared dead ends
//! itself, because others have begun to do its work again.

use super::code::Code;
use super::ends::Ends;
use super::isolation::{Isolation, LOOKS_PER_LEASE, ask_around, learn_names, look_around};
use super::links::{Peers, dial};
use super::names::ClaimedNames;
use super::pulls::Pulls;
use crate::drain::Drain;
use crate::inbox::{Inbox, Input};
use crate::registry::lock;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tharsis_core::Event;
use tharsis_core::event::Member;
use tharsis_gcs::{ControlClient, renewal_pace};
use tharsis_protos::connection::Credentials;
use tharsis_protos::control::{NodeChange, NodeInfo};
use tharsis_protos::names;
use tharsis_protos::revoked::Revoked;
use tharsis_protos::{CallError, RefusalCode};
use tharsis_types::NodeId;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

/// After a watch that was refused.
const WATCH_PAUSE: Duration = Duration::from_millis(500);
/// The time for which a node that stops tries to say so.
const FAREWELL_WAIT: Duration = Duration::from_secs(1);

/// Why a node ends itself whose jobs the control store knows no more: it gives their ids to others.
const RESTORED: &str = "the tables of the cluster were restored to an earlier state, or lost";
/// Why a node that was shut out ends itself.
const REVOKED: &str = "its machine was revoked";

/// Receiver of the changes that a member hears.
pub struct Membership {
    /// The node.
    pub me: NodeInfo,
    /// Credentials that it shows when it calls others.
    pub own: Credentials,
    /// The control store.
    pub control: ControlClient,
    /// Into the loop.
    pub inbox: Arc<Inbox>,
    /// The other members.
    pub peers: Arc<Peers>,
    /// Transfers from them.
    pub pulls: Arc<Pulls>,
    /// Programs for them.
    pub code: Arc<Code>,
    /// The time for which its lease lasts.
    pub lease_ttl: Duration,
    /// Jobs that have ended, as other members say.
    pub(super) ends: Arc<Ends>,
    /// When somebody was last heard of.
    pub isolation: Arc<Mutex<Isolation>>,
    /// Addresses at which it reaches itself.
    pub own_addresses: Vec<String>,
    /// Its drain.
    pub drain: Arc<Drain>,
    /// The machines that were shut out, as its port knows them.
    pub revoked: Revoked,
    /// The names that were claimed here.
    pub(super) names: Arc<ClaimedNames>,
    /// Why this node had to end itself, if it had to.
    pub fenced: Arc<Mutex<Option<String>>>,
}

impl Membership {
    /// Renews the lease and follows the membership, until the cluster says that this node is dead.
    pub async fn stay(&self) {
        tokio::select! {
            () = self.keep_alive() => {}
            () = self.watch() => {}
            () = self.report_broken() => {}
            () = self.find_unheard() => {}
            () = self.ends.confirm(&self.control) => {}
            () = self.ends.find_drivers(&self.control) => {}
            () = self.watch_isolation() => {}
            () = self.learn_names() => {}
            () = self.names.free_ended(&self.control, &self.inbox) => {}
        }
    }

    /// Takes leave.
    pub async fn leave(&self) {
        // One that was declared dead is no member: nobody waits for its farewell, and whoever starts the next
        // node here waits for its end. Restored tables may have it.
        if lock(&self.fenced).as_ref().is_some_and(|reason| !reason.ends_with(RESTORED)) {
            return;
        }
        let reason = if self.drain.has_begun() { "it drained" } else { "it was stopped" };
        let farewell = async {
            self.names.remove_all(&self.control).await;
            self.control.unregister_node(self.me.id, reason).await
        };
        if let Ok(Err(error)) = tokio::time::timeout(FAREWELL_WAIT, farewell).await {
            tracing::info!(%error, "others learn of this node's end when its lease runs out");
        }
    }

    async fn keep_alive(&self) {
        let is_revoked = Arc::new(AtomicBool::new(false));
        let renew = || {
            let (control, node) = (self.control.clone(), self.me.id);
            let isolation = Arc::clone(&self.isolation);
            let is_revoked = Arc::clone(&is_revoked);
            async move {
                let asked = Instant::now();
                let answer = control.keep_alive(node).await;
                note_renewal(&isolation, asked, &answer, control.is_restored());
                // A node that was shut out is no member, whatever becomes of its lease.
                let is_shut_out = answer.as_ref().is_err_and(is_shut_out);
                is_revoked.fetch_or(is_shut_out, Ordering::Relaxed);
                // One whose jobs are no longer known must not go on with them.
                if is_shut_out || control.is_restored() { Ok(false) } else { answer }
            }
        };
        renew_until_lost(renewal_pace(self.lease_ttl), renew).await;
        self.fence(match (is_revoked.load(Ordering::Relaxed), self.control.is_restored()) {
            (true, _) => REVOKED,
            (false, true) => RESTORED,
            (false, false) => "its lease ran out",
        });
    }

    async fn watch(&self) {
        let mut membership = self.control.membership().with_revoked(self.revoked.clone());
        loop {
            let change = membership.next().await;
            if membership.is_restored() {
                return self.fence(RESTORED);
            }
            match change {
                Ok(NodeChange::Joined(node)) => self.joined(node),
                Ok(NodeChange::Left { node, reason }) if node == self.me.id => {
                    return self.fence(&reason.to_string());
                }
                Ok(NodeChange::Left { node, reason }) => self.left(node, &reason.to_string()),
                Ok(NodeChange::Listed(_) | NodeChange::Revoked(_) | NodeChange::Stores(_)) => {}
                Err(error) if is_shut_out(&error) => return self.fence(REVOKED),
                Err(error) => {
                    tracing::info!(%error, "membership is not seen");
                    sleep(WATCH_PAUSE).await;
                }
            }
        }
    }

    /// Tells the control store of members whose streams broke. A node that was killed is known to be dead
    /// long before its lease runs out.
    async fn report_broken(&self) {
        loop {
            for node in self.peers.next_broken().await {
                let control = self.control.clone();
                tokio::spawn(async move {
                    if let Err(error) = control.suspect_node(node).await {
                        tracing::debug!(%node, %error, "its lease decides whether it is dead");
                    }
                });
            }
        }
    }

    /// Asks for nodes that were named here before the watch told of them. A node was a member before anybody
    /// could name it, so one that is missing in a list of now is dead. While there is no list, nobody is: the
    /// machine asks again. One that is listed is left to the watch, which knows the order of joins and ends.
    async fn find_unheard(&self) {
        loop {
            let named = self.peers.next_unheard().await;
            match self.control.list_nodes().await {
                Ok(members) => {
                    for node in missing(named, members.nodes.iter().map(|member| member.id)) {
                        tracing::info!(%node, "a node that was named here is no member");
                        self.inbox.put(Input::Event(Event::MemberLeft { node }));
                    }
                }
                Err(error) => tracing::info!(%error, "it is not known whether nodes that were named live"),
            }
        }
    }

    /// Learns the names that looks need while there is somebody to ask.
    async fn learn_names(&self) {
        let wait = self.lease_ttl / LOOKS_PER_LEASE;
        loop {
            sleep(wait).await;
            learn_names(&self.control, &self.peers, wait).await;
            sleep(self.lease_ttl).await;
        }
    }

    /// Tells the node when it is isolated, and when no longer.
    async fn watch_isolation(&self) {
        let pace = self.lease_ttl / LOOKS_PER_LEASE;
        let mut ticks = interval_at(Instant::now() + pace, pace);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut asked = None;
        loop {
            ticks.tick().await;
            let begun = Instant::now();
            if lock(&self.isolation).is_unsure(begun) {
                let own = &self.own_addresses;
                let around = look_around(&self.control, own, &self.peers, pace, asked).await;
                lock(&self.isolation).looked(begun, around);
            }
            if lock(&self.isolation).is_over(Instant::now()) {
                return self.fence("it reaches no control store, and is no member as others see it");
            }
            let changed = lock(&self.isolation).change(Instant::now());
            if let Some(is_isolated) = changed {
                if is_isolated {
                    tracing::warn!("nobody counts this node as alive: it starts no work of others")
                } else {
                    tracing::info!("this node counts as alive: it goes on")
                }
                self.inbox.put(Input::Event(Event::IsolationChanged { is_isolated }));
            }
            // The answers are there at the next look.
            asked = lock(&self.isolation).is_isolated().then(Instant::now);
            if asked.is_some() {
                ask_around(&self.control, &self.peers);
            }
        }
    }

    fn joined(&self, node: NodeInfo) {
        let member = Member {
            node: node.id,
            resources: node.resources.clone(),
            labels: node.labels.clone().into_iter().collect(),
        };
        let Some(peer) = self.peers.add(node) else { return };
        // It says itself where it is reached, and the names of control stores are not for it to take.
        if !self.control.addresses().contains(&peer.info.listen) {
            names::has_moved(&peer.info.listen);
        }
        tracing::info!(node = %member.node, "node joined");
        self.inbox.put(Input::Event(Event::MemberJoined(Arc::new(member))));
        let dialing = dial(Arc::clone(&self.peers), self.own.clone(), peer, Arc::clone(&self.inbox));
        tokio::spawn(dialing);
        self.code.node_joined();
    }

    fn left(&self, node: NodeId, reason: &str) {
        if self.peers.remove(node) {
            tracing::info!(%node, reason, "node left");
            self.pulls.node_left(node);
            self.inbox.put(Input::Event(Event::MemberLeft { node }));
            for job in self.code.jobs_driven_by(node) {
                self.inbox.put(Input::Event(Event::JobEnded { job }));
            }
        }
    }

    fn fence(&self, reason: &str) {
        tracing::error!(node = %self.me.id, reason, "the cluster has declared this node dead: it ends itself");
        let text = format!("the cluster declared node {} dead: {reason}", self.me.id);
        lock(&self.fenced).get_or_insert(text);
        self.inbox.put(Input::Stop);
    }
}

/// The nodes that are not among the members.
fn missing(named: Vec<NodeId>, members: impl Iterator<Item = NodeId>) -> Vec<NodeId> {
    let members: BTreeSet<NodeId> = members.collect();
    named.into_iter().filter(|node| !members.contains(node)).collect()
}

/// Whether a control store refused because of who this node is: its machine was revoked.
fn is_shut_out(error: &CallError) -> bool {
    error.refusal_code() == Some(RefusalCode::PermissionDenied)
}

/// Notes the answer to a renewal that was asked for at `asked`. A control store whose tables were restored
/// says of nodes that they are members which are none.
fn note_renewal<E>(
    isolation: &Mutex<Isolation>,
    asked: Instant,
    answer: &Result<bool, E>,
    is_restored: bool,
) {
    if answer.as_ref().is_ok_and(|is_member| *is_member) && !is_restored {
        lock(isolation).renewed(asked);
    }
}

/// Renews a lease at a fixed pace until an answer says that it is lost.
///
/// Earlier requests that have no answer yet are not waited for. One that hangs, on a server that has just
/// gone or is not up yet, takes until its deadline, which may be longer than the lease: a store that is back
/// must hear of this node before.
async fn renew_until_lost<F, E>(pace: Duration, renew: impl Fn() -> F)
where
    F: Future<Output = Result<bool, E>> + Send + 'static,
    E: Display + Send + 'static,
{
    let mut ticks = interval_at(Instant::now() + pace, pace);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut asked = JoinSet::new();
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                asked.spawn(renew());
            }
            Some(answer) = asked.join_next() => match answer {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) => return,
                // Nobody is declared dead by a control store that is away.
                Ok(Err(error)) => tracing::info!(%error, "lease is not renewed"),
                Err(error) => tracing::error!(%error, "lease is not renewed"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::tests::{Store, serve};
    use crate::cluster::isolation::tests::{control_at, member_at};
    use crate::cluster::outbox::Need;
    use crate::cluster::runtime::Tasks;
    use std::net::TcpListener;
    use std::path::PathBuf;
    use tharsis_object_store::bell::BELL_BOARD_BYTES;
    use tharsis_object_store::{Arena, BellBoard, Segment};
    use tharsis_protos::control::JobRequest;
    use tharsis_protos::proof::{SECRET_BYTES, Secret};
    use tharsis_types::JobTerms;
    use tokio::time::timeout;

    const PACE: Duration = Duration::from_millis(20);
    const ME: NodeId = NodeId(1);
    const OTHER: NodeId = NodeId(2);

    /// A node beside a control store, whose address it takes for its own: that one is nobody to it.
    fn member_beside(control: ControlClient, lease_ttl: Duration) -> Membership {
        let own = Credentials::with_secret(Secret::from_bytes([1; SECRET_BYTES]), None);
        let segment = Arc::new(Segment::anonymous(BELL_BOARD_BYTES).unwrap());
        let inbox = Arc::new(Inbox::new(BellBoard::at(&segment, 0).unwrap()));
        let peers = Arc::new(Peers::new(ME, 16));
        let arena = Arc::new(Arena::create(1).unwrap());
        let pulls = Arc::new(Pulls::new(arena, Arc::clone(&inbox), Arc::clone(&peers), own.clone()));
        let (folder, tasks) = (PathBuf::new(), Tasks::current());
        let code = Code::new(ME, folder, control.clone(), tasks, Arc::clone(&peers), Arc::clone(&pulls));
        let code = Arc::new(code);
        Membership {
            me: member_at(ME.0, "127.0.0.1:1".to_owned()),
            own,
            ends: Arc::new(Ends::new(Arc::clone(&code), Arc::clone(&inbox))),
            drain: Arc::new(Drain::new(ME, Arc::clone(&inbox))),
            isolation: Arc::new(Mutex::new(Isolation::new(lease_ttl, Instant::now()))),
            own_addresses: control.addresses(),
            control,
            inbox,
            peers,
            pulls,
            code,
            lease_ttl,
            revoked: Revoked::nobody(),
            names: Arc::default(),
            fenced: Arc::default(),
        }
    }

    /// Somebody who accepts connections and says nothing, and the address.
    fn silent() -> (TcpListener, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        (listener, address)
    }

    /// Does all that a member does until something has come, however long that takes.
    async fn stays_until(membership: &Membership, mut has_come: impl FnMut() -> bool) {
        let come = async {
            while !has_come() {
                sleep(PACE).await;
            }
        };
        let stays = async {
            tokio::select! {
                () = membership.stay() => panic!("{:?}", lock(&membership.fenced)),
                () = come => {}
            }
        };
        timeout(Duration::from_secs(60), stays).await.expect("it does not come");
    }

    #[tokio::test]
    async fn a_member_asks_for_drivers_for_ends_and_for_nodes_that_were_named() {
        let (server, control) = serve(Store::default()).await;
        let membership = member_beside(control, Duration::from_secs(10));
        let control = &membership.control;
        control.register_node(&membership.me, 0).await.unwrap();
        let given = Some(JobTerms { weight: 300, quota: None });
        let request = JobRequest {
            name: String::new(),
            namespace: String::new(),
            code_unit: None,
            driver_node: ME,
            entrypoint: String::new(),
            request: [1; 16],
            terms: given.clone(),
        };
        let runs = control.register_job(&request).await.unwrap();
        let ended = control.register_job(&JobRequest { request: [2; 16], ..request }).await.unwrap();
        control.finish_job(ended, true, "").await.unwrap();
        membership.ends.driver_wanted(runs, OTHER);
        membership.ends.told(ended, OTHER);
        membership.peers.look_for(OTHER);
        let [mut is_found, mut has_ended, mut has_left] = [false; 3];
        let has_come = || {
            while let Some(input) = membership.inbox.take() {
                match input {
                    Input::Event(Event::DriverFound { job, driver, terms }) => {
                        is_found |= (job, driver, terms) == (runs, Some(ME), given.clone());
                    }
                    Input::Event(Event::JobEnded { job }) => has_ended |= job == ended,
                    Input::Event(Event::MemberLeft { node }) => has_left |= node == OTHER,
                    _ => {}
                }
            }
            is_found && has_ended && has_left
        };
        stays_until(&membership, has_come).await;
        drop(server);
    }

    #[tokio::test]
    async fn a_member_learns_the_names_of_others_while_it_is_sure_that_it_counts() {
        let (_store, store) = silent();
        let (_other, address) = silent();
        let mut membership = member_beside(control_at(vec![store]), LOOKS_PER_LEASE * PACE);
        // Looks learn them as well.
        membership.isolation =
            Arc::new(Mutex::new(Isolation::new(Duration::from_secs(3_600), Instant::now())));
        let name = address.replace("127.0.0.1", "localhost");
        membership.peers.add(member_at(OTHER.0, name.clone())).unwrap();
        stays_until(&membership, || names::is_fresh(&name)).await;
    }

    #[tokio::test]
    async fn the_name_of_a_node_that_joins_is_asked_for_again_unless_it_is_that_of_a_control_store() {
        let ((_store, store), (_other, other)) = (silent(), silent());
        let [store, other] = [store, other].map(|address| address.replace("127.0.0.1", "localhost"));
        let membership = member_beside(control_at(vec![store.clone()]), LOOKS_PER_LEASE * PACE);
        for (node, name, is_fresh) in [(2, other, false), (3, store, true)] {
            names::addresses(&name, names::Whose::Member).await.unwrap();
            assert!(names::is_fresh(&name));
            membership.joined(member_at(node, name.clone()));
            assert_eq!(names::is_fresh(&name), is_fresh, "{name}");
        }
    }

    #[tokio::test]
    async fn a_member_that_is_isolated_asks_others_whether_they_are_there() {
        let (_store, store) = silent();
        let (_other, address) = silent();
        let membership = member_beside(control_at(vec![store]), LOOKS_PER_LEASE * PACE);
        let peer = membership.peers.add(member_at(OTHER.0, address)).unwrap();
        peer.let_stay(false);
        assert_eq!(peer.need(), Need::Nothing);
        stays_until(&membership, || peer.need() == Need::Soon).await;
    }

    #[test]
    fn nodes_that_are_listed_are_left_to_the_watch() {
        let nodes = |numbers: &[u64]| numbers.iter().copied().map(NodeId).collect::<Vec<_>>();
        assert_eq!(missing(nodes(&[1, 2, 3]), nodes(&[2, 4]).into_iter()), nodes(&[1, 3]));
        assert_eq!(missing(nodes(&[2]), nodes(&[2, 4]).into_iter()), []);
    }

    #[test]
    fn only_a_member_in_tables_that_were_not_restored_is_renewed() {
        let (asked, ttl) = (Instant::now(), Duration::from_secs(8));
        let is_isolated = |answer: Result<bool, &str>, is_restored, after| {
            let isolation = Mutex::new(Isolation::new(ttl, asked));
            let later = asked + Duration::from_secs(4);
            assert_eq!(lock(&isolation).change(later), Some(true));
            note_renewal(&isolation, asked + after, &answer, is_restored);
            lock(&isolation).change(later + Duration::from_secs(1)).is_none()
        };
        let (early, late) = (Duration::from_secs(1), Duration::from_secs(2));
        assert!(!is_isolated(Ok(true), false, late), "the same node is alive");
        assert!(is_isolated(Ok(true), false, early), "the answer is too old");
        assert!(is_isolated(Ok(true), true, late));
        assert!(is_isolated(Ok(false), false, late) && is_isolated(Err("away"), false, late));
    }

    /// A request that hangs for longer than a lease lasts does not keep the next ones from being made, and
    /// neither does a store that is away.
    #[tokio::test]
    async fn renewals_go_on_while_one_hangs() {
        let begin = Instant::now();
        let count = Arc::new(Mutex::new(0));
        let renew = || {
            *lock(&count) += 1;
            let number = *lock(&count);
            async move {
                match number {
                    1 => {
                        sleep(1000 * PACE).await;
                        Ok(true)
                    }
                    2..10 => Err("the store is away"),
                    10..20 => Ok(true),
                    _ => Ok(false),
                }
            }
        };
        renew_until_lost(PACE, renew).await;
        assert_eq!(*lock(&count), 20, "what is lost is known at once");
        assert!((20 * PACE..500 * PACE).contains(&begin.elapsed()), "{:?}", begin.elapsed());
    }
}
