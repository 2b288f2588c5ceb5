//! `tharsis memory`: the objects in a node's store, the references to them, and the tasks that made them.
//!
//! Sums are over all objects of the store; the table lists the largest. Every used byte is in one line of the
//! first part, so the lines add up to the store.

use crate::output;
use anyhow::Result;
use std::collections::BTreeMap;
use std::path::Path;
use tharsis::observe;
use tharsis_protos::inventory::{ClientKind, Inventory, ObjectRow, PlaceRow};

/// Number of objects listed in the text output; the JSON has all that the node reports.
const LISTED_MAX: usize = 40;
/// Number of call sites and jobs listed in the text output.
const GROUPS_MAX: usize = 20;

/// Asks the node at `socket` for the contents of its store and prints them.
///
/// # Errors
/// If it does not answer.
pub fn run(socket: &Path, json: bool) -> Result<()> {
    let inventory = observe::memory(socket).map_err(super::unanswered)?;
    if json {
        return output::line(&serde_json::to_string(&inventory)?);
    }
    output::plain_lines(&describe(&inventory))
}

/// Sums over objects with a common property.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Group {
    count: usize,
    arena_bytes: u64,
    disk_bytes: u64,
}

impl Group {
    fn add(&mut self, row: &ObjectRow) {
        self.count += 1;
        self.arena_bytes += row.arena_bytes;
        self.disk_bytes += row.disk_bytes;
    }
}

fn describe(inventory: &Inventory) -> Vec<String> {
    let mut lines = totals(inventory);
    let job = |row: &ObjectRow| format!("job {}", row.job);
    lines.extend(grouped("by job", inventory, job));
    lines.extend(grouped("by call site", inventory, |row| site(inventory, row)));
    if !inventory.objects.is_empty() {
        lines.push("largest objects".to_owned());
    }
    lines.extend(inventory.objects.iter().take(LISTED_MAX).map(|row| object(inventory, row)));
    let unlisted = inventory.objects.len().saturating_sub(LISTED_MAX) + inventory.other_count;
    if unlisted > 0 {
        lines.push(format!("  and {unlisted} smaller ones"));
    }
    lines
}

/// Use of every byte of the store.
fn totals(inventory: &Inventory) -> Vec<String> {
    let (store, objects) = (inventory.store, inventory.object_bytes());
    let count = store.object_count;
    let mut lines = vec![
        format!("store of node {:016x}, process {}", inventory.node, inventory.pid),
        format!("{:>16}  in {count} objects, {} of them mapped", bytes(objects), store.pinned_count),
        format!("{:>16}  granted to clients and not used yet", bytes(inventory.granted_bytes())),
    ];
    if inventory.superseded_bytes > 0 {
        lines.push(format!("{:>16}  arriving, and here already", bytes(inventory.superseded_bytes)));
    }
    lines.push(format!("{:>16}  free", bytes(inventory.free_bytes)));
    lines.push(format!("{:>16}  in all", bytes(store.capacity_bytes)));
    lines.push(format!("{:>16}  on disk, {} objects", bytes(store.spilled_bytes), store.spilled_count));
    if store.annex_capacity_bytes > 0 {
        let (used, all) = (bytes(store.annex_used_bytes), bytes(store.annex_capacity_bytes));
        lines.push(format!("{used:>16}  in a file for values larger than the store, of {all}"));
    }
    lines
}

/// Groups of objects, those with the most bytes first.
fn grouped(title: &str, inventory: &Inventory, name: impl Fn(&ObjectRow) -> String) -> Vec<String> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    inventory.objects.iter().for_each(|row| groups.entry(name(row)).or_default().add(row));
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.arena_bytes + group.disk_bytes));
    if groups.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![format!("{title:<38} {:>8} {:>16} {:>16}", "objects", "memory", "disk")];
    let line = |name: &str, group: &Group| {
        let (memory, disk) = (bytes(group.arena_bytes), bytes(group.disk_bytes));
        format!("  {name:<36} {:>8} {memory:>16} {disk:>16}", group.count)
    };
    let mut rest = Group {
        count: inventory.other_count,
        arena_bytes: inventory.other_arena_bytes,
        disk_bytes: inventory.other_disk_bytes,
    };
    for (at, (name, group)) in groups.iter().enumerate() {
        if at < GROUPS_MAX {
            lines.push(line(name, group));
        } else {
            rest.count += group.count;
            rest.arena_bytes += group.arena_bytes;
            rest.disk_bytes += group.disk_bytes;
        }
    }
    if rest.count > 0 {
        lines.push(line("others", &rest));
    }
    lines
}

/// The call site that made an object.
fn site(inventory: &Inventory, row: &ObjectRow) -> String {
    let site = row.site.and_then(|site| inventory.sites.get(usize::try_from(site).ok()?));
    match site {
        Some(site) => format!("{} at {}", site.name, site.call_site),
        None if row.is_put => "put".to_owned(),
        None => "not remembered".to_owned(),
    }
}

