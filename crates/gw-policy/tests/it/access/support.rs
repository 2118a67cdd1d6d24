//! Asking for a decision in one line.

use gw_evm::{
    BlockId, Call, CallRequest, ChainRules, Extras, Lookup, Method, ParamError, SignedTransaction, Simulation,
    SimulationKind, VisibleTo, call,
};
use gw_policy::{
    Knobs, Snapshot,
    access::{Caller, Decision, HeadFacts, NamedOrg, Permit, Plan, Question, decide},
    testing::{NOW, org_id, user_id},
};
use gw_types::{Address, B256, Bytes, DenyReason, OrgId, Timestamp, U256};
use serde_json::{json, value::to_raw_value};

/// The followed head of every test.
pub(super) const HEAD: u64 = 1000;

/// A question in the making.
pub(super) struct Ask<'s> {
    pub(super) snapshot: &'s Snapshot,
    pub(super) caller: Caller,
    pub(super) named: NamedOrg,
    pub(super) visible_to: VisibleTo,
    pub(super) knobs: Knobs,
    pub(super) now: Timestamp,
    pub(super) extras: Extras,
}

/// Asks as the user of this name, as the snapshot knows them.
pub(super) fn ask<'s>(snapshot: &'s Snapshot, user: &str) -> Ask<'s> {
    let caller = snapshot.user(user_id(user)).map(|user| Caller::User(user.clone()));
    ask_as(snapshot, caller.unwrap_or_else(|| panic!("no user `{user}`")))
}

/// Asks without a token.
pub(super) fn ask_anonymously(snapshot: &Snapshot) -> Ask<'_> {
    ask_as(snapshot, Caller::Anonymous)
}

pub(super) fn ask_as(snapshot: &Snapshot, caller: Caller) -> Ask<'_> {
    Ask {
        snapshot,
        caller,
        named: NamedOrg::Unnamed,
        visible_to: VisibleTo::default(),
        knobs: Knobs::default(),
        now: NOW,
        extras: Extras::default(),
    }
}

impl Ask<'_> {
    pub(super) fn naming(mut self, org: &str) -> Self {
        self.named = NamedOrg::Org(org_id(org));
        self
    }

    pub(super) fn sharing(mut self, entries: &[&str]) -> Self {
        self.visible_to = VisibleTo::read(&to_raw_value(entries).unwrap());
        self
    }

    /// Where the operator's file says this.
    pub(super) fn beside(mut self, file: &serde_json::Value) -> Self {
        self.extras = Extras::parse(&file.to_string(), true).unwrap();
        self
    }

    pub(super) fn at(mut self, now: Timestamp) -> Self {
        self.now = now;
        self
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Knobs)) -> Self {
        change(&mut self.knobs);
        self
    }

    /// Asks about a method by name, its parameters as a client writes them.
    pub(super) fn rpc(&self, name: &str, params: serde_json::Value) -> Decision {
        let lookup = self.extras.lookup(name);
        let raw = to_raw_value(&params).unwrap();
        let parsed = match (&lookup, lookup.row()) {
            (_, Some(row)) => call::parse(row, Some(&raw), ChainRules { chain_id: 1 }),
            (Lookup::Extra(extra), None) => call::unexamined(extra.name(), Some(&raw)),
            (_, None) => Err(ParamError::invalid("not parsed")),
        };
        let parsed = parsed.map(|parsed| parsed.call);
        self.judge(lookup, parsed.as_ref())
    }

    /// Asks about a call that has no short form on the wire.
    pub(super) fn call(&self, method: Method, call: &Call) -> Decision {
        self.judge(Lookup::Known(method), Ok(call))
    }

    fn judge(&self, lookup: Lookup, call: Result<&Call, &ParamError>) -> Decision {
        let question = Question {
            caller: &self.caller,
            lookup,
            call,
            visible_to: &self.visible_to,
            named_org: self.named,
            now: self.now,
            head: HeadFacts { number: HEAD },
            knobs: &self.knobs,
        };
        decide(self.snapshot, &question)
    }

    pub(super) fn eth_call(&self, to: Address, data: impl Into<Bytes>) -> Decision {
        self.call(Method::Call, &simulate(SimulationKind::Call, to, data))
    }

    pub(super) fn send_raw(&self, sender: Address, to: Option<Address>, data: impl Into<Bytes>) -> Decision {
        self.call(Method::SendRawTransaction, &signed(sender, 0, to, data))
    }
}

pub(super) fn simulate(kind: SimulationKind, to: Address, data: impl Into<Bytes>) -> Call {
    let request = CallRequest {
        to: Some(to),
        input: data.into(),
        ..CallRequest::default()
    };
    Call::Simulate(Box::new(Simulation {
        kind,
        request,
        block: BlockId::LATEST,
    }))
}

/// A signed transaction; the signature itself is `gw-evm`'s to test.
pub(super) fn signed(sender: Address, nonce: u64, to: Option<Address>, data: impl Into<Bytes>) -> Call {
    let request = CallRequest {
        from: Some(sender),
        to,
        input: data.into(),
        nonce: Some(nonce),
        ..CallRequest::default()
    };
    let (raw, hash) = (Bytes::new(), B256::ZERO);
    Call::SendRaw(Box::new(SignedTransaction {
        raw,
        hash,
        tx_type: 2,
        sender,
        nonce,
        request,
    }))
}

/// The same, moving value.
pub(super) fn payment(sender: Address, to: Address) -> Call {
    let mut call = signed(sender, 0, Some(to), Bytes::new());
    if let Call::SendRaw(signed) = &mut call {
        signed.request.value = Some(U256::from(1));
    }
    call
}

/// What came of it, in a word: the plan, the reason, or `400`.
pub(super) fn verdict(decision: &Decision) -> String {
    match decision {
        Decision::Allow(permit) => plan(permit).to_owned(),
        Decision::Deny(denial) => denial.reason.to_string(),
        Decision::Invalid(_) => "400".to_owned(),
    }
}

fn plan(permit: &Permit) -> &'static str {
    match permit.plan() {
        Plan::Forward if !permit.shared_logs_only().is_empty() => "OWN+SHARED",
        Plan::Forward => "FORWARD",
        Plan::Local => "LOCAL",
        Plan::ZeroQuantity => "ZERO",
        Plan::CodeCheck => "NO-CODE",
        Plan::Simulate => "TRACE",
        Plan::Untraced => "NODE",
        Plan::Send => "SEND",
        Plan::Unexamined => "UNEXAMINED",
        Plan::Live => "LIVE",
    }
}

/// The permit of an allowed call.
pub(super) fn permit(decision: Decision) -> Permit {
    match decision {
        Decision::Allow(permit) => permit,
        other => panic!("not allowed: {other:?}"),
    }
}

/// Why, and where it is filed.
pub(super) fn denial(decision: &Decision) -> (DenyReason, Option<OrgId>) {
    match decision {
        Decision::Deny(denial) => (denial.reason, denial.org),
        other => panic!("not denied: {other:?}"),
    }
}

/// The reason alone.
pub(super) fn reason(decision: &Decision) -> DenyReason {
    denial(decision).0
}

/// `{to, data}` as clients write it.
pub(super) fn call_object(to: Address, data: &Bytes) -> serde_json::Value {
    json!({"to": to, "data": data})
}
