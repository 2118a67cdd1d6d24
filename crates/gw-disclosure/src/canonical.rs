//! JSON in the canonical form of RFC 8785: the bytes that are signed (rule 37).

use serde_json::{Map, Value};

/// A document has a number that RFC 8785 and readers in other languages may write in different ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the document has a number that is no integer below 2^53")]
pub(crate) struct NotCanonical;

/// The largest integer that every reader of JSON represents exactly.
const MAX_SAFE: u64 = (1 << 53) - 1;

/// The canonical text of a document.
///
/// # Errors
/// [`NotCanonical`] if a number in it is no integer of at most 53 bits.
pub(crate) fn canonical(document: &Value) -> Result<String, NotCanonical> {
    let mut text = String::new();
    write(document, &mut text)?;
    Ok(text)
}

fn write(value: &Value, out: &mut String) -> Result<(), NotCanonical> {
    match value {
        Value::Number(number) => {
            let is_safe = number.as_i64().is_some_and(|number| number.unsigned_abs() <= MAX_SAFE);
            if !is_safe {
                return Err(NotCanonical);
            }
            out.push_str(&number.to_string());
        }
        // The escapes of `serde_json` are those of RFC 8785 section 3.2.2.2.
        Value::Null | Value::Bool(_) | Value::String(_) => out.push_str(&value.to_string()),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, out)?;
            }
            out.push(']');
        }
        Value::Object(members) => write_members(members, out)?,
    }
    Ok(())
}

/// Members in the order of the UTF-16 code units of their names (RFC 8785 section 3.2.3).
fn write_members(members: &Map<String, Value>, out: &mut String) -> Result<(), NotCanonical> {
    let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
    sorted.sort_by(|(left, _), (right, _)| left.encode_utf16().cmp(right.encode_utf16()));
    out.push('{');
    for (index, (name, value)) in sorted.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str(&Value::from(name.as_str()).to_string());
        out.push(':');
        write(value, out)?;
    }
    out.push('}');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The example of RFC 8785 section 3.2.3, in which code units and code points order two names differently.
    #[test]
    fn ds37_members_are_ordered_by_utf16_code_units() {
        let document = json!({
            "\u{20ac}": "Euro Sign",
            "\r": "Carriage Return",
            "\u{fb33}": "Hebrew Letter Dalet With Dagesh",
            "1": "One",
            "\u{1f600}": "Emoji: Grinning Face",
            "\u{80}": "Control",
            "\u{f6}": "Latin Small Letter O With Diaeresis",
        });
        assert_eq!(
            canonical(&document).unwrap(),
            "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\
             \"\u{f6}\":\"Latin Small Letter O With Diaeresis\",\"\u{20ac}\":\"Euro Sign\",\
             \"\u{1f600}\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}"
        );
    }

    #[test]
    fn ds37_literals_and_strings_are_written_as_the_rfc_says() {
        let document = json!({"b": [true, null, -7], "a": "\u{20ac}$\u{f}\nA'B\"\\\"/"});
        assert_eq!(
            canonical(&document).unwrap(),
            "{\"a\":\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\"/\",\"b\":[true,null,-7]}"
        );
    }

    #[test]
    fn ds37_numbers_that_readers_write_differently_are_refused() {
        for document in [json!(1.5), json!(1u64 << 53), json!(i64::MIN), json!([{"n": 1e3}])] {
            assert_eq!(canonical(&document), Err(NotCanonical), "{document}");
        }
        assert_eq!(canonical(&json!(MAX_SAFE)).unwrap(), "9007199254740991");
    }
}