/// The line of an object.
fn object(inventory: &Inventory, row: &ObjectRow) -> String {
    let secondary = if row.is_secondary { ", a copy" } else { "" };
    let made = row.made_in_ns.map(|ns| format!(" in {:.1} ms", ns as f64 / 1e6)).unwrap_or_default();
    let mut parts = vec![format!("{}{secondary}", place(row.place))];
    let mut say = |what: &str, whom: Vec<String>| {
        if !whom.is_empty() {
            parts.push(format!("{what} {}", whom.join(", ")));
        }
    };
    let whom = |numbers: &[(u32, u32)]| {
        numbers.iter().map(|(number, count)| times(&client(inventory, *number), *count)).collect()
    };
    say("mapped by", whom(&row.pins));
    say("referred to by", whom(&row.clients));
    let nodes = row.borrowers.iter().map(|(node, count)| times(&format!("node {node:016x}"), *count));
    say("lent to", nodes.collect());
    say("needed by", needs(row));
    say("of", row.owner.map(|node| format!("node {node:016x}")).into_iter().collect());
    if row.unnamed_count > 0 {
        parts.push(format!("and {} more", row.unnamed_count));
    }
    let (size, maker) = (bytes(row.bytes), site(inventory, row));
    format!("  {} {size:>16}  job {}  {maker}{made}; {}", row.object, row.job, parts.join("; "))
}

fn needs(row: &ObjectRow) -> Vec<String> {
    let tasks = (row.uses > 0).then(|| format!("{} tasks or values", row.uses));
    let lineage = (row.lineage > 0).then(|| format!("lineage of {} tasks", row.lineage));
    tasks.into_iter().chain(lineage).collect()
}

fn times(name: &str, count: u32) -> String {
    if count == 1 { name.to_owned() } else { format!("{name} x{count}") }
}

fn client(inventory: &Inventory, number: u32) -> String {
    match inventory.clients.iter().find(|row| row.client == number) {
        Some(row) if row.kind == ClientKind::Driver => format!("driver {} (process {})", number, row.pid),
        Some(row) if row.kind == ClientKind::Worker => format!("worker {} (process {})", number, row.pid),
        // The node itself, which sends the object to another one.
        _ => "a transfer".to_owned(),
    }
}

/// The place of an object, in words.
pub fn place(place: PlaceRow) -> &'static str {
    match place {
        PlaceRow::Disk => "on disk",
        PlaceRow::File => "in a file on disk",
        PlaceRow::Freed => "freed, still mapped",
        PlaceRow::Memory => "in memory",
        PlaceRow::MemoryAndDisk => "in memory and on disk",
        PlaceRow::Receiving => "arriving",
        PlaceRow::Writing => "being written to disk",
    }
}

/// An exact number of bytes, with thousands separated.
fn bytes(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_protos::inventory::{ClientRow, SiteRow};
    use tharsis_protos::report::StoreRow;

    fn inventory() -> Inventory {
        let row = |n: u64, site: Option<u32>| ObjectRow {
            object: format!("object{n}"),
            job: 1,
            bytes: 1000 * n,
            arena_bytes: 1024 * n,
            clients: vec![(3, 2)],
            pins: vec![(4, 1)],
            is_put: site.is_none(),
            site,
            made_in_ns: site.map(|_| 2_500_000),
            ..ObjectRow::default()
        };
        let client = |client, kind, granted_bytes| ClientRow { client, kind, pid: 77, job: 1, granted_bytes };
        Inventory {
            store: StoreRow {
                used_bytes: 6 * 1024 + 100,
                capacity_bytes: 10_000_000,
                object_count: 3,
                ..StoreRow::default()
            },
            free_bytes: 10_000_000 - 6 * 1024 - 100,
            clients: vec![client(3, ClientKind::Driver, 100), client(4, ClientKind::Worker, 0)],
            sites: vec![SiteRow { name: "make".into(), call_site: "main.rs:5".into() }],
            objects: vec![row(3, Some(0)), row(2, None)],
            other_count: 1,
            other_arena_bytes: 1024,
            ..Inventory::default()
        }
    }

    #[test]
    fn what_is_shown_adds_up() {
        let inventory = inventory();
        let in_use = inventory.object_bytes() + inventory.granted_bytes() + inventory.superseded_bytes;
        assert_eq!(in_use, inventory.store.used_bytes);
        assert_eq!(in_use + inventory.free_bytes, inventory.store.capacity_bytes);
        let text = describe(&inventory).join("\n");
        for part in [
            "6 144  in 3 objects",
            "100  granted to clients",
            "10 000 000  in all",
            "make at main.rs:5 in 2.5 ms; in memory; mapped by worker 4 (process 77); referred to by driver 3 (process 77) x2",
            "and 1 smaller ones",
        ] {
            assert!(text.contains(part), "{part} missing in: {text}");
        }
        let others = text.lines().filter(|line| line.starts_with("  others")).count();
        assert_eq!(others, 2, "in both groups: {text}");
    }

    #[test]
    fn bytes_are_shown_to_the_byte() {
        assert_eq!([0, 999, 1000, 1_234_567].map(bytes), ["0", "999", "1 000", "1 234 567"]);
    }
}
