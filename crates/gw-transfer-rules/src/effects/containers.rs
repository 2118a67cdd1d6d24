//! Unpacks calls that contain calls (the row "containers" of spec/60 section 6).
//!
//! The list has, besides the containers of the rule, the `execute` and `executeBatch` functions of contract accounts:
//! the calldata of a user operation consists of them. A malformed container contains nothing, because its contract
//! reverts.

use super::{
    EffectsError, PartyRole,
    calls::{Selector, selector},
    words::Words,
};
use alloy_primitives::hex;
use gw_types::{Address, U256};

/// The depth to which containers are unpacked; the call of the transaction has depth zero.
pub const MAX_CONTAINER_DEPTH: usize = 8;
/// The number of calls in the containers of one transaction.
pub const MAX_CONTAINED_CALLS: usize = 256;

const MULTICALL: Selector = hex!("ac9650d8");
const MULTICALL_WITH_DEADLINE: Selector = hex!("5ae401dc");
const AGGREGATE: Selector = hex!("252dba42");
const AGGREGATE3: Selector = hex!("82ad56cb");
const AGGREGATE3_VALUE: Selector = hex!("174dea71");
/// `execTransaction` of a Safe.
const EXEC_TRANSACTION: Selector = hex!("6a761202");
const MULTI_SEND: Selector = hex!("8d80ff0a");
/// `execute` of ERC-7579.
const EXECUTE_MODE: Selector = hex!("e9ae5c53");
/// `handleOps` of an ERC-4337 entry point before 0.7.
const HANDLE_OPS: Selector = hex!("1fad948c");
/// `handleOps` since 0.7, with packed operations.
const HANDLE_PACKED_OPS: Selector = hex!("765e827f");
const EXECUTE: Selector = hex!("b61d27f6");
const EXECUTE_BATCH: Selector = hex!("34fcd5be");
const EXECUTE_BATCH_ARRAYS: Selector = hex!("47e1da2a");

/// A call that calldata shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StaticCall<'a> {
    /// The caller.
    pub(super) from: Address,
    /// The account whose state and balance the code uses.
    pub(super) account: Address,
    /// The account whose code runs; another one than `account` in a delegatecall.
    pub(super) code: Address,
    /// Wei.
    pub(super) value: U256,
    /// Calldata.
    pub(super) input: &'a [u8],
}

/// A call with everything that it contains.
#[derive(Debug, Default)]
pub(super) struct Unpacked<'a> {
    /// The call, then the contained calls in the order in which they run.
    pub(super) calls: Vec<StaticCall<'a>>,
    /// Addresses that containers name besides their calls.
    pub(super) parties: Vec<(PartyRole, Address)>,
}

/// Unpacks a call.
///
/// # Errors
/// [`EffectsError`] if containers nest deeper than [`MAX_CONTAINER_DEPTH`], or contain more than
/// [`MAX_CONTAINED_CALLS`] calls.
pub(super) fn unpack(top: StaticCall<'_>) -> Result<Unpacked<'_>, EffectsError> {
    let mut unpacked = Unpacked::default();
    let mut contained = 0_usize;
    let mut pending = vec![(top, 0_usize)];
    while let Some((call, depth)) = pending.pop() {
        unpacked.calls.push(call);
        let Some(inner) = contents(&call) else { continue };
        if depth >= MAX_CONTAINER_DEPTH {
            return Err(EffectsError::ContainersTooDeep);
        }
        contained = contained.saturating_add(inner.calls.len());
        if contained > MAX_CONTAINED_CALLS {
            return Err(EffectsError::TooManyContainedCalls);
        }
        unpacked.parties.extend(inner.parties);
        pending.extend(
            inner
                .calls
                .into_iter()
                .rev()
                .map(|call| (call, depth.saturating_add(1))),
        );
    }
    Ok(unpacked)
}

/// What one call contains; `None` for a call that is no container.
fn contents<'a>(call: &StaticCall<'a>) -> Option<Unpacked<'a>> {
    let arguments = |heads| Words::arguments(call.input, heads);
    match selector(call.input)? {
        MULTICALL => calls(own_functions(call, &arguments(1)?, 0)?),
        MULTICALL_WITH_DEADLINE => calls(own_functions(call, &arguments(2)?, 1)?),
        AGGREGATE => calls(tuples(call, &arguments(1)?, 0, TupleShape { value: None, data: 1 })?),
        AGGREGATE3 => calls(tuples(call, &arguments(1)?, 0, TupleShape { value: None, data: 2 })?),
        AGGREGATE3_VALUE => {
            let shape = TupleShape {
                value: Some(2),
                data: 3,
            };
            calls(tuples(call, &arguments(1)?, 0, shape)?)
        }
        EXECUTE => {
            let words = arguments(3)?;
            let inner = StaticCall::new(call.account, words.address(0)?, words.uint(1)?, words.bytes(2)?);
            calls(vec![inner])
        }
        EXECUTE_BATCH => calls(tuples(call, &arguments(1)?, 0, EXECUTION)?),
        EXECUTE_BATCH_ARRAYS => calls(parallel_arrays(call, &arguments(3)?)?),
        EXEC_TRANSACTION => safe_transaction(call, &arguments(10)?),
        MULTI_SEND => calls(packed_transactions(call, arguments(1)?.bytes(0)?)?),
        EXECUTE_MODE => calls(execution(call, &arguments(2)?)?),
        HANDLE_OPS => user_operations(call, &arguments(2)?, 9),
        HANDLE_PACKED_OPS => user_operations(call, &arguments(2)?, 7),
        _ => None,
    }
}

