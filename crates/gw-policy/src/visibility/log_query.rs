//! Which logs of a query a viewer sees, evaluated on typed rows (spec/30 section 6; HD1, decisions 20 and 40): the
//! filter that is sent upstream, the transactions whose parties must be known, and the rows of the result.

use super::{LogRow, LogViewer, LogVisibility, MalformedData, TransactionRoles, Viewer, is_precompile};
use gw_evm::{LogFilter, TopicFilter, abi::clean_address};
use gw_types::{Address, B256};
use std::collections::{HashMap, HashSet};

/// The log filter to send upstream (HD1): a topic position with an address-shaped word that is not Full becomes the
/// wildcard. [`LogQuery`] then applies the caller's own criteria.
#[must_use]
pub fn upstream_filter(viewer: &Viewer<'_>, filter: &LogFilter) -> LogFilter {
    let may_disclose = |word: &B256| clean_address(word).is_none_or(|address| viewer.sees(address));
    let topics = filter.topics.iter().map(|position| match position {
        TopicFilter::OneOf(words) if words.iter().all(may_disclose) => position.clone(),
        TopicFilter::OneOf(_) | TopicFilter::Any => TopicFilter::Any,
    });
    LogFilter {
        topics: topics.collect(),
        ..filter.clone()
    }
}

/// Sender and receiver of a transaction. They depend on the signed transaction alone, so its hash determines them: they
/// are the same in every block and for every viewer.
///
/// As [`Sealed`](crate::sealed::Sealed) data, they have no getter and no `Serialize`, and `Debug` does not print them:
///
/// ```
/// use gw_policy::view::TransactionParties;
/// let sender = gw_types::Address::repeat_byte(0xaa);
/// assert!(!format!("{:?}", TransactionParties::new(sender, None)).contains("aa"));
/// ```
///
/// ```compile_fail,E0616
/// use gw_policy::view::TransactionParties;
/// let _ = TransactionParties::new(gw_types::Address::ZERO, None).from;
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TransactionParties {
    from: Address,
    to: Option<Address>,
}

impl TransactionParties {
    /// The parties of a transaction; `to` is `None` for a deployment.
    #[must_use]
    pub const fn new(from: Address, to: Option<Address>) -> Self {
        Self { from, to }
    }
}

impl core::fmt::Debug for TransactionParties {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("TransactionParties(…)")
    }
}

/// The parties of transactions by hash, for [`LogQuery`]. The viewer counts as no participant of a transaction that is
/// missing here.
#[derive(Debug, Default)]
pub struct TxParties {
    known: HashMap<B256, TransactionParties>,
}

impl TxParties {
    fn roles(&self, viewer: &Viewer<'_>, tx_hash: B256) -> TransactionRoles {
        let parties = self.known.get(&tx_hash);
        TransactionRoles::new(viewer, tx_hash, parties.map(|parties| (parties.from, parties.to)))
    }
}

impl Extend<(B256, TransactionParties)> for TxParties {
    fn extend<I: IntoIterator<Item = (B256, TransactionParties)>>(&mut self, parties: I) {
        self.known.extend(parties);
    }
}

/// Determines the transactions of a query whose parties must be known before its logs can be evaluated.
///
/// A log is skipped if being a participant would change nothing: it is shown whole anyway, or it does not match the
/// upstream filter. The caller's own criteria are not used, since the number of upstream requests must not reveal
/// whether a hidden address occurs (HD1). Shares (`visibleTo`) are known without the node.
#[derive(Debug)]
pub(crate) struct PartySearch<'v, 's> {
    log_viewer: LogViewer<'v, 's>,
    upstream: LogFilter,
    transactions: HashSet<B256>,
}

impl<'v, 's> PartySearch<'v, 's> {
    /// `None` for a viewer who owns no address, and so is a participant of no transaction.
    pub(crate) fn new(viewer: &'v Viewer<'s>, filter: &LogFilter) -> Option<Self> {
        viewer.owns_any().then(|| Self {
            log_viewer: LogViewer::new(viewer),
            upstream: upstream_filter(viewer, filter),
            transactions: HashSet::new(),
        })
    }

    /// Whether the parties of the log's transaction may be needed, before the rest of the log is read.
    pub(crate) fn is_candidate(&self, emitter: Address, tx_hash: B256, topics: &[B256]) -> bool {
        !self.transactions.contains(&tx_hash)
            && !self.log_viewer.viewer().withholds(tx_hash)
            && could_match(&self.upstream, emitter, topics)
    }

    /// Whether the parties of the candidate's transaction are needed, for the first of its logs that needs them.
    pub(crate) fn needs_parties(&mut self, row: &LogRow<'_>) -> Result<bool, MalformedData> {
        let roles = TransactionRoles::new(self.log_viewer.viewer(), row.tx_hash, None);
        let is_whole = self.log_viewer.log(row, roles)?.is_whole();
        Ok(!is_whole && self.transactions.insert(row.tx_hash))
    }
}

