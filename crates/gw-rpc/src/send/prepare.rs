//! The checks of a send before it goes out: traces in two blocks, their evaluation, nonce, recipients.

use super::PermittedSend;
use crate::{
    call::{AuthorizedCall, CallContext},
    execute::{evaluate_run, execution_rejected, head, reevaluate_run},
    outcome::RpcOutcome,
};
use gw_evm::{Call, CallRequest, ParamError, trace::Trace, wire::NextBlock};
use gw_node::{Block, Node, TraceResult};
use gw_policy::{
    Sealed,
    access::{
        AuthorizedRuns, TraceVerdict, permissions,
        send::{check_nonce, created_addresses, recipients},
    },
    view,
};
use gw_store::Actor;
use gw_types::{Address, B256, Claims, DenyReason, Epoch, ExternalId, OrgId, U256, UserId};

/// A send that passed all checks.
#[derive(Debug)]
pub(super) struct PreparedSend {
    /// The call that goes to the node.
    pub(super) call: Call,
    pub(super) details: SendDetails,
    verdicts: [TraceVerdict; 2],
    /// The policy epoch of the checks.
    epoch: Epoch,
    block: Block,
}

/// The details of the transaction that records and rows contain.
#[derive(Clone, Debug)]
pub(super) struct SendDetails {
    /// The actor of the audit entries.
    pub(super) actor: Actor,
    pub(super) user: UserId,
    pub(super) subject: ExternalId,
    pub(super) org: OrgId,
    /// Whether the request named the organization.
    pub(super) is_named: bool,
    pub(super) sender: Address,
    pub(super) nonce: u64,
    /// The hash; `None` for a transaction that the node signs, whose hash is not known before forwarding.
    pub(super) hash: Option<B256>,
    pub(super) recipients: Vec<ExternalId>,
    /// The addresses of created contracts; the top-level creation first, if there is one.
    pub(super) creates: Vec<Address>,
    pub(super) creates_at_top: bool,
    pub(super) claims: Claims,
    /// The simulated runs by which the send was authorized.
    pub(super) authorized_runs: AuthorizedRuns,
}

/// The most addresses that one send reserves: each is a row, and other writes wait while it is written.
const MAX_RESERVATIONS: usize = 32;

/// Traces and checks a send. It has no effect.
///
/// # Errors
/// The outcome for a send that may not go out.
pub(super) async fn prepare(context: &mut CallContext<'_>) -> Result<PreparedSend, RpcOutcome> {
    let state = context.state();
    let head = head(state)?;
    let block = head.block;
    // The newest policy contains the withheld changes of this block, so the call is authorized by it.
    context.renew()?;
    let call = context.permit().call().clone();
    let Transaction {
        sender,
        request,
        signed,
    } = Transaction::from_call(&call).ok_or(RpcOutcome::Internal)?;
    // The sender is set, so that the node does not choose an account of its own.
    let request = CallRequest {
        from: Some(sender),
        ..request.clone()
    };
    // A transaction with more gas fits in no block, but the node would still run it for a trace.
    if request.gas.is_some_and(|gas| gas > block.gas_limit) {
        return Err(context.invalid(ParamError::invalid("the gas limit is above the block's")));
    }
    // HIDE_BASE_FEE: the node rejects a price below the base fee, which would reveal it. So every price below the
    // published price is rejected here.
    let price = request.gas_price.or(request.max_fee_per_gas);
    if state.policy_settings().hide_base_fee
        && price.is_some_and(|price| U256::from(price) < view::published_price(head.gas_price))
    {
        return Err(context.invalid(ParamError::invalid("max fee per gas less than eth_gasPrice")));
    }
    // HD2: the send is traced on the current state, and in the block in which it would run.
    let next = NextBlock {
        number: block.number.saturating_add(1),
        timestamp: block.timestamp.saturating_add(1),
    };
    let (request, pin) = (&request, block.pin());
    let query = |node: Node, authorized: &AuthorizedCall| {
        let visible_state = authorized.snapshot().visible_state(block.number);
        async move { node.trace_send(request, pin, next, &visible_state).await }
    };
    let traces = context.query_trace(query).await?;
    let (now, next) = (require_trace(traces.now)?, require_trace(traces.next)?);
    let verdict = evaluate_run(context, now, &block)?;
    let next_verdict = evaluate_run(context, next, &block)?;
    let pending = traces.pending_nonce;
    check_nonce(context.permit(), &verdict, pending, state.policy_settings())
        .map_err(|error| context.invalid(error))?;
    check_compliance(context, [&verdict, &next_verdict])?;
    let recipients =
        recipients(context.snapshot(), context.permit(), &verdict).map_err(|error| context.invalid(error))?;
    let recipients = match signed {
        Some((hash, _)) if !recipients.is_empty() && was_sent_before(context, hash).await? => Vec::new(),
        Some(_) | None => recipients,
    };
    let mut creates = created_addresses(context.permit(), &verdict, pending);
    for address in created_addresses(context.permit(), &next_verdict, pending) {
        if !creates.contains(&address) {
            creates.push(address);
        }
    }
    // Further contracts are registered for the organization once they are mined (HD27); until then no caller reaches
    // them.
    creates.truncate(MAX_RESERVATIONS);
    let (Some(user), Some(org)) = (context.permit().user(), context.permit().org()) else {
        return Err(context.denied(DenyReason::OrgAmbiguous));
    };
    let user_row = context
        .snapshot()
        .user(user)
        .ok_or_else(|| context.denied(DenyReason::UnknownUser))?;
    let nonce = signed.map_or(pending, |(_, nonce)| nonce);
    let request_context = context.request();
    let correlation_id = request_context.correlation_id.as_ref().map(|id| id.as_str().to_owned());
    let details = SendDetails {
        actor: Actor::user(user, &user_row.external_id).from_request(Some(request_context.client.0), correlation_id),
        user,
        subject: user_row.external_id.clone(),
        org,
        is_named: context.permit().named_org().is_some(),
        sender,
        nonce,
        hash: signed.map(|(hash, _)| hash),
        recipients,
        creates,
        creates_at_top: request.to.is_none(),
        claims: permissions(context.snapshot(), user, org, context.now()).claims,
        // The node chooses the gas of a transaction that names none.
        authorized_runs: AuthorizedRuns::new(
            (block.number, block.hash),
            block.coinbase,
            [&verdict, &next_verdict],
            signed.is_none() && request.gas.is_none(),
        ),
    };
    Ok(PreparedSend {
        call: with_nonce(call, nonce),
        details,
        verdicts: [verdict, next_verdict],
        epoch: context.permit().epoch(),
        block,
    })
}

