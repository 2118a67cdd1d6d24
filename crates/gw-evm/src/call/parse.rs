//! Parses parameters into a [`Call`], with one match arm per row of spec/20 section 9.

use super::{
    BlockId, Call, SendRequest, Simulation, SimulationKind, SubscriptionCall, TransactionRef,
    block::{block_number, state_block},
    logs,
    object::call_object,
    params::{Args, Result, address, boolean, bytes, elements, members, must_be, number, slot, text, word},
    subscription,
};
use crate::{error::ParamError, method::Method, tx, visible_to::VisibleTo};
use serde_json::value::RawValue;

/// Properties of the chain that parsing depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainRules {
    /// The node's chain id.
    pub chain_id: u64,
}

/// A call, and the recipients in its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedCall {
    /// The call.
    pub call: Call,
    /// `visibleTo` and `privateFor` in the parameters (W4). The caller of [`parse`] adds those of the envelope.
    pub visible_to: VisibleTo,
}

/// Maximum number of storage keys of one `eth_getProof`; nodes have the same limit.
const MAX_SLOTS: usize = 1024;
/// Maximum number of reward percentiles of one `eth_feeHistory`; nodes have the same limit.
const MAX_PERCENTILES: usize = 100;
/// Maximum number of blocks of a fee history; nodes have the same limit.
const MAX_FEE_HISTORY: u64 = 1024;

/// Parses the parameters of `method`.
///
/// # Errors
///
/// A [`ParamError`] for malformed, unsupported or too large parameters.
pub fn parse(method: Method, params: Option<&RawValue>, chain: ChainRules) -> Result<ParsedCall> {
    let args = Args::read(params, arity(method))?;
    let mut visible_to = VisibleTo::default();
    let call = match method {
        Method::BlockNumber
        | Method::ChainId
        | Method::GasPrice
        | Method::NetVersion
        | Method::NetListening
        | Method::ClientVersion
        | Method::Syncing
        | Method::MaxPriorityFeePerGas
        | Method::BlobBaseFee
        | Method::ProtocolVersion
        | Method::PeerCount
        | Method::Accounts
        | Method::Coinbase => Call::Plain(method),
        Method::FeeHistory => fee_history(&args)?,
        Method::Sha3 => Call::Sha3(bytes(args.required(0)?, "data")?),
        Method::GetBalance => Call::Balance(account(&args)?, state_block(args.optional(1))?),
        Method::GetTransactionCount => Call::Nonce(account(&args)?, state_block(args.optional(1))?),
        Method::GetCode => Call::Code(account(&args)?, state_block(args.optional(1))?),
        Method::GetStorageAt => {
            let (slot, full_word) = slot(args.required(1)?, "storage slot")?;
            Call::Storage {
                address: account(&args)?,
                slot,
                full_word,
                block: state_block(args.optional(2))?,
            }
        }
        Method::GetProof => proof(&args)?,
        Method::Call => simulation(SimulationKind::Call, &args, chain)?,
        Method::EstimateGas => simulation(SimulationKind::EstimateGas, &args, chain)?,
        Method::CreateAccessList => simulation(SimulationKind::CreateAccessList, &args, chain)?,
        Method::DebugTraceCall => {
            check_tracer(args.optional(2))?;
            simulation(SimulationKind::TraceCall, &args, chain)?
        }
        Method::GetLogs => Call::Logs(logs::filter(args.required(0)?)?),
        Method::GetTransactionByHash => Call::Transaction(TransactionRef::Hash(hash(&args)?)),
        Method::GetTransactionByBlockHashAndIndex => {
            Call::Transaction(TransactionRef::BlockHashAndIndex(hash(&args)?, index(&args)?))
        }
        Method::GetTransactionByBlockNumberAndIndex => Call::Transaction(TransactionRef::BlockNumberAndIndex(
            block_by_number(&args)?,
            index(&args)?,
        )),
        Method::GetTransactionReceipt => Call::Receipt(hash(&args)?),
        Method::GetTransactionBySenderAndNonce => {
            let nonce = number(args.required(1)?, "nonce")?;
            Call::Transaction(TransactionRef::SenderAndNonce(account(&args)?, nonce))
        }
        Method::GetBlockByHash => Call::Block {
            block: block_by_hash(&args)?,
            full: full_transactions(&args)?,
        },
        Method::GetBlockByNumber => Call::Block {
            block: block_by_number(&args)?,
            full: full_transactions(&args)?,
        },
        Method::GetBlockTransactionCountByHash => Call::BlockTransactionCount(block_by_hash(&args)?),
        Method::GetBlockTransactionCountByNumber => Call::BlockTransactionCount(block_by_number(&args)?),
        Method::GetBlockReceipts => Call::BlockReceipts(state_block(Some(args.required(0)?))?),
        Method::GetUncleCountByBlockHash => block_by_hash(&args).map(|_| Call::UncleCount)?,
        Method::GetUncleCountByBlockNumber => block_by_number(&args).map(|_| Call::UncleCount)?,
        Method::GetUncleByBlockHashAndIndex => block_by_hash(&args).and(index(&args)).map(|_| Call::Uncle)?,
        Method::GetUncleByBlockNumberAndIndex => block_by_number(&args).and(index(&args)).map(|_| Call::Uncle)?,
        Method::SendTransaction => {
            let (request, recipients) = call_object(args.required(0)?, chain.chain_id)?;
            visible_to = recipients;
            let from = request.from.ok_or_else(|| ParamError::invalid("from is required"))?;
            Call::Send(Box::new(SendRequest { from, request }))
        }
        Method::SendRawTransaction => {
            let raw = bytes(args.required(0)?, "raw transaction")?;
            if let Some(options) = args.optional(1) {
                visible_to = recipients(options)?;
            }
            Call::SendRaw(Box::new(tx::decode(raw, chain)?))
        }
        Method::DebugTraceTransaction => {
            check_tracer(args.optional(1))?;
            Call::TraceTransaction(hash(&args)?)
        }
        Method::NewFilter => Call::Subscription(SubscriptionCall::NewFilter(logs::filter(args.required(0)?)?)),
        Method::NewBlockFilter => Call::Subscription(SubscriptionCall::NewBlockFilter),
        Method::GetFilterChanges => Call::Subscription(SubscriptionCall::Changes(subscription::id(args.required(0)?)?)),
        Method::GetFilterLogs => Call::Subscription(SubscriptionCall::Logs(subscription::id(args.required(0)?)?)),
        Method::UninstallFilter => {
            Call::Subscription(SubscriptionCall::Uninstall(subscription::id(args.required(0)?)?))
        }
        Method::Subscribe => Call::Subscription(SubscriptionCall::Subscribe(subscription::topic(
            args.required(0)?,
            args.optional(1),
        )?)),
        Method::Unsubscribe => Call::Subscription(SubscriptionCall::Unsubscribe(subscription::id(args.required(0)?)?)),
    };
    Ok(ParsedCall { call, visible_to })
}

