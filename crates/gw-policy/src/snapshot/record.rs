//! The rows of policy as the core sees them.

use alloy_primitives::keccak256;
use gw_evm::{
    ExtraNames, MethodSet,
    abi::{ContractAbi, WordKind},
};
use gw_types::{
    Address, AllowedTenantId, ApprovedCodeId, B256, Claims, ContractId, ConvictionId, ExternalId, GrantId, GroupId,
    LinkId, MembershipId, OrgId, OrgUserRecordId, PersonalUrlId, QuarantineId, ReservationId, Secret, SharedInfraId,
    SuspensionId, TenantId, Timestamp, ToggleId, TokenId, UserId, VisibilityId,
};
use std::sync::Arc;

/// A person or machine (spec/20 A9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Row id.
    pub id: UserId,
    /// DID or directory identity.
    pub external_id: ExternalId,
    /// Whether KYC is completed.
    pub kyc: bool,
    /// Whether the account is banned.
    pub banned: bool,
    /// The directory tenant that vouches; without it being allowed the user does not come in (TK-8).
    pub tenant: Option<TenantId>,
    /// Access tokens issued before this moment are dead (ban, deletion, tenant removal).
    pub tokens_valid_from: Option<Timestamp>,
}

/// A directory tenant on the list of those that may vouch (spec/10 DS-7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllowedTenant {
    /// Row id.
    pub id: AllowedTenantId,
    /// The tenant.
    pub tenant: TenantId,
    /// Kept on the list, but shut out for the time being.
    pub disabled: bool,
}

/// A personal RPC URL (HD17): who calls by it, where, and how far it reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonalUrl {
    /// Row id.
    pub id: PersonalUrlId,
    /// SHA-256 of the secret in its path.
    pub secret: B256,
    /// Whose it is.
    pub user: UserId,
    /// The one organization it acts in.
    pub org: OrgId,
    /// How far it reaches.
    pub reach: UrlReach,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// What may be done by a personal URL, of all its owner may (PU-1). Every page a wallet is connected to acts by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UrlReach {
    /// What a wallet needs: the chain, own balance and nonce, gas, sends, own transactions.
    Wallet,
    /// The same, with `eth_call` and `eth_getLogs` on these contracts.
    Contracts(Arc<[Address]>),
    /// Everything but traces.
    All,
}

/// An organization (A1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Organization {
    /// Row id.
    pub id: OrgId,
    /// Unique slug.
    pub slug: Arc<str>,
    /// Display name.
    pub name: Arc<str>,
    /// The default and anonymous organizations.
    pub is_system: bool,
}

impl Organization {
    /// The default organization (A2); it does not count when a user has another (decision 40).
    pub const DEFAULT: OrgId = OrgId::fixed(1);
    /// The anonymous organization (A2).
    pub const ANONYMOUS: OrgId = OrgId::fixed(2);
}

/// A group of an organization (A4, A5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Row id.
    pub id: GroupId,
    /// The owning organization.
    pub org: OrgId,
    /// Slug, unique per organization.
    pub slug: Arc<str>,
    /// Members administer the organization.
    pub is_org_admin: bool,
    /// Members read the administration of the organization.
    pub is_org_readonly_admin: bool,
    /// The default and anonymous groups.
    pub is_system: bool,
}

impl Group {
    /// The default group (A2).
    pub const DEFAULT: GroupId = GroupId::fixed(1);
    /// The anonymous group (A2).
    pub const ANONYMOUS: GroupId = GroupId::fixed(2);
}

/// What a group's members may do (G1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupAccess {
    /// The group.
    pub group: GroupId,
    /// Granted methods.
    pub methods: MethodSet,
    /// Entries beside the registry (G4).
    pub extras: ExtraNames,
    /// Claims of the group.
    pub claims: Claims,
    /// When all of it ends; `None` is never (G1).
    pub expires_at: Option<Timestamp>,
    /// The key the node is asked by for its members, as it is stored: encrypted (G1).
    pub upstream_key: Option<Secret>,
}

impl GroupAccess {
    /// Whether it still counts.
    pub fn active(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| end > now)
    }
}

/// A user's place in a group (A7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Row id.
    pub id: MembershipId,
    /// The member.
    pub user: UserId,
    /// The group.
    pub group: GroupId,
    /// End of the membership; `None` is permanent.
    pub expires_at: Option<Timestamp>,
    /// Whether the member agreed to it.
    pub state: MembershipState,
    /// Since when it is in this state.
    pub since: Timestamp,
}

