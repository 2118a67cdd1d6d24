//! Visibility of one event log, evaluated on a typed row (spec/30 §6.1; HD1, HD31, decisions 17 to 20 and 50): shown
//! whole, masked, or not at all. JSON results and lists are both written from it, so that a log shows the same
//! addresses everywhere (I8, R24).

use super::{AllowedEvents, EventRights, SeesAnyLog, SingleViewer, Viewer};
use crate::{
    settings::{DynamicFields, MissingAbiMode, TransactionLogs},
    snapshot::{Constraint, EventRule, Moment, ParamRule},
};
use alloy_primitives::hex;
use gw_evm::{
    TopicFilter,
    abi::{
        AddressCandidate, DecodedAbi, EventShape, WordKind, clean_address, possible_address, possible_addresses,
        well_known, zero_opaque, zero_word,
    },
};
use gw_types::{Address, B256, ContractId, OrgId};
use std::{borrow::Cow, collections::HashMap};

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// The facts that the visibility of a log depends on.
#[derive(Clone, Copy, Debug)]
pub struct LogRow<'a> {
    /// The contract that emitted it.
    pub emitter: Address,
    /// Hash of its transaction.
    pub tx_hash: B256,
    /// Its topics, at most four.
    pub topics: &'a [B256],
    /// Its data.
    pub data: LogData<'a>,
    /// When it was emitted.
    pub moment: Moment,
}

/// The data of a log. It is decoded only if the evaluation needs it.
#[derive(Clone, Copy, Debug)]
pub enum LogData<'a> {
    /// Hex digits without prefix.
    Hex(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
}

/// The data of a log is not valid hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the data of a log is not valid hex")]
pub struct MalformedData;

impl<'a> LogData<'a> {
    pub(super) fn decode(self) -> Result<Cow<'a, [u8]>, MalformedData> {
        match self {
            Self::Hex(digits) => hex::decode(digits).map(Cow::Owned).map_err(|_| MalformedData),
            Self::Bytes(bytes) => Ok(Cow::Borrowed(bytes)),
        }
    }
}

/// The role of a viewer in the transaction of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionRole {
    /// Whether the viewer owns the transaction's sender or receiver.
    pub is_participant: bool,
    /// Whether the viewer is listed in the transaction's `visibleTo`.
    pub is_recipient: bool,
}

/// The role of the user and, under impersonation, of the administrator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionRoles {
    /// The role of the user.
    pub user: TransactionRole,
    impersonator: TransactionRole,
}

impl TransactionRoles {
    /// The roles in a transaction with these `parties` (sender and receiver), or `None` if they are unknown.
    #[must_use]
    pub fn new(viewer: &Viewer<'_>, tx_hash: B256, parties: Option<(Address, Option<Address>)>) -> Self {
        Self::from_fn(viewer, |single| TransactionRole {
            is_participant: !single.withholds(tx_hash)
                && parties.is_some_and(|(from, to)| single.is_participant(from, to)),
            is_recipient: single.is_recipient(tx_hash),
        })
    }

    /// The roles in a simulated execution from `sender`. It is the user's own, regardless of the sender; an
    /// impersonating administrator is a participant if the sender is Full.
    #[must_use]
    pub fn for_run(viewer: &Viewer<'_>, sender: Option<Address>) -> Self {
        let role = |single: &SingleViewer<'_>| TransactionRole {
            is_participant: sender.is_some_and(|sender| single.sees(sender)),
            is_recipient: false,
        };
        let mut roles = Self::from_fn(viewer, role);
        roles.user.is_participant = true;
        roles
    }

    fn from_fn<'s>(viewer: &Viewer<'s>, role: impl Fn(&SingleViewer<'s>) -> TransactionRole) -> Self {
        Self {
            user: role(viewer.user()),
            impersonator: viewer.impersonator().map(role).unwrap_or_default(),
        }
    }
}

/// How a log is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogVisibility {
    /// Not shown.
    Dropped,
    /// Shown unchanged.
    Whole,
    /// Shown with some words zeroed.
    Masked {
        /// The masked topic positions, one bit each.
        topics: u8,
        /// The data to show; `None`: the log's own data.
        data: Option<Vec<u8>>,
    },
}

