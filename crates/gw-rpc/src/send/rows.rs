//! The rows of a send in the policy store: reservations, visibility, the watch over its block, the inferred link (R1,
//! W5, W6, HD2).

use super::{SendContext, prepare::SendDetails};
use gw_audit::{SecurityEvent, SecurityKind};
use gw_policy::{access::active_orgs, settings::MinedTrace};
use gw_store::{
    StoreError,
    record::{CreationKind, NewReservation, NewWatch, SendAccepted, SendRows, SendStart, SenderLink},
};
use gw_types::B256;

/// Writes the inactive rows before the transaction goes out.
pub(super) async fn start(context: &SendContext, details: &SendDetails) -> Result<SendRows, StoreError> {
    let expires_at = context.clock.now().plus(context.policy_settings.reservation_ttl);
    let reservations = details
        .creates
        .iter()
        .enumerate()
        .map(|(index, address)| NewReservation {
            address: *address,
            kind: if index == 0 && details.creates_at_top {
                CreationKind::Plain
            } else {
                CreationKind::Runtime
            },
            sender: details.sender,
            nonce: details.nonce,
            expires_at,
        });
    let start = SendStart {
        user: details.user,
        org: details.org,
        tx_hash: details.hash,
        // Without a known hash, the transaction is shared once the node has returned its hash.
        visible_to: if details.hash.is_some() {
            details.recipients.clone()
        } else {
            Vec::new()
        },
        reservations: reservations.collect(),
        watch: (context.policy_settings.mined_trace != MinedTrace::Off).then(|| NewWatch {
            sender: details.sender,
            nonce: details.nonce,
            external_id: details.subject.clone(),
            orgs: active_orgs(&context.feed.pin().snapshot, details.user, context.clock.now()),
            is_named: details.is_named,
            authorized_runs: Some(details.authorized_runs.clone()),
        }),
    };
    if start.visible_to.is_empty() && start.reservations.is_empty() && start.watch.is_none() {
        return Ok(SendRows::default());
    }
    let mut tx = context.store.begin(&details.actor).await?;
    let rows = tx.start_send(start).await?;
    tx.commit().await?;
    Ok(rows)
}

/// Activates the rows of an accepted transaction, and links the sender of a raw one (W6).
pub(super) async fn accept(
    context: &SendContext,
    details: &SendDetails,
    rows: SendRows,
    hash: B256,
) -> Result<(), StoreError> {
    let is_linked = context
        .feed
        .pin()
        .snapshot
        .links_of(details.user)
        .iter()
        .any(|link| link.address == details.sender);
    let link = (details.hash.is_some() && !is_linked).then_some((details.user, details.sender));
    let shared_now = details.hash.is_none() && !details.recipients.is_empty();
    // A row of the watch alone needs no change, unless the hash was unknown until now.
    let is_settled =
        rows.visibility.is_none() && rows.reservations.is_empty() && (rows.watch.is_none() || details.hash.is_some());
    if is_settled && link.is_none() && !shared_now {
        return Ok(());
    }
    let mut tx = context.store.begin(&details.actor).await?;
    let sender_link = tx
        .accept_send(SendAccepted {
            rows,
            tx_hash: hash,
            link,
        })
        .await?;
    if shared_now {
        let (visible_to, reservations) = (details.recipients.clone(), Vec::new());
        let (user, org) = (details.user, details.org);
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
    report(context, details, &sender_link);
    Ok(())
}

/// Removes the rows of a transaction that the node did not accept.
pub(super) async fn release(context: &SendContext, details: &SendDetails, rows: SendRows) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut tx = context.store.begin(&details.actor).await?;
    tx.refuse_send(rows).await?;
    tx.commit().await?;
    Ok(())
}

/// Reports a new link as a security event (LK-6), with elevated severity if other users hold the address, too.
fn report(context: &SendContext, details: &SendDetails, sender_link: &SenderLink) {
    let (kind, count) = match sender_link {
        SenderLink::Linked(linked) if linked.others > 0 => {
            (SecurityKind::EthAddressLinkedCollision, Some(linked.others))
        }
        SenderLink::Linked(_) => (SecurityKind::EthAddressLinked, None),
        SenderLink::Contested { others } => (SecurityKind::EthAddressLinkedCollision, Some(*others)),
        SenderLink::Unchanged => return,
    };
    let event = SecurityEvent {
        external_id: Some(details.subject.clone()),
        user_id: Some(details.user),
        org_id: Some(details.org),
        address: Some(details.sender),
        ip_address: details.actor.ip,
        correlation_id: details.actor.correlation_id.clone().map(Into::into),
        reason: Some("system".into()),
        count,
        ..SecurityEvent::new(kind)
    };
    if let Err(error) = context.journal.append(event) {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "a new link between a user and an address could not be written to the journal"
        );
    }
}
