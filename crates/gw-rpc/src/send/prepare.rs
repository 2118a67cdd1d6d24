//! Everything a send must pass before anything happens: traces in two blocks, their judgement, nonce, recipients.

use crate::{
    execute::{head, judge_again, judge_run, unanswered, untraced, unwilling},
    question::{Asked, Judged},
    record::Found,
    reply::Reply,
    state::Inner,
};
use gw_evm::{Call, CallRequest, ParamError, trace::Trace, wire::NextBlock};
use gw_node::{Block, Traced};
use gw_policy::{
    Sealed,
    access::{
        JudgedRuns, TraceVerdict, permissions,
        send::{check_nonce, created_addresses, recipients},
    },
    view,
};
use gw_store::Actor;
use gw_types::{Address, B256, Claims, DenyReason, ExternalId, OrgId, U256, UserId};

/// A send that passed everything: what forwarding needs to know.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) judged: Judged,
    /// What goes to the node.
    pub(super) call: Call,
    pub(super) facts: Facts,
    verdicts: [TraceVerdict; 2],
    block: Block,
}

/// The transaction as records and rows name it.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// For the audit entries of what is written.
    pub(super) actor: Actor,
    pub(super) user: UserId,
    pub(super) subject: ExternalId,
    pub(super) org: OrgId,
    /// Whether the request named it.
    pub(super) is_named: bool,
    pub(super) sender: Address,
    pub(super) nonce: u64,
    /// Known before forwarding for raw transactions only.
    pub(super) hash: Option<B256>,
    pub(super) recipients: Vec<ExternalId>,
    /// The top-level creation first, if there is one.
    pub(super) creates: Vec<Address>,
    pub(super) creates_at_top: bool,
    pub(super) claims: Claims,
    /// The runs by which it was judged.
    pub(super) judged: JudgedRuns,
}

/// The most addresses that one send reserves: each is a row that is written while others wait.
const MOST_RESERVED: usize = 32;

pub(super) async fn prepare(asked: &Asked, judged: Judged, found: &mut Found) -> Result<Ready, Reply> {
    let state = asked.state();
    let head = head(state)?;
    let block = head.block;
    // What is withheld of this block stands in the policy of now.
    let judged = asked.again(judged)?;
    let call = judged.permit.call().clone();
    let Transaction {
        sender,
        request,
        signed,
    } = Transaction::of(&call).ok_or(Reply::Internal)?;
    // The node runs it as whom the gateway names, never as an account of its own choosing.
    let request = CallRequest {
        from: Some(sender),
        ..request.clone()
    };
    // A block could not hold it, and the node would run it all the same to trace it.
    if request.gas.is_some_and(|gas| gas > block.gas_limit) {
        return Err(judged.invalid(ParamError::invalid("the gas limit is above the block's")));
    }
    // HIDE_BASE_FEE: the node refuses what is below the base fee; so all below the published price is refused here.
    let offered = request.gas_price.or(request.max_fee_per_gas);
    if state.knobs().hide_base_fee
        && offered.is_some_and(|offered| U256::from(offered) < view::published_price(head.gas_price))
    {
        return Err(judged.invalid(ParamError::invalid("max fee per gas less than eth_gasPrice")));
    }
    // HD2: as of now, and as of the block it would run in.
    let next = NextBlock {
        number: block.number.saturating_add(1),
        timestamp: block.timestamp.saturating_add(1),
    };
    let node = judged.node(state)?;
    let began = judged.now;
    let shown = judged.snapshot.visible_state(block.number);
    let traced = found
        .upstream(state, node.trace_send(&request, block.pin(), next, &shown))
        .await;
    let judged = asked.again(judged)?;
    if traced.is_ok() {
        state.pauses.came_back(began);
    }
    let traced = traced.map_err(|error| untraced(state, &judged, error))?;
    let (now, next) = (trace(traced.now)?, trace(traced.next)?);
    let verdict = judge_run(state, &judged, now, &block, found)?;
    let later = judge_run(state, &judged, next, &block, found)?;
    let pending = traced.pending_nonce;
    check_nonce(&judged.permit, &verdict, pending, state.knobs()).map_err(|error| judged.invalid(error))?;
    let recipients = recipients(&judged.snapshot, &judged.permit, &verdict).map_err(|error| judged.invalid(error))?;
    let recipients = match signed {
        Some((hash, _)) if !recipients.is_empty() && is_known(state, &judged, hash, found).await? => Vec::new(),
        Some(_) | None => recipients,
    };
    let mut creates = created_addresses(&judged.permit, &verdict, pending);
    for address in created_addresses(&judged.permit, &later, pending) {
        if !creates.contains(&address) {
            creates.push(address);
        }
    }
    // The rest is its organization's once it is mined (HD27); until then nobody reaches it.
    creates.truncate(MOST_RESERVED);
    let (Some(user), Some(org)) = (judged.permit.user(), judged.permit.org()) else {
        return Err(judged.denied(DenyReason::OrgAmbiguous));
    };
    let row = judged
        .snapshot
        .user(user)
        .ok_or_else(|| judged.denied(DenyReason::UnknownUser))?;
    let nonce = signed.map_or(pending, |(_, nonce)| nonce);
    let origin = asked.origin();
    let correlation_id = origin.correlation_id.as_ref().map(|id| id.as_str().to_owned());
    let facts = Facts {
        actor: Actor::user(user, &row.external_id).from_request(Some(origin.client.0), correlation_id),
        user,
        subject: row.external_id.clone(),
        org,
        is_named: judged.permit.named_org().is_some(),
        sender,
        nonce,
        hash: signed.map(|(hash, _)| hash),
        recipients,
        creates,
        creates_at_top: request.to.is_none(),
        claims: permissions(&judged.snapshot, user, org, judged.now).claims,
        // The node chooses the gas of a transaction that names none.
        judged: JudgedRuns::of(
            (block.number, block.hash),
            block.coinbase,
            [&verdict, &later],
            signed.is_none() && request.gas.is_none(),
        ),
    };
    Ok(Ready {
        judged,
        call: numbered(call, nonce),
        facts,
        verdicts: [verdict, later],
        block,
    })
}