impl LogVisibility {
    /// Whether the log is shown unchanged.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        matches!(self, Self::Whole)
    }

    /// Whether the log as rendered matches the topic criteria (HD1): a masked topic matches only the wildcard. As on
    /// every node, criteria longer than the topics never match.
    #[must_use]
    pub fn matches(&self, topics: &[B256], criteria: &[TopicFilter]) -> bool {
        let masked = match self {
            Self::Dropped => return false,
            Self::Whole => 0,
            Self::Masked { topics, .. } => *topics,
        };
        criteria.len() <= topics.len()
            && criteria
                .iter()
                .zip(topics)
                .enumerate()
                .all(|(position, (criterion, topic))| match criterion {
                    TopicFilter::Any => true,
                    TopicFilter::OneOf(words) => !is_masked(masked, position) && words.contains(topic),
                })
    }

    /// The intersection of two visibilities: a part is shown only if both viewers may see it. The result does not
    /// reveal from which viewer a part is hidden (HD40).
    fn intersect(self, other: Self) -> Self {
        match (self, other) {
            (Self::Dropped, _) | (_, Self::Dropped) => Self::Dropped,
            (Self::Whole, masked) | (masked, Self::Whole) => masked,
            (
                Self::Masked { topics, data },
                Self::Masked {
                    topics: other_topics,
                    data: other_data,
                },
            ) => {
                let data = match (data, other_data) {
                    (Some(left), Some(right)) => {
                        Some(left.iter().zip(right).map(|(left, right)| left & right).collect())
                    }
                    (left, right) => left.or(right),
                };
                Self::Masked {
                    topics: topics | other_topics,
                    data,
                }
            }
        }
    }
}

/// How a log of a simulated execution is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SimulatedLog {
    /// Not shown.
    Dropped,
    /// A placeholder is shown to the impersonating administrator: the user would not see the log.
    HiddenFromUser,
    /// Shown, to the user and to an impersonating administrator.
    Shown(LogVisibility),
}

/// Whether the bit of this topic position is set.
pub(crate) fn is_masked(masked: u8, position: usize) -> bool {
    position < 8 && masked >> position & 1 == 1
}

/// Evaluates the visibility of the logs of one response for one viewer. It resolves each emitter and each address once.
#[derive(Debug)]
pub struct LogViewer<'v, 's> {
    viewer: &'v Viewer<'s>,
    user: SingleLogViewer<'v, 's>,
    impersonator: Option<SingleLogViewer<'v, 's>>,
}

#[derive(Debug)]
struct SingleLogViewer<'v, 's> {
    viewer: &'v SingleViewer<'s>,
    emitters: Map<ContractId, EventRights<'s>>,
    levels: Levels<'v, 's>,
}

/// Cache of which addresses are Full.
#[derive(Debug)]
struct Levels<'v, 's> {
    viewer: &'v SingleViewer<'s>,
    cache: Map<Address, bool>,
}

impl Levels<'_, '_> {
    fn sees(&mut self, address: Address) -> bool {
        *self.cache.entry(address).or_insert_with(|| self.viewer.sees(address))
    }

    fn shows(&mut self, candidate: AddressCandidate) -> bool {
        match candidate {
            AddressCandidate::None => true,
            // A word that may be an address is treated as one. If the result depended on whether the address is linked
            // to a user, any emitter of events could find that out (HD6, decision 50).
            AddressCandidate::Address(address) | AddressCandidate::Possible(address) => self.sees(address),
            AddressCandidate::NonCanonical => false,
        }
    }
}

impl<'v, 's> LogViewer<'v, 's> {
    /// A log viewer for `viewer`.
    #[must_use]
    pub fn new(viewer: &'v Viewer<'s>) -> Self {
        Self {
            viewer,
            user: SingleLogViewer::new(viewer.user()),
            impersonator: viewer.impersonator().map(SingleLogViewer::new),
        }
    }

    /// The viewer.
    #[must_use]
    pub const fn viewer(&self) -> &'v Viewer<'s> {
        self.viewer
    }

    /// The visibility of a log; under impersonation, the intersection of the user's and the administrator's (HD7).
    ///
    /// # Errors
    /// [`MalformedData`] if its data is not valid hex. Nothing of the response may be shown then.
    pub fn log(&mut self, row: &LogRow<'_>, roles: TransactionRoles) -> Result<LogVisibility, MalformedData> {
        let (own, impersonator) = self.log_for_each(row, roles)?;
        Ok(match impersonator {
            None => own,
            Some(impersonator) => own.intersect(impersonator),
        })
    }

