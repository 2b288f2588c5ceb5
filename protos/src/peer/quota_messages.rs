//! Quotas of jobs and messages about them, to and from their form on the wire.

use super::classes::{resources, wire_resources};
use super::wire::{self, message::Kind};
use crate::message::{BadMessage, amounts, job_id, node_id};
use std::sync::Arc;
use tharsis_types::peer::QuotaMessage;
use tharsis_types::{JobQuota, LeaseId, Quota};

pub(super) fn to_wire(message: &QuotaMessage) -> Kind {
    match message {
        QuotaMessage::Granted { job, amount } => {
            Kind::QuotaGranted(wire::QuotaGranted { job: job.0, amount: Some(wire_resources(amount)) })
        }
        QuotaMessage::Recalled { job, amount, in_use, keep } => Kind::QuotaRecalled(wire::QuotaRecalled {
            job: job.0,
            amount: Some(wire_resources(amount)),
            in_use: *in_use,
            keep: *keep,
        }),
        QuotaMessage::Returned { job, amount } => {
            Kind::QuotaReturned(wire::QuotaReturned { job: job.0, amount: Some(wire_resources(amount)) })
        }
        QuotaMessage::Wanted { job, amount } => {
            Kind::QuotaWanted(wire::QuotaWanted { job: job.0, amount: Some(wire_resources(amount)) })
        }
    }
}

pub(super) fn granted(m: wire::QuotaGranted) -> Result<QuotaMessage, BadMessage> {
    let job = job_id("quota_granted.job", m.job)?;
    Ok(QuotaMessage::Granted { job, amount: resources("quota_granted.amount", m.amount)? })
}

pub(super) fn recalled(m: wire::QuotaRecalled) -> Result<QuotaMessage, BadMessage> {
    let job = job_id("quota_recalled.job", m.job)?;
    let amount = resources("quota_recalled.amount", m.amount)?;
    Ok(QuotaMessage::Recalled { job, amount, in_use: m.in_use, keep: m.keep })
}

pub(super) fn returned(m: wire::QuotaReturned) -> Result<QuotaMessage, BadMessage> {
    let job = job_id("quota_returned.job", m.job)?;
    Ok(QuotaMessage::Returned { job, amount: resources("quota_returned.amount", m.amount)? })
}

pub(super) fn wanted(m: wire::QuotaWanted) -> Result<QuotaMessage, BadMessage> {
    let job = job_id("quota_wanted.job", m.job)?;
    Ok(QuotaMessage::Wanted { job, amount: resources("quota_wanted.amount", m.amount)? })
}

/// A request for a lease, with the quota of its job.
pub(super) fn lease_request(
    lease: LeaseId,
    class: u32,
    (wait, urgency, weight): (bool, i32, u32),
    quota: Option<&JobQuota>,
) -> Kind {
    let quota = quota.map(wire_quota);
    Kind::LeaseRequest(wire::LeaseRequest { lease: lease.0, class, wait, weight, quota, urgency })
}

fn wire_quota(terms: &JobQuota) -> wire::JobQuota {
    let Quota { cpu, gpu, memory, custom } = terms.quota.clone();
    wire::JobQuota {
        home: terms.home.0,
        cpu_units: cpu,
        gpu_units: gpu,
        memory_bytes: memory,
        custom_units: custom,
    }
}

pub(super) fn quota(field: &str, m: wire::JobQuota) -> Result<Arc<JobQuota>, BadMessage> {
    let home = node_id("home", m.home).map_err(|bad| bad.within(field))?;
    let (cpu, gpu, memory) = (m.cpu_units, m.gpu_units, m.memory_bytes);
    let all = [cpu, gpu, memory].map(Option::unwrap_or_default);
    let set = amounts(field, all[0], all[1], all[2], m.custom_units)?;
    Ok(Arc::new(JobQuota { home, quota: Quota { cpu, gpu, memory, custom: set.custom } }))
}