impl Ready {
    /// The run on the state of the head, and for whom it was judged.
    pub(super) fn run(&self) -> (&Judged, &TraceVerdict) {
        let [now, _] = &self.verdicts;
        (&self.judged, now)
    }

    /// HD20: asked once more directly before forwarding; whoever changed the policy meanwhile is heard, on the call
    /// and on what its traces showed.
    pub(super) fn again(self, asked: &Asked) -> Result<Self, Reply> {
        let Self {
            judged,
            verdicts,
            block,
            ..
        } = self;
        let epoch = judged.permit.epoch();
        let judged = asked.again(judged)?;
        let verdicts = if judged.permit.epoch() == epoch {
            verdicts
        } else {
            let [now, next] = verdicts;
            let again = |verdict| judge_again(asked.state(), &judged, verdict, &block);
            [again(now)?, again(next)?]
        };
        Ok(Self {
            judged,
            verdicts,
            ..self
        })
    }
}

/// Whether these bytes were sent before (decision 59): who may see them was settled then, and a second send changes nothing
/// of it, whatever the node answers.
async fn is_known(state: &Inner, judged: &Judged, hash: B256, found: &mut Found) -> Result<bool, Reply> {
    if !judged.snapshot.visibility(hash).is_empty() {
        return Ok(true);
    }
    found
        .upstream(state, judged.node(state)?.has_transaction(hash))
        .await
        .map_err(|error| unanswered(state, &error))
}

/// What is sent, whoever signs it.
struct Transaction<'a> {
    sender: Address,
    request: &'a CallRequest,
    /// Hash and nonce of a signed transaction.
    signed: Option<(B256, u64)>,
}

impl<'a> Transaction<'a> {
    fn of(call: &'a Call) -> Option<Self> {
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

/// HD22: a transaction the node signs gets its nonce from the gateway, so that it can be found again.
fn numbered(mut call: Call, nonce: u64) -> Call {
    if let Call::Send(send) = &mut call {
        send.request.nonce = Some(nonce);
    }
    call
}

fn trace(traced: Traced) -> Result<Sealed<Trace>, Reply> {
    match traced {
        Traced::Trace(trace) => Ok(trace),
        Traced::Refused(error) => Err(unwilling(error)),
    }
}