    /// The visibility of a log of a receipt. Adds to `sees_any` who sees the log.
    ///
    /// # Errors
    /// As [`Self::log`].
    pub fn receipt_log(
        &mut self,
        row: &LogRow<'_>,
        roles: TransactionRoles,
        sees_any: &mut SeesAnyLog,
    ) -> Result<LogVisibility, MalformedData> {
        let (own, impersonator) = self.log_for_each(row, roles)?;
        sees_any.user |= own != LogVisibility::Dropped;
        Ok(match impersonator {
            None => own,
            Some(impersonator) => {
                sees_any.impersonator |= impersonator != LogVisibility::Dropped;
                own.intersect(impersonator)
            }
        })
    }

    /// The visibility of a log of a simulated execution (V1). If only the administrator sees it, it has a placeholder,
    /// and only for contracts that the administrator administers: otherwise it would reveal the user's rights elsewhere
    /// (HD40).
    ///
    /// # Errors
    /// As [`Self::log`].
    pub fn simulated_log(&mut self, row: &LogRow<'_>, roles: TransactionRoles) -> Result<SimulatedLog, MalformedData> {
        let (own, impersonator) = self.log_for_each(row, roles)?;
        let administers_emitter = |impersonator: &SingleViewer<'_>| {
            let contract = impersonator.snapshot.contract(row.emitter);
            contract.is_some_and(|contract| impersonator.administers(contract.org))
        };
        Ok(match (own, impersonator) {
            (LogVisibility::Dropped, None) | (_, Some(LogVisibility::Dropped)) => SimulatedLog::Dropped,
            (LogVisibility::Dropped, Some(_)) if self.viewer.impersonator().is_some_and(administers_emitter) => {
                SimulatedLog::HiddenFromUser
            }
            (LogVisibility::Dropped, Some(_)) => SimulatedLog::Dropped,
            (own, None) => SimulatedLog::Shown(own),
            (own, Some(impersonator)) => SimulatedLog::Shown(own.intersect(impersonator)),
        })
    }

    /// The visibility of a log for the user and, under impersonation, for the administrator.
    fn log_for_each(
        &mut self,
        row: &LogRow<'_>,
        roles: TransactionRoles,
    ) -> Result<(LogVisibility, Option<LogVisibility>), MalformedData> {
        let own = self.user.log(row, roles.user)?;
        let impersonator = self.impersonator.as_mut();
        Ok((
            own,
            impersonator
                .map(|viewer| viewer.log(row, roles.impersonator))
                .transpose()?,
        ))
    }
}

impl<'v, 's> SingleLogViewer<'v, 's> {
    fn new(viewer: &'v SingleViewer<'s>) -> Self {
        Self {
            viewer,
            emitters: Map::default(),
            levels: Levels {
                viewer,
                cache: Map::default(),
            },
        }
    }

    /// The table of §6.1. The rows that show a log whole come before those that mask it.
    fn log(&mut self, log: &LogRow<'_>, role: TransactionRole) -> Result<LogVisibility, MalformedData> {
        let policy_settings = self.viewer.policy_settings;
        // HD28: logs of closed addresses and of withheld transactions are hidden from all users, their sender included.
        if self.viewer.is_closed(log.emitter) || self.viewer.withholds(log.tx_hash) {
            return Ok(LogVisibility::Dropped);
        }
        // Row 3: [S] participants see everything of their transactions.
        if role.is_participant && policy_settings.participant_logs == TransactionLogs::All {
            return Ok(LogVisibility::Whole);
        }
        // HD41: rights follow the registration under which the log was emitted.
        let contract = self.viewer.snapshot.contract_at(log.emitter, log.moment);
        let rights = contract.map(|contract| {
            self.emitters
                .entry(contract.id)
                .or_insert_with(|| EventRights::for_viewer(self.viewer, contract))
        });
        let declared = rights
            .as_ref()
            .and_then(|rights| rights.contract.abi.as_deref()?.event(log.topics));
        let standard = well_known(log.topics);
        let shape = standard.or(declared);
        let (levels, viewer) = (&mut self.levels, self.viewer);
        let is_standard = standard.is_some();
        let mut evaluation = LogEvaluation {
            log,
            shape,
            is_standard,
            declared,
            levels,
            viewer,
            data: None,
        };
        let zeroes_opaque = policy_settings.dynamic_fields != DynamicFields::Pass;
        let Some(rights) = rights.as_ref() else {
            // The emitter has no registration at that moment. Only shared logs are shown (row 4), and none of an
            // emitter whose registration was deleted (HD27).
            let retired = self.viewer.snapshot.retired(log.emitter).is_some();
            let is_shared = !retired && role.is_recipient && policy_settings.shared_logs == TransactionLogs::All;
            return if is_shared {
                evaluation.masked(zeroes_opaque)
            } else {
                Ok(LogVisibility::Dropped)
            };
        };
        let attests_payload = rights.contract.events_allow_dynamic_payload;
        // Row 2: the contract's owner unlocked shared logs (R29).
        if role.is_recipient && rights.contract.allow_visibleto_unlock && rights.is_insider {
            return Ok(LogVisibility::Whole);
        }
        // Row 1: [S] rule 8, administrators see the contract's data but not the wallets in it.
        if rights.is_org_admin {
            return evaluation.masked(false);
        }
        // Row 4: the transaction was shared with the viewer.
        if role.is_recipient && policy_settings.shared_logs == TransactionLogs::All {
            return evaluation.masked(zeroes_opaque && !attests_payload);
        }
        // Row 5: without a grant the log is dropped. K3 and K5: so is a log that cannot be masked.
        let is_opaque = declared.is_some_and(EventShape::has_opaque) && !attests_payload;
        let is_unreadable = (declared.is_none() && policy_settings.no_abi == MissingAbiMode::Drop)
            || (is_opaque && policy_settings.dynamic_fields == DynamicFields::Drop);
        if !rights.is_granted || is_unreadable {
            return Ok(LogVisibility::Dropped);
        }
        // Row 7: event rules. A participant needs only a grant under the strict K2.
        let is_admitted = role.is_participant
            || match &rights.events {
                AllowedEvents::All => true,
                AllowedEvents::Only(rules) => {
                    let has_abi = rights.contract.abi.is_some();
                    let mut admitted = false;
                    for rule in rules {
                        admitted |= evaluation.satisfies(rule, role.is_recipient, has_abi, rights.contract.org)?;
                    }
                    admitted
                }
            };
        if is_admitted {
            evaluation.masked(zeroes_opaque && !attests_payload)
        } else {
            Ok(LogVisibility::Dropped)
        }
    }
}

