//! Parameters to [`Call`], one arm per row of spec/20 section 9.

use super::{
    BlockId, Call, Live, SendRequest, Simulation, SimulationKind, TransactionRef,
    block::{block_number, state_block},
    live, logs,
    object::call_object,
    params::{Args, Result, address, boolean, bytes, elements, members, must_be, number, slot, text, word},
};
use crate::{error::ParamError, method::Method, tx, visible_to::VisibleTo};
use serde_json::value::RawValue;

/// What parsing must know about the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainRules {
    /// The node's chain id.
    pub chain_id: u64,
}

/// A call, and the recipients named inside its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedCall {
    /// What to do.
    pub call: Call,
    /// `visibleTo` and `privateFor` found in the parameters (W4); to be united with those of the envelope.
    pub visible_to: VisibleTo,
}

/// The most storage keys of one `eth_getProof`, as nodes allow.
const MAX_SLOTS: usize = 1024;
/// The most reward percentiles of one `eth_feeHistory`, as nodes allow.
const MAX_PERCENTILES: usize = 100;
/// The longest fee history, as nodes serve.
const MAX_FEE_HISTORY: u64 = 1024;

/// Parses the parameters of `method`.
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
            tracer(args.optional(2))?;
            simulation(SimulationKind::TraceCall, &args, chain)?
        }
        Method::GetLogs => Call::Logs(logs::filter(args.required(0)?)?),
        Method::GetTransactionByHash => Call::Transaction(TransactionRef::Hash(hash(&args)?)),
        Method::GetTransactionByBlockHashAndIndex => {
            Call::Transaction(TransactionRef::BlockHashAndIndex(hash(&args)?, index(&args)?))
        }
        Method::GetTransactionByBlockNumberAndIndex => {
            Call::Transaction(TransactionRef::BlockNumberAndIndex(numbered(&args)?, index(&args)?))
        }
        Method::GetTransactionReceipt => Call::Receipt(hash(&args)?),
        Method::GetTransactionBySenderAndNonce => {
            let nonce = number(args.required(1)?, "nonce")?;
            Call::Transaction(TransactionRef::SenderAndNonce(account(&args)?, nonce))
        }
        Method::GetBlockByHash => Call::Block {
            block: hashed(&args)?,
            full: full(&args)?,
        },
        Method::GetBlockByNumber => Call::Block {
            block: numbered(&args)?,
            full: full(&args)?,
        },
        Method::GetBlockTransactionCountByHash => Call::BlockTransactionCount(hashed(&args)?),
        Method::GetBlockTransactionCountByNumber => Call::BlockTransactionCount(numbered(&args)?),
        Method::GetBlockReceipts => Call::BlockReceipts(state_block(Some(args.required(0)?))?),
        Method::GetUncleCountByBlockHash => hashed(&args).map(|_| Call::UncleCount)?,
        Method::GetUncleCountByBlockNumber => numbered(&args).map(|_| Call::UncleCount)?,
        Method::GetUncleByBlockHashAndIndex => hashed(&args).and(index(&args)).map(|_| Call::Uncle)?,
        Method::GetUncleByBlockNumberAndIndex => numbered(&args).and(index(&args)).map(|_| Call::Uncle)?,
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
            tracer(args.optional(1))?;
            Call::TraceTransaction(hash(&args)?)
        }
        Method::NewFilter => Call::Live(Live::NewFilter(logs::filter(args.required(0)?)?)),
        Method::NewBlockFilter => Call::Live(Live::NewBlockFilter),
        Method::GetFilterChanges => Call::Live(Live::Changes(live::id(args.required(0)?)?)),
        Method::GetFilterLogs => Call::Live(Live::Logs(live::id(args.required(0)?)?)),
        Method::UninstallFilter => Call::Live(Live::Uninstall(live::id(args.required(0)?)?)),
        Method::Subscribe => Call::Live(Live::Subscribe(live::topic(args.required(0)?, args.optional(1))?)),
        Method::Unsubscribe => Call::Live(Live::Unsubscribe(live::id(args.required(0)?)?)),
    };
    Ok(ParsedCall { call, visible_to })
}

/// How many positions a method has.
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

fn hashed(args: &Args<'_>) -> Result<BlockId> {
    Ok(BlockId::Hash {
        hash: hash(args)?,
        require_canonical: false,
    })
}

fn numbered(args: &Args<'_>) -> Result<BlockId> {
    block_number(args.required(0)?)
}

fn index(args: &Args<'_>) -> Result<u64> {
    number(args.required(1)?, "index")
}

fn full(args: &Args<'_>) -> Result<bool> {
    args.optional(1)
        .map_or(Ok(false), |raw| boolean(raw, "the second parameter"))
}

fn fee_history(args: &Args<'_>) -> Result<Call> {
    let count = args.required(0)?;
    // Nodes take a plain number here, and clients send one.
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
    let rising = list.is_sorted() && list.iter().all(|percentile| (0.0..=100.0).contains(percentile));
    if !rising || list.len() > MAX_PERCENTILES {
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
    // B4: state and block overrides; position 2 of debug_traceCall is its own options.
    let overrides = match kind {
        SimulationKind::Call | SimulationKind::EstimateGas => [args.optional(2), args.optional(3)],
        SimulationKind::CreateAccessList | SimulationKind::TraceCall => [None, None],
    };
    overrides.into_iter().flatten().try_for_each(no_override)?;
    let (request, _) = call_object(args.required(0)?, chain.chain_id)?;
    Ok(Call::Simulate(Box::new(Simulation {
        kind,
        request,
        block: state_block(args.optional(1))?,
    })))
}

/// Overrides would run state that no rule has judged; an empty one changes nothing.
fn no_override(raw: &RawValue) -> Result<()> {
    let empty = raw
        .get()
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .is_some_and(|body| body.trim_ascii().is_empty());
    if empty {
        Ok(())
    } else {
        Err(ParamError::invalid("state and block overrides are not supported"))
    }
}

/// Decision 6: callTracer, and nothing that would run another state.
fn tracer(config: Option<&RawValue>) -> Result<()> {
    let only = || ParamError::invalid("only the callTracer is supported");
    let names = &["tracer", "stateOverrides", "blockOverrides", "txIndex"];
    let [tracer, state, block, tx_index] = members(config.ok_or_else(only)?, "trace options", names)?;
    if tracer.and_then(text) != Some("callTracer") {
        return Err(only());
    }
    if tx_index.is_some() {
        return Err(ParamError::invalid("txIndex is not supported"));
    }
    [state, block].into_iter().flatten().try_for_each(no_override)
}

/// Back-compatibility (W4): `params[1]` of a raw send may carry the recipients.
fn recipients(options: &RawValue) -> Result<VisibleTo> {
    let lists = members(options, "send options", &["visibleTo", "privateFor"])?;
    Ok(lists
        .into_iter()
        .flatten()
        .map(VisibleTo::read)
        .fold(VisibleTo::default(), VisibleTo::union))
}