const fn calls(calls: Vec<StaticCall<'_>>) -> Option<Unpacked<'_>> {
    Some(Unpacked {
        calls,
        parties: Vec::new(),
    })
}

/// The positions of value and calldata in a tuple whose first member is the target.
struct TupleShape {
    value: Option<usize>,
    data: usize,
}

/// `(address target, uint256 value, bytes data)`
const EXECUTION: TupleShape = TupleShape {
    value: Some(1),
    data: 2,
};

/// `bytes[]`: functions of the called contract itself, each by delegatecall.
fn own_functions<'a>(call: &StaticCall<'a>, words: &Words<'a>, index: usize) -> Option<Vec<StaticCall<'a>>> {
    let (count, elements) = words.array(index)?;
    let inner = |at| {
        Some(StaticCall {
            value: U256::ZERO,
            code: call.account,
            input: elements.bytes(at)?,
            ..*call
        })
    };
    (0..bounded(count)).map(inner).collect()
}

/// An array of tuples, each a call by the account.
fn tuples<'a>(
    call: &StaticCall<'a>,
    words: &Words<'a>,
    index: usize,
    shape: TupleShape,
) -> Option<Vec<StaticCall<'a>>> {
    let (count, elements) = words.array(index)?;
    let inner = |at| {
        let tuple = elements.pointer(at)?;
        let value = shape.value.map_or(Some(U256::ZERO), |index| tuple.uint(index))?;
        Some(StaticCall::new(
            call.account,
            tuple.address(0)?,
            value,
            tuple.bytes(shape.data)?,
        ))
    };
    (0..bounded(count)).map(inner).collect()
}

/// `address[], uint256[], bytes[]`. Accounts read missing values as zero, if the array of values is empty.
fn parallel_arrays<'a>(call: &StaticCall<'a>, words: &Words<'a>) -> Option<Vec<StaticCall<'a>>> {
    let ((count, targets), (value_count, values), (data_count, contents)) =
        (words.array(0)?, words.array(1)?, words.array(2)?);
    if data_count != count || (value_count != count && value_count != 0) {
        return None;
    }
    let inner = |at| {
        let value = if value_count == 0 { U256::ZERO } else { values.uint(at)? };
        Some(StaticCall::new(
            call.account,
            targets.address(at)?,
            value,
            contents.bytes(at)?,
        ))
    };
    (0..bounded(count)).map(inner).collect()
}

/// `execTransaction` of a Safe. Operation 1 is a delegatecall. The refund receiver may be paid.
fn safe_transaction<'a>(call: &StaticCall<'a>, words: &Words<'a>) -> Option<Unpacked<'a>> {
    let (target, value, input) = (words.address(0)?, words.uint(1)?, words.bytes(2)?);
    let inner = operation(call, words.uint(3)?, target, value, input);
    Some(Unpacked {
        calls: vec![inner],
        parties: vec![(PartyRole::Recipient, words.address(8)?)],
    })
}

/// A call, or for operation 1 a delegatecall, by the account of `call`.
fn operation<'a>(
    call: &StaticCall<'a>,
    operation: U256,
    target: Address,
    value: U256,
    input: &'a [u8],
) -> StaticCall<'a> {
    if operation == U256::ONE {
        StaticCall {
            code: target,
            value: U256::ZERO,
            input,
            ..*call
        }
    } else {
        StaticCall::new(call.account, target, value, input)
    }
}

/// The packed transactions of `multiSend`: operation (1 byte), target (20), value (32), length (32), data. The contract
/// reads missing bytes as zeros.
fn packed_transactions<'a>(call: &StaticCall<'a>, mut rest: &'a [u8]) -> Option<Vec<StaticCall<'a>>> {
    let mut inner = Vec::new();
    while let Some((kind, after)) = rest.split_first() {
        let (target, after) = after.split_first_chunk::<20>()?;
        let (value, after) = after.split_first_chunk::<32>()?;
        let (length, after) = after.split_first_chunk::<32>()?;
        let length = usize::try_from(U256::from_be_bytes(*length)).ok()?;
        let (input, after) = after.split_at_checked(length)?;
        rest = after;
        let value = U256::from_be_bytes(*value);
        inner.push(operation(call, U256::from(*kind), Address::from(target), value, input));
        if inner.len() > MAX_CONTAINED_CALLS {
            break;
        }
    }
    Some(inner)
}