/// The evaluation of one log for one viewer.
struct LogEvaluation<'l, 'a, 'v, 's> {
    log: &'l LogRow<'a>,
    /// The shape by a token standard, else the declared one.
    shape: Option<&'l EventShape>,
    /// Whether the shape is that of a standard, whose numbers are certainly not addresses.
    is_standard: bool,
    /// The shape that the emitter's ABI declares.
    declared: Option<&'l EventShape>,
    levels: &'l mut Levels<'v, 's>,
    viewer: &'v SingleViewer<'s>,
    data: Option<Cow<'a, [u8]>>,
}

impl LogEvaluation<'_, '_, '_, '_> {
    fn data(&mut self) -> Result<&[u8], MalformedData> {
        if self.data.is_none() {
            self.data = Some(self.log.data.decode()?);
        }
        self.data.as_deref().ok_or(MalformedData)
    }

    /// R19 to R22: zeroes addresses that are not Full, in topics and data. A declared shape only adds words that count
    /// as addresses and never removes one (HD31): only a standard's shape shows that a large number is not an address.
    fn masked(mut self, zeroes_opaque: bool) -> Result<LogVisibility, MalformedData> {
        let mut masked_topics = 0u8;
        for (position, topic) in self.log.topics.iter().enumerate() {
            let candidate = self.shape.map_or_else(
                || AddressCandidate::undeclared(topic),
                |shape| shape.topic(position, topic),
            );
            if !self.levels.shows(candidate) {
                masked_topics |= 1 << position;
            }
        }
        let shape = self.shape;
        let bytes = self.data()?;
        let decoded = match shape.map(|shape| shape.data(bytes)) {
            Some(Ok(decoded)) => decoded,
            None if bytes.len() % 32 == 0 => DecodedAbi::default(),
            // Data that cannot be decoded, or is not a list of words, is zeroed as a whole.
            Some(Err(_)) | None => {
                let zeroes = vec![0; bytes.len()];
                return Ok(Self::visibility(masked_topics, Some(zeroes)));
            }
        };
        let mut slots = decoded.addresses;
        if !self.is_standard {
            slots.extend(decoded.perhaps);
            slots.extend(possible_addresses(self.data()?));
        }
        let levels = &mut self.levels;
        slots.retain(|slot| !levels.sees(slot.address));
        let hidden: Vec<usize> = slots.into_iter().map(|slot| slot.offset).collect();
        let opaque = if zeroes_opaque { decoded.opaque.as_slice() } else { &[] };
        if hidden.is_empty() && opaque.is_empty() {
            return Ok(Self::visibility(masked_topics, None));
        }
        let mut bytes = self.data.take().ok_or(MalformedData)?.into_owned();
        hidden.iter().for_each(|offset| zero_word(&mut bytes, *offset));
        opaque.iter().for_each(|content| zero_opaque(&mut bytes, *content));
        Ok(Self::visibility(masked_topics, Some(bytes)))
    }

