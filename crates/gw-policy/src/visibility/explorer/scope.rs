//! Everything that makes rows visible for a viewer, as data: the explorer's posting index selects rows by it before it
//! pages and counts (spec/30 section 11, spec/40 section 8).
//!
//! The addresses that may matter are found from the viewer's own links, groups, organizations and grants, so the cost
//! does not grow with the rows of others. Each of them is then evaluated by the functions that also evaluate rows, once
//! for each range of blocks in which its registration is the same (HD41).

use crate::{
    Snapshot,
    settings::{DynamicFields, HiddenTransferMode, MissingAbiMode, PartialRowMode, PolicySettings, TransactionLogs},
    snapshot::{BlockRange, Constraint, EventRule, Moment, ParamRule},
    visibility::{AllowedEvents, EventRights, SingleViewer, Viewer},
};
use alloy_primitives::Keccak256;
use gw_evm::abi::{ContractAbi, EventShape, WordKind, possible_address, well_known};
use gw_types::{Address, B256, Claim, Level, Timestamp};
use std::{
    collections::BTreeSet,
    hash::{Hash, Hasher},
};

/// An address in a range of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressBlocks {
    /// The address.
    pub address: Address,
    /// The blocks.
    pub blocks: BlockRange,
}

/// Rows of an address under grants of disclosure (R15, spec/50 rule 23).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DisclosedRows {
    /// The disclosed address, which is a side of each row.
    pub target: AddressBlocks,
    /// The first and the last block time of the rows; `None` for all times. A row of a block without time is in no
    /// range.
    pub times: Option<(Timestamp, Timestamp)>,
    /// Lists of addresses: one of each list is a side of each row. Empty for all rows. Under impersonation the grants
    /// of both viewers have to cover a row, and each may have a list.
    pub counterparties: Vec<Vec<Address>>,
}

/// Whether the viewer sees all transfers and logs of own transactions (K2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParticipantRows {
    /// All of them, except for those of closed contracts (HD28).
    All,
    /// Only those that are visible for another reason.
    Granted,
}

impl ParticipantRows {
    const fn from_settings(settings: &PolicySettings) -> Self {
        match settings.participant_logs {
            TransactionLogs::All => Self::All,
            TransactionLogs::Granted => Self::Granted,
        }
    }
}

/// What makes rows visible for a viewer. All lists are sorted.
///
/// Transactions, transfers and frames are exactly those that [`Viewer::transaction_entry`], [`Viewer::transfer_entry`]
/// and [`Viewer::frame_entry`] let survive. Logs are selected by [`Self::logs`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RowScope {
    /// Addresses that make a row visible as one of its sides, except for own ones.
    pub visible: Vec<AddressBlocks>,
    /// Public addresses that count as a side: only the zero address (HD9).
    pub public: Vec<Address>,
    /// The viewer's own addresses.
    pub own: Vec<Address>,
    /// The own addresses whose owner is a participant of what is sent to them (HD10).
    pub own_receivers: Vec<Address>,
    /// Rows under a grant of disclosure of any level: they survive whatever the other side is (R15).
    pub disclosed: Vec<DisclosedRows>,
    /// Contracts that the viewer administers: their rows survive with one visible side even under K1 `drop`.
    pub administered: Vec<AddressBlocks>,
    /// Tokens of which the viewer may see events. Under K1 `drop` only their transfers survive by two visible sides.
    pub event_tokens: Vec<AddressBlocks>,
    /// Wallets of members of administered organizations, whose transactions survive (K10).
    pub members: Vec<Address>,
    /// Transactions that were shared with the viewer (`visibleTo`).
    pub shared: Vec<B256>,
    /// Transactions that are withheld from everybody, with all their rows (HD28).
    pub withheld: Vec<B256>,
    /// Contracts whose transfers are not shown (HD28).
    pub closed: Vec<Address>,
    /// Which transfers of own transactions survive (K2).
    pub participant_rows: ParticipantRows,
    /// Whether one visible side suffices (K1).
    pub one_sided: PartialRowMode,
    /// Whether a transaction survives by a surviving transfer (K12).
    pub anchor: HiddenTransferMode,
    /// The logs of the user, and under impersonation those of the administrator. A log is shown only if each of these
    /// scopes selects it.
    pub logs: Vec<LogScope>,
}