/// Whether a member agreed to a membership (HD32, decision 62).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MembershipState {
    /// By an act of their own, or confirmed by super. Only such a membership gives administrators rights over the person.
    Accepted,
    /// Made by an organization for a person who had accepted no other one. It gives the person their rights at once,
    /// until they accept another organization; unless another organization's was there before.
    Provisional,
    /// Made by an organization for a person who had accepted another one, or who had declined or left this one. It gives
    /// nothing.
    Invited,
}

impl Membership {
    /// The predicate of A8 on one row. Whether the membership counts depends on others as well:
    /// [`super::Snapshot::active_memberships`].
    pub fn active(&self, now: Timestamp) -> bool {
        self.state != MembershipState::Invited && !self.has_ended(now)
    }

    /// Whether the member agreed, and it has not ended.
    pub fn is_accepted(&self, now: Timestamp) -> bool {
        self.state == MembershipState::Accepted && !self.has_ended(now)
    }

    /// Whether the member has yet to agree, and it has not ended.
    pub fn is_pending(&self, now: Timestamp) -> bool {
        self.state != MembershipState::Accepted && !self.has_ended(now)
    }

    /// Whether its end has come.
    pub fn has_ended(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

/// What one organization decided about a person (RT24). It binds in that organization only, and is kept by name: it
/// outlives the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrgUserRecord {
    /// Row id.
    pub id: OrgUserRecordId,
    /// The organization.
    pub org: OrgId,
    /// The person.
    pub external_id: ExternalId,
    /// The organization completed KYC of them.
    pub kyc: bool,
    /// The organization banned them.
    pub banned: bool,
}

/// A registered contract (K1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    /// Row id.
    pub id: ContractId,
    /// The owning organization.
    pub org: OrgId,
    /// Its address.
    pub address: Address,
    /// Since when the organization owns it: its registration, or the deployment through the gateway before (H1).
    pub since: Timestamp,
    /// The first block that is the organization's, if the contract was another one's before (HD41). Without one every block
    /// is.
    pub owned_from: Option<u64>,
    /// Display name.
    pub name: Arc<str>,
    /// Who deployed it through the gateway (K7).
    pub deployer: Option<UserId>,
    /// The effective ABI, its selectors resolved once: uploaded, else built in by token type (K1, R23).
    pub abi: Option<Arc<ContractAbi>>,
    /// R29.
    pub allow_visibleto_unlock: bool,
    /// K5 attestation.
    pub events_allow_dynamic_payload: bool,
    /// Frames below it are not judged by function rules (F5, HD4): its administrators vouch for what it passes on.
    pub trusted_router: bool,
}

impl Contract {
    /// Whether what happened then was the organization's (HD41).
    pub fn owned_at(&self, moment: Moment) -> bool {
        match (self.owned_from, moment) {
            (None, _) | (Some(_), Moment::Now) => true,
            (Some(first), Moment::Block(number)) => number >= first,
            (Some(_), Moment::Unknown) => false,
        }
    }
}

/// When something happened, as far as it decides whose a contract was (HD41).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// In no block yet.
    Now,
    /// In the block of this number.
    Block(u64),
    /// In a block whose number the node did not say.
    Unknown,
}

/// A registration that ended (HD41): what the contract did until then stays the organization's to see, by the rights that its
/// members have today and the grants as they were when it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastContract {
    /// The contract as it was registered.
    pub contract: Arc<Contract>,
    /// The grants on it.
    pub grants: Vec<Arc<ContractGrant>>,
    /// The last block that was the organization's; without one none is shown by this registration.
    pub owned_until: Option<u64>,
}

impl PastContract {
    /// Whether what happened then was the organization's.
    pub fn owned_at(&self, moment: Moment) -> bool {
        match (self.owned_until, moment) {
            (Some(last), Moment::Block(number)) => number <= last && self.contract.owned_at(moment),
            (None, _) | (Some(_), Moment::Now | Moment::Unknown) => false,
        }
    }
}