/// The number of positional parameters of a method.
fn arity(method: Method) -> usize {
    match method {
        Method::BlockNumber
        | Method::ChainId
        | Method::GasPrice
        | Method::NetVersion
        | Method::NetListening
        | Method::ClientVersion
        | Method::Syncing
        | Method::MaxPriorityFeePerGas
        | Method::BlobBaseFee
        | Method::ProtocolVersion
        | Method::PeerCount
        | Method::Accounts
        | Method::Coinbase
        | Method::NewBlockFilter => 0,
        Method::Sha3
        | Method::GetLogs
        | Method::GetTransactionByHash
        | Method::GetTransactionReceipt
        | Method::GetBlockTransactionCountByHash
        | Method::GetBlockTransactionCountByNumber
        | Method::GetBlockReceipts
        | Method::GetUncleCountByBlockHash
        | Method::GetUncleCountByBlockNumber
        | Method::SendTransaction
        | Method::NewFilter
        | Method::GetFilterChanges
        | Method::GetFilterLogs
        | Method::UninstallFilter
        | Method::Unsubscribe => 1,
        Method::GetBalance
        | Method::GetTransactionCount
        | Method::GetCode
        | Method::CreateAccessList
        | Method::GetTransactionByBlockHashAndIndex
        | Method::GetTransactionByBlockNumberAndIndex
        | Method::GetTransactionBySenderAndNonce
        | Method::GetBlockByHash
        | Method::GetBlockByNumber
        | Method::GetUncleByBlockHashAndIndex
        | Method::GetUncleByBlockNumberAndIndex
        | Method::SendRawTransaction
        | Method::DebugTraceTransaction
        | Method::Subscribe => 2,
        Method::FeeHistory | Method::GetStorageAt | Method::GetProof | Method::DebugTraceCall => 3,
        Method::Call | Method::EstimateGas => 4,
    }
}

fn account(args: &Args<'_>) -> Result<alloy_primitives::Address> {
    address(args.required(0)?, "address")
}

fn hash(args: &Args<'_>) -> Result<alloy_primitives::B256> {
    word(args.required(0)?, "hash")
}