/// What makes logs visible for one viewer.
///
/// Every log by these rules is shown, and the candidates are those logs that only [`LogViewer`] can tell apart: it
/// evaluates each of them. No other log is shown. The verdict about a candidate depends on the whole snapshot (ABIs,
/// levels of the addresses in it), so it holds for one epoch; the rest of the selection depends on this scope only.
///
/// [`LogViewer`]: crate::visibility::LogViewer
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LogScope {
    /// The viewer's own addresses.
    pub own: Vec<Address>,
    /// The own addresses whose owner is a participant of what is sent to them (HD10).
    pub own_receivers: Vec<Address>,
    /// All logs of own transactions are shown (K2), or they are candidates.
    pub participant_rows: ParticipantRows,
    /// Transactions that were shared with the viewer: their logs are candidates (K4, R29).
    pub shared: Vec<B256>,
    /// Contracts all of whose logs are shown.
    pub emitters: Vec<AddressBlocks>,
    /// Contracts whose logs with this first topic are shown.
    pub events: Vec<(AddressBlocks, B256)>,
    /// Logs that are shown by their number of topics, or by an own address in one of their topics.
    pub event_logs: Vec<EventLogs>,
    /// Logs to be evaluated one by one.
    pub candidates: Vec<LogCandidates>,
    /// Contracts whose logs are not shown, not even in own transactions (HD28).
    pub closed: Vec<Address>,
    /// Whether the first topic of a log of [`Self::emitters`] may be masked even if it has not the form of an address:
    /// the ABI of one declares anonymous events.
    pub masks_first_topics: bool,
}

/// Logs of a contract with the same first topic and the same number of topics. Their contents besides an own address in
/// a topic do not matter: every one of them is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventLogs {
    /// The contract.
    pub emitter: AddressBlocks,
    /// The first topic.
    pub topic0: B256,
    /// The number of topics.
    pub topics: u8,
    /// The position of a topic, from 1 on, and the own address in it; `None` if no topic matters.
    pub party: Option<(usize, Address)>,
}

/// Logs of a contract that have to be evaluated one by one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LogCandidates {
    /// The contract.
    pub emitter: AddressBlocks,
    /// The event rules with conditions on parameters, all for the same first topic. Empty: all logs of the contract,
    /// because its ABI decides (K3, K5).
    pub rules: Vec<EventRule>,
}

impl LogCandidates {
    /// The first topic of the candidates; `None` for any.
    #[must_use]
    pub fn topic0(&self) -> Option<B256> {
        self.rules.first().map(|rule| rule.topic0)
    }
}

/// A digest of a [`RowScope`]. Scopes with the same digest select the same rows of the same chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScopeFingerprint(pub B256);

impl RowScope {
    /// The digest of this scope, as key of what was selected by it.
    #[must_use]
    pub fn fingerprint(&self) -> ScopeFingerprint {
        let mut digest = Digest(Keccak256::new());
        self.hash(&mut digest);
        ScopeFingerprint(digest.0.finalize())
    }
}

/// Feeds what [`Hash`] writes into Keccak-256. A 64-bit hash would let two viewers share a key by chance, and so their
/// rows.
struct Digest(Keccak256);

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        u64::from_be_bytes(digest.first_chunk().copied().unwrap_or_default())
    }
}