/// A contract whose registration was deleted. Its organization still owns it for judgement, and nobody reaches it (HD27).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetiredContract {
    /// The id of the deleted registration.
    pub id: ContractId,
    /// Its address.
    pub address: Address,
    /// The organization it was registered to, which may be gone itself.
    pub org: OrgId,
    /// Since when the organization owned it.
    pub since: Timestamp,
    /// When the registration was deleted.
    pub retired_at: Timestamp,
}

/// A contract that every organization may call (X6, spec/80 section 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedInfra {
    /// Row id.
    pub id: SharedInfraId,
    /// Its address.
    pub address: Address,
    /// The code it was tagged with; without a pin any code will do.
    pub pin: Option<CodePin>,
    /// Whether other code than the pinned was found there since: the tag counts for nothing until an administrator
    /// looked at it and pinned anew.
    pub broken: bool,
}

/// Creation code that a super admin approved, whatever constructor arguments follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApprovedCode {
    /// Row id.
    pub id: ApprovedCodeId,
    /// Its keccak256.
    pub hash: B256,
    /// Its length in bytes.
    pub size: u32,
}

/// The code that a tag is about; for a proxy the pair of its own and its implementation's (HD9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodePin {
    /// keccak256 of the code at the address.
    pub code: B256,
    /// keccak256 of the code that it delegates to.
    pub implementation: Option<B256>,
}

impl CodePin {
    /// Whether this is the pinned code of the address itself.
    pub fn is_code(&self, code: &[u8]) -> bool {
        !code.is_empty() && keccak256(code) == self.code
    }

    /// Whether this is the pinned code of the implementation.
    pub fn is_implementation(&self, code: &[u8]) -> bool {
        !code.is_empty() && self.implementation == Some(keccak256(code))
    }
}

/// A switch that the operator of the service may turn for a while (X9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SystemToggle {
    /// Whether calls of `eth_call` are traced. Sends always are.
    EthCallTracing,
    /// Whether frames into contracts of the caller's own organization need a grant, too (X8).
    IntraOrgGrantTracing,
}

impl SystemToggle {
    /// Both.
    pub const ALL: [Self; 2] = [Self::EthCallTracing, Self::IntraOrgGrantTracing];

    /// The key of its row.
    pub const fn id(self) -> ToggleId {
        match self {
            Self::EthCallTracing => ToggleId::fixed(1),
            Self::IntraOrgGrantTracing => ToggleId::fixed(2),
        }
    }

    /// The name in paths and audit entries.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EthCallTracing => "eth-call-tracing",
            Self::IntraOrgGrantTracing => "intra-org-grant-tracing",
        }
    }
}

/// How a toggle stands until a moment; without a row, or after it, the configuration decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToggleState {
    /// Row id, one per toggle ([`SystemToggle::id`]).
    pub id: ToggleId,
    /// On or off.
    pub enabled: bool,
    /// The end of the override.
    pub until: Timestamp,
}

/// A group's rights on one contract (F1-F4, C3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractGrant {
    /// Row id.
    pub id: GrantId,
    /// The contract.
    pub contract: ContractId,
    /// The group.
    pub group: GroupId,
    /// Claims on this contract only (C3).
    pub claims: Claims,
    /// `None`: all functions; an empty list: none (F1).
    pub functions: Option<Vec<FunctionRule>>,
    /// Which events the holders see.
    pub events: EventRules,
}

/// One permitted function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionRule {
    /// The selector.
    pub selector: [u8; 4],
    /// All must hold (F3).
    pub params: Vec<ParamRule>,
}

/// A condition on one parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamRule {
    /// Position in the ABI's inputs.
    pub index: usize,
    /// What it must be.
    pub must_be: MustBe,
}

/// The condition of a [`ParamRule`] (F3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MustBe {
    /// An address linked to the caller.
    Own,
    /// An address of the contract's organization: its contract, reservation, or a member's wallet.
    Org,
    /// Exactly this ABI word.
    Word(B256),
    /// One of these words.
    OneOf(Vec<B256>),
    /// Compared with this word; what has no order is neither less nor more.
    Compare(Comparison, B256),
}

/// How a parameter compares with a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `ne`
    NotEqual,
    /// `lt`
    Less,
    /// `lte`
    AtMost,
    /// `gt`
    More,
    /// `gte`
    AtLeast,
}