fn block_by_hash(args: &Args<'_>) -> Result<BlockId> {
    Ok(BlockId::Hash {
        hash: hash(args)?,
        require_canonical: false,
    })
}

fn block_by_number(args: &Args<'_>) -> Result<BlockId> {
    block_number(args.required(0)?)
}

fn index(args: &Args<'_>) -> Result<u64> {
    number(args.required(1)?, "index")
}

fn full_transactions(args: &Args<'_>) -> Result<bool> {
    args.optional(1)
        .map_or(Ok(false), |raw| boolean(raw, "the second parameter"))
}

fn fee_history(args: &Args<'_>) -> Result<Call> {
    let count = args.required(0)?;
    // Nodes also accept a JSON number here, and clients send one.
    let count = match serde_json::from_str(count.get()) {
        Ok(count) => count,
        Err(_) => number(count, "block count")?,
    };
    let newest = args.optional(1).map_or(Ok(BlockId::LATEST), block_number)?;
    Ok(Call::FeeHistory {
        count: u64::min(count, MAX_FEE_HISTORY),
        newest,
        percentiles: args.optional(2).map(percentiles).transpose()?,
    })
}

fn percentiles(raw: &RawValue) -> Result<Vec<f64>> {
    let list: Vec<f64> =
        serde_json::from_str(raw.get()).map_err(|_| must_be("reward percentiles", "an array of numbers"))?;
    let is_valid = list.is_sorted() && list.iter().all(|percentile| (0.0..=100.0).contains(percentile));
    if !is_valid || list.len() > MAX_PERCENTILES {
        return Err(must_be(
            "reward percentiles",
            "at most 100 rising numbers from 0 to 100",
        ));
    }
    Ok(list)
}

fn proof(args: &Args<'_>) -> Result<Call> {
    let keys = args
        .optional(1)
        .map(|raw| elements(raw, "storage keys"))
        .transpose()?
        .unwrap_or_default();
    if keys.len() > MAX_SLOTS {
        return Err(ParamError::limit("too many storage keys"));
    }
    let slots = keys
        .into_iter()
        .map(|raw| slot(raw, "storage key").map(|(slot, _)| slot))
        .collect::<Result<_>>()?;
    Ok(Call::Proof {
        address: account(args)?,
        slots,
        block: state_block(args.optional(2))?,
    })
}

fn simulation(kind: SimulationKind, args: &Args<'_>, chain: ChainRules) -> Result<Call> {
    // B4: state and block overrides. Position 2 of `debug_traceCall` has the trace options instead.
    let overrides = match kind {
        SimulationKind::Call | SimulationKind::EstimateGas => [args.optional(2), args.optional(3)],
        SimulationKind::CreateAccessList | SimulationKind::TraceCall => [None, None],
    };
    overrides.into_iter().flatten().try_for_each(reject_override)?;
    let (request, _) = call_object(args.required(0)?, chain.chain_id)?;
    Ok(Call::Simulate(Box::new(Simulation {
        kind,
        request,
        block: state_block(args.optional(1))?,
    })))
}

/// Rejects overrides: no rule covers the state that they would execute on. An empty override changes nothing and is
/// accepted.
fn reject_override(raw: &RawValue) -> Result<()> {
    let is_empty = raw
        .get()
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .is_some_and(|body| body.trim_ascii().is_empty());
    if is_empty {
        Ok(())
    } else {
        Err(ParamError::invalid("state and block overrides are not supported"))
    }
}

/// Accepts only the callTracer, without options that would change the executed state (decision 6).
fn check_tracer(config: Option<&RawValue>) -> Result<()> {
    let unsupported_tracer = || ParamError::invalid("only the callTracer is supported");
    let names = &["tracer", "stateOverrides", "blockOverrides", "txIndex"];
    let [tracer, state, block, tx_index] = members(config.ok_or_else(unsupported_tracer)?, "trace options", names)?;
    if tracer.and_then(text) != Some("callTracer") {
        return Err(unsupported_tracer());
    }
    if tx_index.is_some() {
        return Err(ParamError::invalid("txIndex is not supported"));
    }
    [state, block].into_iter().flatten().try_for_each(reject_override)
}

/// Reads the recipients from `params[1]` of a raw send, for backward compatibility (W4).
fn recipients(options: &RawValue) -> Result<VisibleTo> {
    let lists = members(options, "send options", &["visibleTo", "privateFor"])?;
    Ok(lists
        .into_iter()
        .flatten()
        .map(VisibleTo::read)
        .fold(VisibleTo::default(), VisibleTo::union))
}
