//! What a send writes to the policy store: reservations, the visibility row, the watch over its block, the inferred link (R1,
//! W5, W6, HD2).

use super::{SendContext, prepare::Facts};
use gw_audit::{SecurityEvent, SecurityKind};
use gw_policy::{access::active_orgs, knobs::MinedTrace};
use gw_store::{
    StoreError,
    record::{CreationKind, NewReservation, NewWatch, SendAccepted, SendRows, SendStart, SenderLink},
};
use gw_types::B256;

/// Before forwarding: inactive, and only of its own.
pub(super) async fn start(context: &SendContext, facts: &Facts) -> Result<SendRows, StoreError> {
    let expires_at = context.clock.now().plus(context.knobs.reservation_ttl);
    let reservations = facts.creates.iter().enumerate().map(|(at, address)| NewReservation {
        address: *address,
        kind: if at == 0 && facts.creates_at_top {
            CreationKind::Plain
        } else {
            CreationKind::Runtime
        },
        sender: facts.sender,
        nonce: facts.nonce,
        expires_at,
    });
    let start = SendStart {
        user: facts.user,
        org: facts.org,
        tx_hash: facts.hash,
        // Without a hash there is nothing to share yet.
        visible_to: if facts.hash.is_some() {
            facts.recipients.clone()
        } else {
            Vec::new()
        },
        reservations: reservations.collect(),
        watch: (context.knobs.mined_trace != MinedTrace::Off).then(|| NewWatch {
            sender: facts.sender,
            nonce: facts.nonce,
            external_id: facts.subject.clone(),
            orgs: active_orgs(&context.feed.pin().snapshot, facts.user, context.clock.now()),
            is_named: facts.is_named,
            judged: Some(facts.judged.clone()),
        }),
    };
    if start.visible_to.is_empty() && start.reservations.is_empty() && start.watch.is_none() {
        return Ok(SendRows::default());
    }
    let mut tx = context.store.begin(&facts.actor).await?;
    let rows = tx.start_send(start).await?;
    tx.commit().await?;
    Ok(rows)
}

/// The node took it: rows come into force, the sender of a raw transaction is linked (W6).
pub(super) async fn accept(context: &SendContext, facts: &Facts, rows: SendRows, hash: B256) -> Result<(), StoreError> {
    let linked = context
        .feed
        .pin()
        .snapshot
        .links_of(facts.user)
        .iter()
        .any(|link| link.address == facts.sender);
    let link = (facts.hash.is_some() && !linked).then_some((facts.user, facts.sender));
    let shared_now = facts.hash.is_none() && !facts.recipients.is_empty();
    // A watch alone needs nothing more, unless only now there is a hash to watch for.
    let settled =
        rows.visibility.is_none() && rows.reservations.is_empty() && (rows.watch.is_none() || facts.hash.is_some());
    if settled && link.is_none() && !shared_now {
        return Ok(());
    }
    let mut tx = context.store.begin(&facts.actor).await?;
    let made = tx
        .accept_send(SendAccepted {
            rows,
            tx_hash: hash,
            link,
        })
        .await?;
    if shared_now {
        let (visible_to, reservations) = (facts.recipients.clone(), Vec::new());
        let (user, org) = (facts.user, facts.org);
        let rows = tx
            .start_send(SendStart {
                user,
                org,
                tx_hash: Some(hash),
                visible_to,
                reservations,
                watch: None,
            })
            .await?;
        tx.accept_send(SendAccepted {
            rows,
            tx_hash: hash,
            link: None,
        })
        .await?;
    }
    tx.commit().await?;
    report(context, facts, &made);
    Ok(())
}

/// It was not taken: the send's own rows go.
pub(super) async fn refuse(context: &SendContext, facts: &Facts, rows: SendRows) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut tx = context.store.begin(&facts.actor).await?;
    tx.refuse_send(rows).await?;
    tx.commit().await?;
    Ok(())
}

/// LK-6: a new link is a security event, one that others hold too is one of elevated severity.
fn report(context: &SendContext, facts: &Facts, made: &SenderLink) {
    let (kind, count) = match made {
        SenderLink::Linked(linked) if linked.others > 0 => {
            (SecurityKind::EthAddressLinkedCollision, Some(linked.others))
        }
        SenderLink::Linked(_) => (SecurityKind::EthAddressLinked, None),
        SenderLink::Contested { others } => (SecurityKind::EthAddressLinkedCollision, Some(*others)),
        SenderLink::Unchanged => return,
    };
    let event = SecurityEvent {
        external_id: Some(facts.subject.clone()),
        user_id: Some(facts.user),
        org_id: Some(facts.org),
        address: Some(facts.sender),
        ip_address: facts.actor.ip,
        correlation_id: facts.actor.correlation_id.clone().map(Into::into),
        reason: Some("system".into()),
        count,
        ..SecurityEvent::new(kind)
    };
    if let Err(error) = context.journal.append(event) {
        tracing::error!(error = &error as &dyn std::error::Error, "a link was not reported");
    }
}
