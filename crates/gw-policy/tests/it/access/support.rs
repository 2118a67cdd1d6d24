//! Builders for access requests, and accessors for their decisions.

use gw_evm::{
    BlockId, Call, CallRequest, ChainRules, CustomMethods, Method, MethodLookup, ParamError, SignedTransaction,
    Simulation, SimulationKind, VisibleTo, call,
};
use gw_policy::{
    PolicySettings, Snapshot,
    access::{AccessRequest, Caller, Decision, HeadFacts, NamedOrg, Permit, Plan, decide},
    testing::{NOW, org_id, user_id},
};
use gw_types::{Address, B256, Bytes, DenyReason, OrgId, Timestamp, U256};
use serde_json::{json, value::to_raw_value};

/// The head block number in every test.
pub(super) const HEAD: u64 = 1000;

/// Builds an access request.
pub(super) struct RequestBuilder<'s> {
    pub(super) snapshot: &'s Snapshot,
    pub(super) caller: Caller,
    pub(super) named_org: NamedOrg,
    pub(super) visible_to: VisibleTo,
    pub(super) settings: PolicySettings,
    pub(super) now: Timestamp,
    pub(super) custom_methods: CustomMethods,
}

/// A request by the user of this name in the snapshot.
pub(super) fn request_as<'s>(snapshot: &'s Snapshot, user: &str) -> RequestBuilder<'s> {
    let caller = snapshot.user(user_id(user)).map(|user| Caller::User(user.clone()));
    request_from(snapshot, caller.unwrap_or_else(|| panic!("no user `{user}`")))
}

/// A request without a token.
pub(super) fn anonymous_request(snapshot: &Snapshot) -> RequestBuilder<'_> {
    request_from(snapshot, Caller::Anonymous)
}

pub(super) fn request_from(snapshot: &Snapshot, caller: Caller) -> RequestBuilder<'_> {
    RequestBuilder {
        snapshot,
        caller,
        named_org: NamedOrg::Unnamed,
        visible_to: VisibleTo::default(),
        settings: PolicySettings::default(),
        now: NOW,
        custom_methods: CustomMethods::default(),
    }
}

impl RequestBuilder<'_> {
    pub(super) fn in_org(mut self, org: &str) -> Self {
        self.named_org = NamedOrg::Org(org_id(org));
        self
    }

    pub(super) fn visible_to(mut self, entries: &[&str]) -> Self {
        self.visible_to = VisibleTo::read(&to_raw_value(entries).unwrap());
        self
    }

    /// Adds the custom methods of this file.
    pub(super) fn with_custom_methods(mut self, file: &serde_json::Value) -> Self {
        self.custom_methods = CustomMethods::parse(&file.to_string(), true).unwrap();
        self
    }

    pub(super) fn at_time(mut self, now: Timestamp) -> Self {
        self.now = now;
        self
    }

    pub(super) fn with_settings(mut self, change: impl FnOnce(&mut PolicySettings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Decides a call of a method by name, with parameters in the format of a client.
    pub(super) fn rpc(&self, name: &str, params: serde_json::Value) -> Decision {
        let lookup = self.custom_methods.lookup(name);
        let raw = to_raw_value(&params).unwrap();
        let parsed = match (&lookup, lookup.method()) {
            (_, Some(row)) => call::parse(row, Some(&raw), ChainRules { chain_id: 1 }),
            (MethodLookup::Custom(method), None) => call::passthrough(method.name(), Some(&raw)),
            (_, None) => Err(ParamError::invalid("not parsed")),
        };
        let parsed = parsed.map(|parsed| parsed.call);
        self.decide(lookup, parsed.as_ref())
    }

    /// Decides a parsed call.
    pub(super) fn call(&self, method: Method, call: &Call) -> Decision {
        self.decide(MethodLookup::Registered(method), Ok(call))
    }

    fn decide(&self, lookup: MethodLookup, call: Result<&Call, &ParamError>) -> Decision {
        let request = AccessRequest {
            caller: &self.caller,
            lookup,
            call,
            visible_to: &self.visible_to,
            named_org: self.named_org,
            now: self.now,
            head: HeadFacts { number: HEAD },
            policy_settings: &self.settings,
        };
        decide(self.snapshot, &request)
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

/// A signed transaction. Tests of `gw-evm` cover the signature itself.
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

/// A signed transaction without data that transfers value.
pub(super) fn payment(sender: Address, to: Address) -> Call {
    let mut call = signed(sender, 0, Some(to), Bytes::new());
    if let Call::SendRaw(signed) = &mut call {
        signed.request.value = Some(U256::from(1));
    }
    call
}

/// A short form of the decision: the plan, the deny reason, or `400`.
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
        Plan::Passthrough => "UNEXAMINED",
        Plan::Subscription => "LIVE",
    }
}

/// The permit of an allowed call.
pub(super) fn permit(decision: Decision) -> Permit {
    match decision {
        Decision::Allow(permit) => permit,
        other => panic!("not allowed: {other:?}"),
    }
}

/// The deny reason, and the organization in whose access log the denial is recorded.
pub(super) fn denial(decision: &Decision) -> (DenyReason, Option<OrgId>) {
    match decision {
        Decision::Deny(denial) => (denial.reason, denial.org),
        other => panic!("not denied: {other:?}"),
    }
}

/// The deny reason.
pub(super) fn reason(decision: &Decision) -> DenyReason {
    denial(decision).0
}

/// A call object `{to, data}` in the format of clients.
pub(super) fn call_object(to: Address, data: &Bytes) -> serde_json::Value {
    json!({"to": to, "data": data})
}