impl Comparison {
    /// Whether `word`, of this type, stands so to `other`. Numbers alone have an order; without a type there is none.
    pub fn holds(self, kind: Option<WordKind>, word: &B256, other: &B256) -> bool {
        // In two's complement the sign is the top bit: turned over, the order of bytes is the order of numbers.
        let key = |word: &B256| match kind {
            Some(WordKind::Uint(_)) => Some(*word),
            Some(WordKind::Int(_)) => {
                let mut word = *word;
                if let Some(first) = word.first_mut() {
                    *first ^= 0x80;
                }
                Some(word)
            }
            Some(WordKind::Address | WordKind::Bool | WordKind::FixedBytes(_) | WordKind::Function) | None => None,
        };
        match (self, key(word), key(other)) {
            (Self::NotEqual, _, _) => word != other,
            (Self::Less, Some(word), Some(other)) => word < other,
            (Self::AtMost, Some(word), Some(other)) => word <= other,
            (Self::More, Some(word), Some(other)) => word > other,
            (Self::AtLeast, Some(word), Some(other)) => word >= other,
            (Self::Less | Self::AtMost | Self::More | Self::AtLeast, _, _) => false,
        }
    }
}

/// The event rules of a grant (F4, decision 19).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventRules {
    /// No rule given (`null`), or `"*"`: every event, masked.
    All,
    /// Only these; an empty list is none.
    Only(Vec<EventRule>),
}

/// One permitted event; its parameter rules are OR-ed, none means no condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRule {
    /// The event's topic0.
    pub topic0: B256,
    /// Parameter rules.
    pub params: Vec<ParamRule>,
}

/// An address proved by, or inferred for, a user (spec/10 section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressLink {
    /// Row id.
    pub id: LinkId,
    /// The owner.
    pub user: UserId,
    /// The address.
    pub address: Address,
    /// How it came about.
    pub kind: LinkKind,
    /// A contract said whose it is, not a key: its owner takes part in no transaction sent to it (HD10).
    pub contract_wallet: bool,
    /// When; the newest of a kind wins (LK-5).
    pub verified_at: Timestamp,
}

/// How a link came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkKind {
    /// Inferred from a forwarded signed transaction.
    System,
    /// Proved by a signed challenge; takes precedence.
    User,
}

/// An address a pending deployment will get (R1, HD14). Not exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Row id.
    pub id: ReservationId,
    /// The address.
    pub address: Address,
    /// The deployer's organization.
    pub org: OrgId,
    /// The deployer.
    pub user: UserId,
    /// Ends unmined then.
    pub expires_at: Timestamp,
}

/// Who else may see one transaction (spec/30 section 7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxVisibility {
    /// Row id.
    pub id: VisibilityId,
    /// The transaction.
    pub tx_hash: B256,
    /// Who attached the list.
    pub sender: UserId,
    /// Who may see.
    pub recipients: Vec<ExternalId>,
    /// Whether the node accepted the transaction (W5).
    pub active: bool,
}

/// A person who lost the right to send: a transaction of theirs did, once mined, what it had not done when it was judged
/// (HD2). Keyed by DID: it outlives the user row and binds whoever enrolls under the same name (HD37).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspension {
    /// Row id.
    pub id: SuspensionId,
    /// Whose right.
    pub external_id: ExternalId,
}

/// An address that is closed until cleared, because what such a transaction changed cannot be known (HD28).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantine {
    /// Row id.
    pub id: QuarantineId,
    /// The address.
    pub address: Address,
    /// To whom it is closed.
    pub closed_to: ClosedTo,
}

/// To whom an address is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClosedTo {
    /// To everybody.
    Everybody,
    /// To the sender of the transaction and the members of the sender's organizations: addresses that everybody uses.
    SenderSide(ExternalId, Arc<[OrgId]>),
}

/// A transaction that did, once mined, what its sender may not: it is withheld whole from everybody (HD28).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conviction {
    /// Row id.
    pub id: ConvictionId,
    /// The transaction.
    pub tx_hash: B256,
    /// Who sent it.
    pub external_id: ExternalId,
    /// Its block.
    pub block_hash: B256,
    /// Its place there.
    pub place: u64,
    /// How many events it emitted.
    pub logs: u64,
}

/// A dead token (`jti`) or token family (`sid`), kept until it would have expired anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// The `jti` or `sid`.
    pub id: TokenId,
    /// When the row loses its meaning.
    pub until: Timestamp,
}
