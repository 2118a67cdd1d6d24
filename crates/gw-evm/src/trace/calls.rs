//! Parses the call tree in the format of the callTracer.

use super::{Frame, FrameKind, FrameLog, Outcome, TraceError, json::Reader};
use alloy_primitives::{Address, B256, Bytes, U256, hex};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// The limits of a call tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) depth: u32,
    pub(super) frames: usize,
}

/// Reads the frames in execution order, and the result of the top frame.
pub(super) fn parse(json: &RawValue, limits: Limits) -> Result<(Vec<Frame>, Outcome), TraceError> {
    let drafts = drafts(json, limits)?;
    let mut top = Outcome::default();
    let mut frames: Vec<Frame> = Vec::with_capacity(drafts.len());
    for mut draft in drafts {
        if frames.is_empty() {
            top = draft.outcome();
        }
        let parent_undone = draft
            .parent
            .and_then(|parent| frames.get(parent))
            .is_some_and(|parent| parent.undone);
        frames.push(draft.finish(parent_undone)?);
    }
    Ok((frames, top))
}

/// A frame whose members are being read; nodes write them in any order.
#[derive(Default)]
struct Draft {
    kind: Option<FrameKind>,
    from: Option<Address>,
    to: Option<Address>,
    input: Option<Bytes>,
    output: Option<Bytes>,
    value: Option<U256>,
    gas: Option<u64>,
    gas_used: Option<u64>,
    error: Option<String>,
    revert_reason: Option<String>,
    logs: Option<Vec<FrameLog>>,
    /// Set once the member `calls` was read, to detect a second one.
    calls: Option<()>,
    depth: u32,
    parent: Option<usize>,
}

fn drafts(json: &RawValue, limits: Limits) -> Result<Vec<Draft>, TraceError> {
    let mut reader = Reader::new(json);
    let mut drafts = vec![Draft::default()];
    // Indices of the open frames, from the top frame down. The members of the last one are being read.
    let mut open = vec![0_usize];
    reader.object()?;
    while let Some(index) = open.last().copied() {
        let enter_call = match reader.member()? {
            Some("calls") => {
                let draft = drafts.get_mut(index).ok_or(TraceError::Malformed)?;
                put(&mut draft.calls, ())?;
                reader.array()? && reader.element()?
            }
            Some(name) => {
                let text = reader.value()?;
                drafts.get_mut(index).ok_or(TraceError::Malformed)?.set(name, text)?;
                false
            }
            None => {
                open.pop();
                !open.is_empty() && reader.element()?
            }
        };
        if enter_call {
            reader.object()?;
            let depth = u32::try_from(open.len()).map_err(|_| TraceError::TooDeep)?;
            if depth > limits.depth {
                return Err(TraceError::TooDeep);
            }
            if drafts.len() >= limits.frames {
                return Err(TraceError::TooManyFrames);
            }
            let parent = open.last().copied();
            open.push(drafts.len());
            drafts.push(Draft {
                depth,
                parent,
                ..Draft::default()
            });
        }
    }
    Ok(drafts)
}

impl Draft {
    fn set(&mut self, name: &str, text: &str) -> Result<(), TraceError> {
        if text == "null" {
            return Ok(());
        }
        match name {
            "type" => put(&mut self.kind, kind(text)?),
            "from" => put(&mut self.from, read(text)?),
            "to" => put(&mut self.to, read(text)?),
            "input" => put(&mut self.input, bytes(text)?),
            "output" => put(&mut self.output, bytes(text)?),
            "value" => put(&mut self.value, read(text)?),
            "gas" => put(&mut self.gas, number(text)?),
            "gasUsed" => put(&mut self.gas_used, number(text)?),
            "error" => put(&mut self.error, read(text)?),
            "revertReason" => put(&mut self.revert_reason, read(text)?),
            "logs" => put(&mut self.logs, read(text)?),
            _ => Ok(()),
        }
    }

    fn outcome(&mut self) -> Outcome {
        Outcome {
            output: self.output.clone().unwrap_or_default(),
            gas_used: self.gas_used.unwrap_or_default(),
            error: self.error.clone(),
            revert_reason: self.revert_reason.take(),
        }
    }

    fn finish(self, parent_undone: bool) -> Result<Frame, TraceError> {
        let kind = self.kind.ok_or(TraceError::Malformed)?;
        let failed = self.error.is_some();
        let undone = failed || parent_undone;
        let creates = matches!(kind, FrameKind::Create | FrameKind::Create2);
        // Only a creation that failed early has no address.
        if self.to.is_none() && !(creates && failed) {
            return Err(TraceError::Malformed);
        }
        let moves_value = creates || matches!(kind, FrameKind::Call | FrameKind::SelfDestruct);
        Ok(Frame {
            kind,
            from: self.from.ok_or(TraceError::Malformed)?,
            to: self.to,
            input: self.input.unwrap_or_default(),
            output: self.output.unwrap_or_default(),
            value: self.value.filter(|_| moves_value).unwrap_or_default(),
            gas: self.gas,
            gas_used: self.gas_used,
            error: self.error,
            depth: self.depth,
            parent: self.parent,
            failed,
            undone,
            logs: self.logs.filter(|_| !undone).unwrap_or_default(),
        })
    }
}

/// Sets a member; a repeated member is an error.
fn put<T>(slot: &mut Option<T>, value: T) -> Result<(), TraceError> {
    if slot.replace(value).is_some() {
        Err(TraceError::Malformed)
    } else {
        Ok(())
    }
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, TraceError> {
    serde_json::from_str(text).map_err(|_| TraceError::Malformed)
}

fn number(text: &str) -> Result<u64, TraceError> {
    read::<U256>(text)?.try_into().map_err(|_| TraceError::Malformed)
}

fn bytes(text: &str) -> Result<Bytes, TraceError> {
    let digits = text
        .strip_prefix("\"0x")
        .and_then(|rest| rest.strip_suffix('"'))
        .ok_or(TraceError::Malformed)?;
    hex::decode(digits).map(Bytes::from).map_err(|_| TraceError::Malformed)
}

fn kind(text: &str) -> Result<FrameKind, TraceError> {
    Ok(match text {
        "\"CALL\"" => FrameKind::Call,
        "\"STATICCALL\"" => FrameKind::StaticCall,
        "\"DELEGATECALL\"" => FrameKind::DelegateCall,
        "\"CALLCODE\"" => FrameKind::CallCode,
        "\"CREATE\"" => FrameKind::Create,
        "\"CREATE2\"" => FrameKind::Create2,
        "\"SELFDESTRUCT\"" => FrameKind::SelfDestruct,
        _ => return Err(TraceError::UnknownFrame),
    })
}

impl<'de> serde::Deserialize<'de> for FrameLog {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        struct Text {
            address: Address,
            topics: Vec<B256>,
            data: Bytes,
        }
        let Text { address, topics, data } = Text::deserialize(deserializer)?;
        Ok(Self { address, topics, data })
    }
}
