//! Opening the node's answers for one viewer (spec/30 sections 5 and 6).
//!
//! Every function takes a [`Sealed`](crate::Sealed) answer and gives [`Disclosed`] text. Objects are allowlists of
//! members (HD11): a member not listed is dropped, a listed one of the wrong shape makes the whole answer malformed,
//! and a malformed answer is `null`, `[]` or `"0x0"`, never the node's body (section 5.2).
//!
//! Not here: whether the method may be called at all (`access`), and who sees which address
//! ([`visibility`](crate::visibility)).

mod block;
mod chain;
mod error;
mod live;
mod log;
mod named;
mod receipt;
mod scan;
mod shape;
mod simulation;
mod state;
mod transaction;
mod tree;
mod unexamined;

pub use block::{BlockTransactions, block, block_transaction_count};
pub use chain::{FeeFacts, fee_history, figure, flag, local, published_price, published_tip, syncing, text};
pub use error::{DisclosedError, ErrorContext, node_error};
pub use live::{Item, header, listed, rows};
pub use log::{
    LogsAnswer, PartiesNeeded, RunLog, TxParties, logs, parties_needed, run_logs, shows_nothing, upstream_filter,
};
pub use named::blocks_named;
pub use receipt::{block_receipts, receipt};
pub use simulation::{access_list, call_result, gas_used, reads_base_fee, untraced_call_result};
pub use state::{balance, code, is_no_code, nonce, proof, runs_no_code, sent_hash, storage};
pub use transaction::transaction;
pub use tree::{call_tree, mined_call_tree, traceable};
pub use unexamined::unexamined;

use crate::{
    knobs::AdminTx,
    sealed::Disclosed,
    snapshot::Moment,
    visibility::{Admission, Person, Viewer},
};
use alloy_primitives::{Address, B256};
use scan::Malformed;

/// What stands in a dry run for an event of an administrator's own contract that the user would not see.
const HIDDEN_FROM_TARGET: &str = "\"hidden from the target\"";

/// Opens an answer, with the constant that stands in place of a malformed one.
fn malformed_as(otherwise: Disclosed, open: impl FnOnce() -> Result<Disclosed, Malformed>) -> Disclosed {
    open().unwrap_or_else(|Malformed| otherwise.in_place_of_malformed())
}

/// Who a transaction is from and to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parties {
    tx_hash: B256,
    from: Address,
    to: Option<Address>,
    /// When it was carried out.
    moment: Moment,
}

impl Parties {
    fn admission(&self, viewer: &Viewer<'_>) -> Admission {
        viewer.admission(self.tx_hash, self.from, self.to, self.moment)
    }

    /// The same of one person alone.
    fn admission_of(&self, person: &Person<'_>) -> Admission {
        person.admission(self.tx_hash, self.from, self.to, self.moment)
    }
}

/// What of a transaction or receipt shows to one person besides the members open to whoever sees it at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Open {
    from: bool,
    to: bool,
    /// Everything else that could name the sender (K7).
    rest: bool,
}

impl Open {
    /// Participants and those it was shared with see both sides (section 2.4); for an administrator everything is masked
    /// that names or gives back the sender (K7, section 5.2), and for whoever sees but a log of it.
    fn to(person: &Person<'_>, parties: &Parties) -> Self {
        let masks = match parties.admission_of(person) {
            Admission::Participant | Admission::Shared => false,
            Admission::OrgAdmin => person.knobs.admin_tx == AdminTx::Masked,
            Admission::None => true,
        };
        Self {
            from: !masks || person.sees(parties.from),
            to: !masks
                || parties
                    .to
                    .is_none_or(|to| person.sees(to) || person.sees_at(to, parties.moment)),
            rest: !masks,
        }
    }
}

/// What stands in place of a member: nothing where it shows.
fn in_place(
    viewer: &Viewer<'_>,
    parties: &Parties,
) -> impl Fn(fn(&Open) -> bool, &'static str) -> Option<&'static str> {
    let own = Open::to(viewer.person(), parties);
    let beside = viewer.operator().map(|operator| Open::to(operator, parties));
    move |open, constant| (!(open(&own) && beside.as_ref().is_none_or(open))).then_some(constant)
}
