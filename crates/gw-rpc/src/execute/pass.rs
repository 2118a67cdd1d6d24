//! Calls that pass through unexamined (spec/20 N3).

use super::{forward::ask, head};
use crate::{
    question::{Asked, Judged},
    record::Found,
    reply::Reply,
};
use gw_policy::{Disclosed, view};

/// Asks the node what the caller asked, and tells what it says, if the policy of that moment still lets it.
pub(crate) async fn pass(asked: &Asked, judged: Judged, found: &mut Found) -> Result<Disclosed, Reply> {
    let state = asked.state();
    let pin = head(state)?.pin();
    let judged = asked.again(judged)?;
    let sealed = ask(state, &judged.permit, judged.permit.call(), pin, found).await?;
    let judged = asked.again(judged)?;
    Ok(view::unexamined(&judged.permit, sealed))
}