impl Viewer<'_> {
    /// Everything that makes rows visible for this viewer. The cost is proportional to the viewer's own links, groups,
    /// contracts, grants and shares; for an administrator, also to the contracts of the organization, and with K10 to
    /// its members.
    #[must_use]
    pub fn row_scope(&self) -> RowScope {
        let (snapshot, settings) = (self.user().snapshot, self.policy_settings());
        let own: Vec<Address> = self.own_candidates().filter(|address| self.owns(*address)).collect();
        let own_receivers = own.iter().copied().filter(|address| self.receives(*address)).collect();
        let mut scope = RowScope {
            visible: Vec::new(),
            public: vec![Address::ZERO],
            own,
            own_receivers,
            disclosed: Vec::new(),
            administered: Vec::new(),
            event_tokens: Vec::new(),
            members: Vec::new(),
            shared: self.user().shared_transactions(),
            withheld: sorted(snapshot.withheld_transactions()),
            closed: sorted(snapshot.closed_addresses().filter(|address| !self.is_open(*address))),
            participant_rows: ParticipantRows::from_settings(settings),
            one_sided: settings.one_sided,
            anchor: self.hidden_transfer_mode(),
            logs: std::iter::once(self.user())
                .chain(self.impersonator())
                .map(SingleViewer::log_scope)
                .collect(),
        };
        scope.shared.retain(|hash| self.is_recipient(*hash));
        // Facts that hold for the administrator, too, hold for the user, so the user's addresses suffice.
        for address in self.user().scope_candidates() {
            let blocks = |holds: &dyn Fn(Moment) -> bool| blocks_where(snapshot, address, holds);
            if !address.is_zero() && !self.owns(address) {
                scope.visible.extend(blocks(&|moment| {
                    self.is_visible_address(address, moment, Level::Redacted)
                }));
            }
            scope.disclosed.extend(self.disclosed_rows(address));
            scope
                .administered
                .extend(blocks(&|moment| self.is_administered_side(address, moment)));
            scope
                .event_tokens
                .extend(blocks(&|moment| self.has_event_access(address, moment)));
        }
        if self.shows_transactions_of_members() {
            let wallets = self.user().wallets_of_administered_members();
            scope.members = wallets
                .into_iter()
                .filter(|address| self.is_of_administered_member(*address))
                .collect();
        }
        scope
    }

    /// The rows of an address that grants of disclosure show: every combination of a grant of the user with, under
    /// impersonation, one of the administrator.
    fn disclosed_rows(&self, address: Address) -> Vec<DisclosedRows> {
        let mut limits: BTreeSet<RowLimits> = self.user().limits_on(address).collect();
        if let Some(impersonator) = self.impersonator() {
            let others: Vec<RowLimits> = impersonator.limits_on(address).collect();
            let both = limits
                .iter()
                .flat_map(|own| others.iter().filter_map(|other| own.intersect(other)));
            limits = both.take(MAX_COMBINATIONS).collect();
        }
        let limits = without_covered(limits);
        if limits.is_empty() {
            return Vec::new();
        }
        let (user, limits) = (self.user(), &limits);
        let targets = blocks_where(user.snapshot, address, |moment| {
            user.is_registered_as_now(address, moment)
        });
        let rows = targets.into_iter().flat_map(|target| {
            limits.iter().map(move |limits| DisclosedRows {
                target,
                times: limits.times,
                counterparties: limits.counterparties.clone(),
            })
        });
        rows.collect()
    }

    fn own_candidates(&self) -> impl Iterator<Item = Address> {
        self.user().linked_addresses().into_iter()
    }
}

/// The most limits that are compared with each other: the cost is quadratic, and each may list 200 addresses.
const MAX_COMPARED: usize = 64;
/// The most combinations of limits of a user and an impersonating administrator: the rows of further ones are not
/// shown.
const MAX_COMBINATIONS: usize = 1_000;

/// The limits without those whose rows another one covers, too.
fn without_covered(mut limits: BTreeSet<RowLimits>) -> BTreeSet<RowLimits> {
    if limits.contains(&RowLimits::default()) {
        return BTreeSet::from([RowLimits::default()]);
    }
    // More stay as they are: the comparison only saves work.
    if limits.len() <= MAX_COMPARED {
        let all = limits.clone();
        let is_spare = |one: &RowLimits| {
            let mut others = all.iter().filter(|other| *other != one && other.covers(one));
            others.any(|other| !one.covers(other) || other < one)
        };
        limits.retain(|one| !is_spare(one));
    }
    limits
}

/// The rows of an address that a grant covers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct RowLimits {
    times: Option<(Timestamp, Timestamp)>,
    counterparties: Vec<Vec<Address>>,
}