impl PreparedSend {
    /// The run on the state of the head.
    pub(super) fn run(&self) -> &TraceVerdict {
        let [now, _] = &self.verdicts;
        now
    }

    /// Authorizes the send again directly before it goes out (HD20): the call, and the traces of its runs.
    ///
    /// # Errors
    /// The denial by the newest policy.
    pub(super) fn reauthorize(self, context: &mut CallContext<'_>) -> Result<Self, RpcOutcome> {
        context.renew()?;
        let epoch = context.permit().epoch();
        let verdicts = if epoch == self.epoch {
            self.verdicts
        } else {
            let [now, next] = self.verdicts;
            let reevaluate = |verdict| reevaluate_run(context, verdict, &self.block);
            [reevaluate(now)?, reevaluate(next)?]
        };
        let [now, next] = &verdicts;
        check_compliance(context, [now, next])?;
        Ok(Self {
            verdicts,
            epoch,
            ..self
        })
    }
}

fn check_compliance(context: &CallContext<'_>, runs: [&TraceVerdict; 2]) -> Result<(), RpcOutcome> {
    let send = PermittedSend {
        snapshot: context.snapshot(),
        permit: context.permit(),
        runs,
    };
    context
        .state()
        .sends
        .compliance
        .check(&send)
        .map_err(|reason| context.denied(reason))
}

/// Whether the same transaction was sent before (decision 59). Its recipients were settled then, and a second send does
/// not change them, whatever the node answers.
async fn was_sent_before(context: &mut CallContext<'_>, hash: B256) -> Result<bool, RpcOutcome> {
    if !context.snapshot().visibility(hash).is_empty() {
        return Ok(true);
    }
    context
        .query(|node, _| async move { node.has_transaction(hash).await })
        .await
}

/// The transaction of a send, signed by the caller or by the node.
struct Transaction<'a> {
    sender: Address,
    request: &'a CallRequest,
    /// Hash and nonce of a signed transaction.
    signed: Option<(B256, u64)>,
}

impl<'a> Transaction<'a> {
    fn from_call(call: &'a Call) -> Option<Self> {
        if let Call::SendRaw(raw) = call {
            return Some(Self {
                sender: raw.sender,
                request: &raw.request,
                signed: Some((raw.hash, raw.nonce)),
            });
        }
        if let Call::Send(send) = call {
            return Some(Self {
                sender: send.from,
                request: &send.request,
                signed: None,
            });
        }
        None
    }
}

/// HD22: the gateway sets the nonce of a transaction that the node signs, so that the transaction can be found again.
fn with_nonce(mut call: Call, nonce: u64) -> Call {
    if let Call::Send(send) = &mut call {
        send.request.nonce = Some(nonce);
    }
    call
}

fn require_trace(traced: TraceResult) -> Result<Sealed<Trace>, RpcOutcome> {
    match traced {
        TraceResult::Trace(trace) => Ok(trace),
        TraceResult::Refused(error) => Err(execution_rejected(error)),
    }
}
