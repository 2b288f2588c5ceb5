//! Contents of a node's store in words for people: numbers of clients become processes, tasks become
//! call sites.

use crate::port::Port;
use std::collections::{BTreeMap, HashMap};
use tharsis_core::Node;
use tharsis_core::node::Item;
use tharsis_core::owner::MadeBy;
use tharsis_core::store::{Content, Phase, Usage};
use tharsis_protos::inventory::{
    ClientKind, ClientRow, Inventory, NAMED_MAX, OBJECTS_MAX, ObjectRow, PlaceRow, SITE_BYTES_MAX, SITES_MAX,
    SiteRow,
};
use tharsis_protos::report::StoreRow;
use tharsis_types::ClientId;
use tharsis_types::limits::CLIENTS_MAX;

/// Contents of a node's store.
pub(crate) fn of<'a>(node: &Node, clients: impl Iterator<Item = &'a Port>) -> Inventory {
    let inventory = node.inventory(OBJECTS_MAX);
    let mut sites = Sites::default();
    let objects = inventory.objects.iter().map(|item| row(item, &mut sites)).collect();
    let store = store_row(&inventory.usage);
    Inventory {
        node: node.id().0,
        pid: std::process::id(),
        store,
        free_bytes: store.capacity_bytes - store.used_bytes,
        superseded_bytes: inventory.unowned.superseded_bytes,
        clients: client_rows(clients, inventory.unowned.granted),
        sites: sites.rows,
        objects,
        other_count: inventory.others.count,
        other_arena_bytes: inventory.others.arena_bytes,
        other_disk_bytes: inventory.others.disk_bytes + inventory.others.annex_bytes,
    }
}

/// The fill of a store.
pub(crate) fn store_row(usage: &Usage) -> StoreRow {
    StoreRow {
        used_bytes: usage.used_bytes,
        capacity_bytes: usage.capacity_bytes,
        object_count: usage.object_count,
        pinned_count: usage.pinned_count,
        spilled_count: usage.spilled_count,
        spilled_bytes: usage.spilled_bytes,
        annex_used_bytes: usage.annex_used_bytes,
        annex_capacity_bytes: usage.annex_capacity_bytes,
    }
}

/// Call sites, each once.
#[derive(Default)]
struct Sites {
    rows: Vec<SiteRow>,
    numbers: HashMap<SiteRow, u32>,
}

impl Sites {
    fn number(&mut self, made_by: &MadeBy) -> Option<u32> {
        let row = SiteRow { name: cut(&made_by.name), call_site: cut(&made_by.call_site) };
        if let Some(known) = self.numbers.get(&row) {
            return Some(*known);
        }
        let number = u32::try_from(self.rows.len()).ok().filter(|_| self.rows.len() < SITES_MAX)?;
        self.rows.push(row.clone());
        self.numbers.insert(row, number);
        Some(number)
    }
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(SITE_BYTES_MAX)].to_owned()
}

/// Clients that are connected, and those that were granted regions.
fn client_rows<'a>(
    ports: impl Iterator<Item = &'a Port>,
    mut granted: BTreeMap<ClientId, u64>,
) -> Vec<ClientRow> {
    let mut rows: Vec<_> = ports
        .map(|port| ClientRow {
            client: port.client.0,
            kind: if port.is_driver { ClientKind::Driver } else { ClientKind::Worker },
            pid: port.facts.pid,
            job: port.facts.job.0,
            granted_bytes: granted.remove(&port.client).unwrap_or(0),
        })
        .take(CLIENTS_MAX)
        .collect();
    // No other client should have granted bytes; if one has, they are still shown.
    rows.extend(granted.into_iter().map(|(client, granted_bytes)| ClientRow {
        client: client.0,
        granted_bytes,
        ..ClientRow::default()
    }));
    rows
}

fn row(item: &Item, sites: &mut Sites) -> ObjectRow {
    let (content, holders) = (&item.content, &item.holders);
    let numbers = |clients: &[(ClientId, u32)]| {
        clients.iter().take(NAMED_MAX).map(|(client, count)| (client.0, *count)).collect()
    };
    let made_by = holders.made_by.as_ref();
    let lists = [item.pins.len(), holders.clients.len(), holders.borrowers.len()];
    ObjectRow {
        object: content.object.to_string(),
        job: content.object.task.job().0,
        bytes: content.len,
        arena_bytes: content.arena_bytes,
        disk_bytes: content.disk_bytes + content.annex_bytes,
        place: place(content),
        is_secondary: content.is_secondary,
        is_put: content.object.is_put(),
        pins: numbers(&item.pins),
        clients: numbers(&holders.clients),
        borrowers: holders.borrowers.iter().take(NAMED_MAX).map(|(node, n)| (node.0, *n)).collect(),
        unnamed_count: lists.into_iter().map(|len| len.saturating_sub(NAMED_MAX)).sum(),
        uses: holders.uses,
        lineage: holders.lineage,
        owner: holders.owner.map(|node| node.0),
        site: made_by.and_then(|made_by| sites.number(made_by)),
        made_in_ns: made_by.filter(|_| !content.object.is_put()).map(|made_by| made_by.run_ns),
    }
}

fn place(content: &Content) -> PlaceRow {
    match content.phase {
        Phase::There if content.annex_bytes > 0 => PlaceRow::File,
        Phase::Doomed => PlaceRow::Freed,
        Phase::OnDisk => PlaceRow::Disk,
        Phase::Receiving => PlaceRow::Receiving,
        Phase::There => PlaceRow::Memory,
        Phase::ThereAndOnDisk => PlaceRow::MemoryAndDisk,
        Phase::Writing => PlaceRow::Writing,
    }
}