impl RowLimits {
    /// Whether these grants cover every row that `other` covers.
    fn covers(&self, other: &Self) -> bool {
        let times = match (self.times, other.times) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some((first, last)), Some((other_first, other_last))) => first <= other_first && other_last <= last,
        };
        let is_subset =
            |part: &[Address], whole: &[Address]| part.iter().all(|address| whole.binary_search(address).is_ok());
        times
            && self
                .counterparties
                .iter()
                .all(|list| other.counterparties.iter().any(|narrow| is_subset(narrow, list)))
    }

    /// The rows that both grants cover; `None` if there are none.
    fn intersect(&self, other: &Self) -> Option<Self> {
        let times = match (self.times, other.times) {
            (Some((first, last)), Some((other_first, other_last))) => {
                let both = (first.max(other_first), last.min(other_last));
                Some(both).filter(|(first, last)| first <= last).map(Some)?
            }
            (times, None) | (None, times) => times,
        };
        let mut counterparties = [self.counterparties.as_slice(), &other.counterparties].concat();
        counterparties.sort_unstable();
        counterparties.dedup();
        Some(Self { times, counterparties })
    }
}

impl SingleViewer<'_> {
    /// What limits the grants that disclose rows of the address to the user.
    fn limits_on(&self, address: Address) -> impl Iterator<Item = RowLimits> {
        let grants = self.grants_on(address).into_iter();
        grants.map(|grant| RowLimits {
            times: grant.scope.dates,
            counterparties: grant.scope.addresses.iter().cloned().map(sorted_list).collect(),
        })
    }

    /// The addresses that are linked to the user, by links of any kind.
    fn linked_addresses(&self) -> BTreeSet<Address> {
        let links = self.user.map_or(&[][..], |user| self.snapshot.links_of(user.id));
        links.iter().map(|link| link.address).collect()
    }

    fn shared_transactions(&self) -> Vec<B256> {
        let shared = self.user.into_iter();
        sorted(shared.flat_map(|user| self.snapshot.shared_transactions(&user.external_id)))
    }

    /// All addresses on which the user may have a right: linked ones, contracts of the user's organizations and groups,
    /// deployed ones, reserved and disclosed ones. There may be others among them.
    fn scope_candidates(&self) -> BTreeSet<Address> {
        let mut candidates = self.linked_addresses();
        let (Some(user), Some(principal)) = (self.user, &self.principal) else {
            return candidates;
        };
        let snapshot = self.snapshot;
        for rights in &principal.rights {
            if self.administers(rights.org) {
                candidates.extend(snapshot.contracts_of_org(rights.org));
            }
            if rights.permissions.claims.has(Claim::Deploy) {
                candidates.extend(snapshot.reserved_by(rights.org));
            }
        }
        for (_, group) in snapshot.active_memberships(user.id, self.now) {
            candidates.extend(snapshot.contracts_granted_to(group.id));
        }
        candidates.extend(snapshot.contracts_deployed_by(user.id));
        for grant in snapshot.disclosures_to(&user.external_id) {
            candidates.extend(snapshot.links_of(grant.owner).iter().map(|link| link.address));
        }
        candidates
    }

    /// K10: the addresses that are linked to members of the organizations that the user administers.
    fn wallets_of_administered_members(&self) -> BTreeSet<Address> {
        let orgs = self.principal.iter().flat_map(|principal| &principal.rights);
        let orgs = orgs.map(|rights| rights.org).filter(|org| self.administers(*org));
        orgs.flat_map(|org| self.snapshot.users_of(org))
            .flat_map(|user| self.snapshot.links_of(user))
            .map(|link| link.address)
            .collect()
    }

    fn log_scope(&self) -> LogScope {
        let own: Vec<Address> = self
            .linked_addresses()
            .into_iter()
            .filter(|address| self.owns_openly(*address))
            .collect();
        let own_receivers = own
            .iter()
            .copied()
            .filter(|address| self.receives_at(*address))
            .collect();
        let closed = self
            .snapshot
            .closed_addresses()
            .filter(|address| self.is_closed(*address));
        let mut scope = LogScope {
            own,
            own_receivers,
            participant_rows: ParticipantRows::from_settings(self.policy_settings),
            shared: self.shared_transactions(),
            emitters: Vec::new(),
            events: Vec::new(),
            event_logs: Vec::new(),
            candidates: Vec::new(),
            closed: sorted(closed),
            masks_first_topics: false,
        };
        for address in self.scope_candidates() {
            if self.is_closed(address) {
                continue;
            }
            for blocks in self.snapshot.registration_ranges(address) {
                let moment = Moment::Block(blocks.start);
                if let Some(contract) = self.snapshot.contract_at(address, moment) {
                    let rights = EventRights::for_viewer(self, contract);
                    self.add_emitter(&mut scope, AddressBlocks { address, blocks }, &rights);
                }
            }
        }
        scope
    }

    /// Adds the logs of a contract that the user sees without a part in their transactions (spec/30 section 6.1, rows 1
    /// and 5 to 7).
    fn add_emitter(&self, scope: &mut LogScope, emitter: AddressBlocks, rights: &EventRights<'_>) {
        let abi = rights.contract.abi.as_deref();
        let declares = |holds: &dyn Fn(&EventShape) -> bool| abi.is_some_and(|abi| abi.all_events().any(holds));
        let declares_anonymous = declares(&EventShape::is_anonymous);
        if rights.is_org_admin {
            scope.masks_first_topics |= declares_anonymous;
            scope.emitters.push(emitter);
            return;
        }
        if !rights.is_granted {
            return;
        }
        let settings = self.policy_settings;
        match &rights.events {
            AllowedEvents::All if settings.no_abi == MissingAbiMode::Drop => {
                if declares_anonymous {
                    scope.candidates.push(LogCandidates {
                        emitter,
                        rules: Vec::new(),
                    });
                    return;
                }
                // K3: only declared events are shown.
                for topic0 in abi.into_iter().flat_map(ContractAbi::first_topics) {
                    let rule = EventRule {
                        topic0,
                        params: Vec::new(),
                    };
                    self.add_event(scope, emitter, rights, vec![rule]);
                }
            }
            AllowedEvents::All if self.drops_opaque(rights) && declares(&EventShape::has_opaque) => {
                scope.candidates.push(LogCandidates {
                    emitter,
                    rules: Vec::new(),
                });
            }
            AllowedEvents::All => {
                scope.masks_first_topics |= declares_anonymous;
                scope.emitters.push(emitter);
            }
            AllowedEvents::Only(rules) => {
                let topics: BTreeSet<B256> = rules.iter().map(|rule| rule.topic0).collect();
                for topic0 in topics {
                    let of_topic = rules.iter().filter(|rule| rule.topic0 == topic0);
                    self.add_event(scope, emitter, rights, of_topic.map(|rule| (*rule).clone()).collect());
                }
            }
        }
    }

    /// Adds the logs of an event. `rules` all have its first topic.
    fn add_event(&self, scope: &mut LogScope, emitter: AddressBlocks, rights: &EventRights<'_>, rules: Vec<EventRule>) {
        let Some(topic0) = rules.first().map(|rule| rule.topic0) else {
            return;
        };
        let by_count: Vec<(u8, EventAccess)> = (1..=MAX_TOPICS)
            .map(|topics| (topics, self.event_access(rights, topic0, topics, &rules)))
            .collect();
        let are_all = |wanted: EventAccess| by_count.iter().all(|(_, access)| *access == wanted);
        if are_all(EventAccess::All) {
            scope.events.push((emitter, topic0));
            return;
        }
        let by_content = by_count.iter().any(|(_, access)| *access == EventAccess::ByContent);
        // Words below 2^64 count as numbers, so the index does not know these addresses.
        let unknown = |address: &Address| possible_address(&address.into_word()).is_none();
        if by_content || scope.own.iter().any(unknown) {
            scope.candidates.push(LogCandidates { emitter, rules });
            return;
        }
        for (topics, access) in by_count {
            let logs = |party| EventLogs {
                emitter,
                topic0,
                topics,
                party,
            };
            match access {
                EventAccess::None | EventAccess::ByContent => {}
                EventAccess::All => scope.event_logs.push(logs(None)),
                EventAccess::ByOwnTopic(positions) => {
                    for position in positions {
                        let own = scope.own.iter().map(|address| logs(Some((position, *address))));
                        scope.event_logs.extend(own);
                    }
                }
            }
        }
    }

    /// What decides whether the user sees a log of an event with this number of topics: with the first topic it
    /// determines the shape of the event, and so where its parameters are.
    fn event_access(&self, rights: &EventRights<'_>, topic0: B256, topics: u8, rules: &[EventRule]) -> EventAccess {
        let mut words = vec![B256::ZERO; usize::from(topics)];
        if let Some(first) = words.first_mut() {
            *first = topic0;
        }
        let abi = rights.contract.abi.as_deref();
        let declared = abi.and_then(|abi| abi.event(&words));
        let is_unreadable = declared.is_none() && self.policy_settings.no_abi == MissingAbiMode::Drop;
        let is_dropped = declared.is_some_and(|shape| {
            // An anonymous event satisfies no rule, and any first topic may belong to one.
            shape.is_anonymous() || (shape.has_opaque() && self.drops_opaque(rights))
        });
        if is_unreadable || is_dropped {
            return EventAccess::None;
        }
        if rules.iter().any(|rule| rule.params.is_empty()) {
            return EventAccess::All;
        }
        let shape = well_known(&words).or(declared);
        let mut positions = BTreeSet::new();
        for param in rules.iter().flat_map(|rule| &rule.params) {
            match topic_of(param, shape, abi.is_some(), usize::from(topics)) {
                ParameterTopic::None => {}
                ParameterTopic::At(position) if param.must_be == Constraint::Own => {
                    positions.insert(position);
                }
                ParameterTopic::At(_) | ParameterTopic::Other => return EventAccess::ByContent,
            }
        }
        if positions.is_empty() {
            EventAccess::None
        } else {
            EventAccess::ByOwnTopic(positions)
        }
    }

    /// K5: whether logs of the contract whose declared event has bytes of unknown content are dropped.
    fn drops_opaque(&self, rights: &EventRights<'_>) -> bool {
        self.policy_settings.dynamic_fields == DynamicFields::Drop && !rights.contract.events_allow_dynamic_payload
    }
}