/// `execute(bytes32 mode, bytes executionCalldata)` of ERC-7579. The first byte of the mode is the type of the call.
fn execution<'a>(call: &StaticCall<'a>, words: &Words<'a>) -> Option<Vec<StaticCall<'a>>> {
    const SINGLE: u8 = 0x00;
    const BATCH: u8 = 0x01;
    const DELEGATE: u8 = 0xff;
    let content = words.bytes(1)?;
    match *words.word(0)?.first()? {
        SINGLE => {
            let (target, rest) = content.split_first_chunk::<20>()?;
            let (value, input) = rest.split_first_chunk::<32>()?;
            let value = U256::from_be_bytes(*value);
            Some(vec![StaticCall::new(call.account, Address::from(target), value, input)])
        }
        BATCH => tuples(call, &Words::new(content), 0, EXECUTION),
        DELEGATE => {
            let (target, input) = content.split_first_chunk::<20>()?;
            Some(vec![operation(
                call,
                U256::ONE,
                Address::from(target),
                U256::ZERO,
                input,
            )])
        }
        _ => None,
    }
}

/// The operations of `handleOps(ops, beneficiary)`. `paymaster` is the position of `paymasterAndData` in an operation.
fn user_operations<'a>(call: &StaticCall<'a>, words: &Words<'a>, paymaster: usize) -> Option<Unpacked<'a>> {
    const SENDER: usize = 0;
    const INIT_CODE: usize = 2;
    const CALL_DATA: usize = 3;
    let (count, elements) = words.array(0)?;
    let mut unpacked = Unpacked {
        calls: Vec::new(),
        parties: vec![(PartyRole::Recipient, words.address(1)?)],
    };
    for at in 0..bounded(count) {
        let fields = elements.pointer(at)?;
        let account = fields.address(SENDER)?;
        let inner = StaticCall::new(call.account, account, U256::ZERO, fields.bytes(CALL_DATA)?);
        unpacked.calls.push(inner);
        // Both fields start with the address of a contract, if they are not empty.
        for field in [INIT_CODE, paymaster] {
            let contract = fields.bytes(field)?.first_chunk::<20>();
            unpacked
                .parties
                .extend(contract.map(|contract| (PartyRole::Code, Address::from(contract))));
        }
    }
    Some(unpacked)
}

/// One more element than a transaction may contain is enough to refuse it.
fn bounded(count: usize) -> usize {
    count.min(MAX_CONTAINED_CALLS.saturating_add(1))
}

impl<'a> StaticCall<'a> {
    /// An ordinary call.
    pub(super) const fn new(from: Address, to: Address, value: U256, input: &'a [u8]) -> Self {
        Self {
            from,
            account: to,
            code: to,
            value,
            input,
        }
    }

    /// Whether the code is that of another account.
    pub(super) fn is_delegate(&self) -> bool {
        self.code != self.account
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::keccak256;

    #[test]
    fn selectors_are_hashes_of_signatures() {
        let operation = "(address,uint256,bytes,bytes,uint256,uint256,uint256,uint256,uint256,bytes,bytes)";
        let packed = "(address,uint256,bytes,bytes,bytes32,uint256,bytes32,bytes,bytes)";
        for (selector, signature) in [
            (MULTICALL, "multicall(bytes[])"),
            (MULTICALL_WITH_DEADLINE, "multicall(uint256,bytes[])"),
            (AGGREGATE, "aggregate((address,bytes)[])"),
            (AGGREGATE3, "aggregate3((address,bool,bytes)[])"),
            (AGGREGATE3_VALUE, "aggregate3Value((address,bool,uint256,bytes)[])"),
            (
                EXEC_TRANSACTION,
                "execTransaction(address,uint256,bytes,uint8,uint256,uint256,uint256,address,address,bytes)",
            ),
            (MULTI_SEND, "multiSend(bytes)"),
            (EXECUTE_MODE, "execute(bytes32,bytes)"),
            (HANDLE_OPS, &format!("handleOps({operation}[],address)")),
            (HANDLE_PACKED_OPS, &format!("handleOps({packed}[],address)")),
            (EXECUTE, "execute(address,uint256,bytes)"),
            (EXECUTE_BATCH, "executeBatch((address,uint256,bytes)[])"),
            (EXECUTE_BATCH_ARRAYS, "executeBatch(address[],uint256[],bytes[])"),
        ] {
            assert_eq!(keccak256(signature).0[..4], selector, "{signature}");
        }
    }
}
