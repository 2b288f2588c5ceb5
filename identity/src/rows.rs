//! The notes of an authority as rows, so that control stores can keep them as a table: what one head of a
//! cluster notes then holds for all of them.
//!
//! A row has the name of its file below the authority's folder. Rows are written once, but for the time that
//! a node is a machine's, and two heads that note something at the same time note the same or the first one
//! counts. So copies of the folder become equal whatever the order in which rows reach them. The key of the
//! authority is no row.

use crate::subject::{MachineId, number};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A machine's own certificate: it serves to ask for others, at each of which it may be refused.
pub(crate) const MACHINE_LIFETIME: Duration = Duration::from_secs(365 * 86_400);
/// A node is remembered for this long after its last certificate was over, or longer.
const NODE_MEMORY: Duration = Duration::from_secs(3600);
/// The folders of the rows.
pub(crate) const PARTS: [&str; 5] = ["ended", "machines", "nodes", "revoked", "tokens"];
/// A machine that was shut out is remembered for this long: its last certificate is over by then.
const REVOKED_MEMORY: Duration = Duration::from_secs(MACHINE_LIFETIME.as_secs() + 86_400);

/// A note of an authority: a token, a machine, a node, or an end of one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its folder and its number, as `tokens/0123456789abcdef`.
    pub name: String,
    /// Its text.
    pub text: String,
}

impl Row {
    /// A row from its name and its text; none if it is no such row.
    #[must_use]
    pub fn new(name: &str, text: &str) -> Option<Row> {
        let (part, id) = name.split_once('/')?;
        let is_known = PARTS.contains(&part) && number(id).is_some();
        is_known.then(|| Row { name: name.to_owned(), text: text.to_owned() })
    }

    /// The row that gives a node to a machine, with a certificate that lasts for so long from now.
    #[must_use]
    pub fn owner(node: u64, machine: MachineId, lifetime: Duration) -> Row {
        let lifetimes = lifetime.as_secs().saturating_mul(2).saturating_add(NODE_MEMORY.as_secs());
        // Twice, so that not each renewal writes it.
        let until = unix(SystemTime::now()).saturating_add(lifetimes);
        let text = format!("{machine} {until}");
        Row { name: format!("nodes/{node:016x}"), text }
    }

    /// The machine that a row is about, if it says that this machine was shut out.
    #[must_use]
    pub fn revoked(&self) -> Option<MachineId> {
        self.name.strip_prefix("revoked/")?.parse().ok()
    }

    /// The machine of a node, if the row gives it one.
    #[must_use]
    pub fn machine(&self) -> Option<MachineId> {
        let text = self.name.starts_with("nodes/").then_some(self.text.as_str())?;
        text.split(' ').next()?.parse().ok()
    }

    /// Whether a row gives its node to the same machine as another one, for as long or longer.
    #[must_use]
    pub fn lasts_as_long_as(&self, other: &Row) -> bool {
        let until = |row: &Row| row.word(1).unwrap_or(0);
        self.name == other.name && self.machine() == other.machine() && until(other) <= until(self)
    }

    /// Whether the row of a node is remembered for as long as it must be after a certificate of this lifetime
    /// that is made now.
    #[must_use]
    pub fn outlasts(&self, lifetime: Duration) -> bool {
        let end = unix(SystemTime::now()).saturating_add(lifetime.as_secs());
        self.word(1).is_some_and(|until| end.saturating_add(NODE_MEMORY.as_secs()) <= until)
    }

    /// A number in its text.
    fn word(&self, index: usize) -> Option<u64> {
        self.text.split(' ').nth(index)?.parse().ok()
    }

    /// Whether nothing depends on the row any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let part = self.name.split('/').next().unwrap_or_default();
        let until = match part {
            "ended" => self.word(0),
            // Earlier releases noted no time.
            "nodes" => Some(self.word(1).unwrap_or(0)),
            "revoked" => self.word(0).map(|then| then.saturating_add(REVOKED_MEMORY.as_secs())),
            "tokens" => self.word(2),
            _ => None,
        };
        until.is_some_and(|until| until <= unix(SystemTime::now()))
    }
}

/// A time as it is noted.
pub(crate) fn unix(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn rows_have_an_end_and_names_of_files() {
        let over = |name: &str, text: String| Row::new(name, &text).unwrap().is_over();
        let now = unix(SystemTime::now());
        let id = "0123456789abcdef";
        assert!(over(&format!("tokens/{id}"), format!("hash node {}", now - 1)));
        assert!(!over(&format!("tokens/{id}"), format!("hash node {}", now + 9)));
        assert!(over(&format!("ended/{id}"), (now - 1).to_string()));
        assert!(
            !over(&format!("revoked/{id}"), now.to_string())
                && !over(&format!("revoked/{id}"), String::new())
        );
        assert!(over(&format!("revoked/{id}"), (now - 2 * MACHINE_LIFETIME.as_secs()).to_string()));
        let (machine, short) = (MachineId(7), Duration::from_secs(1));
        let owner = Row::owner(1, machine, short);
        assert!(!owner.is_over() && owner.machine() == Some(machine));
        assert!(
            over(&owner.name, format!("{machine} {}", now - 1)) && over(&owner.name, machine.to_string())
        );
        // At half the lifetime and at its end it need not be written, later it must be.
        let made = |ago: u64| {
            let until = now - ago + 2 * 7200 + NODE_MEMORY.as_secs();
            Row { name: owner.name.clone(), text: format!("{machine} {until}") }
        };
        assert_eq!(
            [0, 3600, 7199, 7300].map(|ago| made(ago).outlasts(Duration::from_secs(7200))),
            [true, true, true, false]
        );
        assert!(made(5).lasts_as_long_as(&made(6)) && !made(6).lasts_as_long_as(&made(5)));
        assert!(!made(5).lasts_as_long_as(&Row::owner(1, MachineId(8), short)));
        for name in ["keys", "tokens/../keys", "tokens/", "tokens/0123456789ABCDEF", "other/0123456789abcdef"]
        {
            assert_eq!(Row::new(name, ""), None, "{name}");
        }
    }
}