/// Evaluates the logs of one query for one viewer, row by row.
///
/// Of the emitters in `shared_only` ([`Permit::shared_logs_only`](crate::access::Permit::shared_logs_only)) only rows
/// of own and shared transactions are shown, even if the viewer has access to the contract, because the owner's groups
/// must list the method (decision 40).
#[derive(Debug)]
pub struct LogQuery<'v, 's, 'q> {
    log_viewer: LogViewer<'v, 's>,
    filter: &'q LogFilter,
    shared_only: &'q [Address],
    parties: &'q TxParties,
    /// The emitters without access of which no row was shown yet.
    ungranted: Vec<Address>,
    last_roles: Option<(B256, TransactionRoles)>,
}

impl<'v, 's, 'q> LogQuery<'v, 's, 'q> {
    /// The query of a viewer for `filter`, the caller's own, which is matched against the logs as rendered (HD1).
    #[must_use]
    pub fn new(
        viewer: &'v Viewer<'s>,
        filter: &'q LogFilter,
        shared_only: &'q [Address],
        parties: &'q TxParties,
    ) -> Self {
        Self {
            log_viewer: LogViewer::new(viewer),
            filter,
            shared_only,
            parties,
            ungranted: ungranted(viewer, filter, shared_only),
            last_roles: None,
        }
    }

    /// Whether a log may belong to the result, before the rest of it is read. The check does not rely on the node
    /// having applied the upstream filter.
    #[must_use]
    pub fn is_candidate(&self, emitter: Address, tx_hash: B256, topics: &[B256]) -> bool {
        !self.log_viewer.viewer().withholds(tx_hash) && could_match(self.filter, emitter, topics)
    }

    /// How a candidate is shown in the result; [`LogVisibility::Dropped`] if it is not part of it.
    ///
    /// # Errors
    /// [`MalformedData`] as [`LogViewer::log`].
    pub fn log(&mut self, row: &LogRow<'_>) -> Result<LogVisibility, MalformedData> {
        let roles = match self.last_roles {
            Some((hash, roles)) if hash == row.tx_hash => roles,
            Some(_) | None => self.parties.roles(self.log_viewer.viewer(), row.tx_hash),
        };
        self.last_roles = Some((row.tx_hash, roles));
        let has_role = roles.user.is_participant || roles.user.is_recipient;
        if !has_role && self.shared_only.contains(&row.emitter) {
            return Ok(LogVisibility::Dropped);
        }
        let visibility = self.log_viewer.log(row, roles)?;
        if !visibility.matches(row.topics, &self.filter.topics) {
            return Ok(LogVisibility::Dropped);
        }
        if !self.ungranted.is_empty() {
            self.ungranted.retain(|address| *address != row.emitter);
        }
        Ok(visibility)
    }

    /// Whether the result may be shown, after all its logs were evaluated. If not, the filter names an address that the
    /// viewer has no access to and that has no row in the viewer's own or shared transactions (decision 20).
    #[must_use]
    pub fn is_permitted(&self) -> bool {
        !self.filter.addresses.is_empty() && self.ungranted.is_empty()
    }
}

/// Whether no result of the query is [permitted](LogQuery::is_permitted). The request is then not sent, so that the
/// response time does not reveal hidden logs.
#[must_use]
pub fn shows_nothing(viewer: &Viewer<'_>, filter: &LogFilter, shared_only: &[Address]) -> bool {
    filter.addresses.is_empty()
        || (!viewer.owns_or_was_shared_any() && !ungranted(viewer, filter, shared_only).is_empty())
}

/// Whether the viewer has access to every address of the filter, by a current or an ended registration.
#[must_use]
pub fn reaches_all(viewer: &Viewer<'_>, filter: &LogFilter, shared_only: &[Address]) -> bool {
    ungranted(viewer, filter, shared_only).is_empty()
}

/// The emitters of a filter that the viewer has no access to, by the current registration or one that ended (HD41).
fn ungranted(viewer: &Viewer<'_>, filter: &LogFilter, shared_only: &[Address]) -> Vec<Address> {
    let mut ungranted: Vec<Address> = filter.addresses.clone();
    ungranted
        .retain(|address| shared_only.contains(address) || !(viewer.reaches_ever(*address) || is_precompile(*address)));
    ungranted
}

/// Whether the log matches the filter if it is shown whole.
fn could_match(filter: &LogFilter, emitter: Address, topics: &[B256]) -> bool {
    filter.addresses.contains(&emitter) && LogVisibility::Whole.matches(topics, &filter.topics)
}