/// The most topics of a log.
const MAX_TOPICS: u8 = 4;

/// What decides whether a log of an event is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
enum EventAccess {
    /// No log is shown.
    None,
    /// Every log is shown.
    All,
    /// Exactly the logs with an own address in one of these topics.
    ByOwnTopic(BTreeSet<usize>),
    /// Words that no index contains: data, or topics that are compared with constants.
    ByContent,
}

/// Where the parameter of a rule is.
enum ParameterTopic {
    /// Nowhere: no log satisfies the rule.
    None,
    /// An address in the topic at this position.
    At(usize),
    /// In the data, or a word of another type.
    Other,
}

/// Where the evaluation of a log of this shape looks for the parameter of a rule.
fn topic_of(param: &ParamRule, shape: Option<&EventShape>, has_abi: bool, topics: usize) -> ParameterTopic {
    let is_own = param.must_be == Constraint::Own;
    let Some(shape) = shape else {
        let position = param.index.checked_add(1).filter(|position| *position < topics);
        // An event that the ABI does not declare has no known parameters.
        return position
            .filter(|_| !has_abi)
            .map_or(ParameterTopic::None, ParameterTopic::At);
    };
    match (shape.input_kind(param.index), shape.topic_position(param.index)) {
        (None, _) => ParameterTopic::None,
        (Some(WordKind::Address), Some(position)) => ParameterTopic::At(position),
        // A number is nobody's own address.
        (Some(WordKind::Uint(_) | WordKind::Int(_) | WordKind::Bool | WordKind::FixedBytes(_)), _) if is_own => {
            ParameterTopic::None
        }
        (Some(_), _) => ParameterTopic::Other,
    }
}

/// The blocks in which something holds for an address, if it depends on the registration of the address in the block.
pub(super) fn blocks_where(
    snapshot: &Snapshot,
    address: Address,
    holds: impl Fn(Moment) -> bool,
) -> Vec<AddressBlocks> {
    let mut result: Vec<AddressBlocks> = Vec::new();
    for blocks in snapshot.registration_ranges(address) {
        if !holds(Moment::Block(blocks.start)) {
            continue;
        }
        match result.last_mut() {
            Some(last) if last.blocks.end == blocks.start => last.blocks.end = blocks.end,
            Some(_) | None => result.push(AddressBlocks { address, blocks }),
        }
    }
    result
}

fn sorted_list(items: Vec<Address>) -> Vec<Address> {
    sorted(items.into_iter())
}

fn sorted<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort_unstable();
    items.dedup();
    items
}