    fn visibility(topics: u8, data: Option<Vec<u8>>) -> LogVisibility {
        if topics == 0 && data.is_none() {
            LogVisibility::Whole
        } else {
            LogVisibility::Masked { topics, data }
        }
    }

    /// Whether the log satisfies an event rule. Parameter rules are alternatives; a shared log needs none of them
    /// (section 6.1). An anonymous event satisfies no rule.
    fn satisfies(
        &mut self,
        rule: &EventRule,
        is_recipient: bool,
        has_abi: bool,
        org: OrgId,
    ) -> Result<bool, MalformedData> {
        let is_anonymous = self.declared.is_some_and(EventShape::is_anonymous);
        if self.log.topics.first() != Some(&rule.topic0) || is_anonymous {
            return Ok(false);
        }
        let mut is_satisfied = rule.params.is_empty() || is_recipient;
        for param in &rule.params {
            is_satisfied = is_satisfied || self.holds(param, has_abi, org)?;
        }
        Ok(is_satisfied)
    }

    /// Whether a parameter satisfies its rule, as far as the viewer may see it (HD1): a masked word satisfies no
    /// comparison.
    fn holds(&mut self, param: &ParamRule, has_abi: bool, org: OrgId) -> Result<bool, MalformedData> {
        let (word, candidate, kind) = match self.shape {
            Some(shape) => {
                let log = self.log;
                let Some(input) = shape.input(param.index, log.topics, self.data()?) else {
                    return Ok(false);
                };
                let candidate = match input.kind {
                    WordKind::Address => input
                        .address()
                        .map_or(AddressCandidate::NonCanonical, AddressCandidate::Address),
                    WordKind::Function => input
                        .word
                        .first_chunk()
                        .map_or(AddressCandidate::NonCanonical, |bytes| {
                            AddressCandidate::Address(bytes.into())
                        }),
                    // Consistent with masking (HD31): a number of a standard is a number, any other word may be an
                    // address.
                    WordKind::Uint(_) | WordKind::Int(_) | WordKind::Bool | WordKind::FixedBytes(_)
                        if self.is_standard && !shape.is_indexed(param.index) =>
                    {
                        AddressCandidate::None
                    }
                    WordKind::Uint(_) | WordKind::Int(_) | WordKind::Bool | WordKind::FixedBytes(_) => {
                        AddressCandidate::undeclared(&input.word)
                    }
                };
                (input.word, candidate, Some(input.kind))
            }
            // The ABI does not declare this event, so its parameters are unknown.
            None if has_abi => return Ok(false),
            None => {
                let topic = param
                    .index
                    .checked_add(1)
                    .and_then(|position| self.log.topics.get(position));
                let Some(topic) = topic else { return Ok(false) };
                (
                    *topic,
                    possible_address(topic).map_or(AddressCandidate::None, AddressCandidate::Address),
                    None,
                )
            }
        };
        Ok(match &param.must_be {
            Constraint::Own => self.is_own(&word, candidate),
            Constraint::Org => self.levels.shows(candidate) && self.belongs_to(org, candidate),
            Constraint::Word(expected) => word == *expected && self.levels.shows(candidate),
            Constraint::OneOf(words) => words.contains(&word) && self.levels.shows(candidate),
            // A masked word satisfies no comparison, not even `ne`.
            Constraint::Compare(comparison, operand) => {
                comparison.holds(kind, &word, operand) && self.levels.shows(candidate)
            }
        })
    }

    /// Whether the word is an address of the organization. Without an ABI a word in the form of an address counts as
    /// one.
    fn belongs_to(&self, org: OrgId, candidate: AddressCandidate) -> bool {
        match candidate {
            AddressCandidate::Address(address) => self.viewer.belongs(org, address),
            AddressCandidate::None | AddressCandidate::Possible(_) | AddressCandidate::NonCanonical => false,
        }
    }

    fn is_own(&self, word: &B256, candidate: AddressCandidate) -> bool {
        match candidate {
            AddressCandidate::Address(address) => {
                clean_address(word) == Some(address) && self.viewer.owns_openly(address)
            }
            AddressCandidate::None | AddressCandidate::Possible(_) | AddressCandidate::NonCanonical => false,
        }
    }
}
