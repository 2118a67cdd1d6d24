//! Error texts for unknown names, with the nearest known name.

/// Maximum length of a name that is compared and repeated.
const LONGEST: usize = 64;

/// The error text for an unknown member of a body.
pub(crate) fn unknown_member<N: AsRef<str>>(name: &str, known: &[N]) -> String {
    unknown("member", name, known)
}

/// The error text for an unknown query parameter.
pub(crate) fn unknown_parameter<N: AsRef<str>>(name: &str, known: &[N]) -> String {
    unknown("query parameter", name, known)
}

fn unknown<N: AsRef<str>>(what: &str, name: &str, known: &[N]) -> String {
    let name: String = name.chars().take(LONGEST).collect();
    let mut names: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
    names.sort_by_key(|known| distance(&name.to_lowercase(), known));
    match names.first() {
        None => format!("unknown {what} `{name}`: none is taken here"),
        Some(nearest) => format!("unknown {what} `{name}`: did you mean `{nearest}`?"),
    }
}

/// The Levenshtein distance: how many characters must be inserted, deleted or replaced.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (before, a) in one.chars().enumerate() {
        let mut left = before + 1;
        let mut next = vec![left];
        for ((b, diagonal), above) in other.chars().zip(&row).zip(row.iter().skip(1)) {
            left = (diagonal + usize::from(a != b)).min(left + 1).min(above + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hd33_the_nearest_name_is_named() {
        for (one, other, apart) in [
            ("", "abc", 3),
            ("function", "functions", 1),
            ("kitten", "sitting", 3),
            ("a", "a", 0),
        ] {
            assert_eq!(distance(one, other), apart, "{one} {other}");
        }
        let known = ["group_id", "functions", "event_rules"];
        assert_eq!(
            unknown_member("function", &known),
            "unknown member `function`: did you mean `functions`?"
        );
        assert_eq!(
            unknown_member("EVENT_RULE", &known),
            "unknown member `EVENT_RULE`: did you mean `event_rules`?"
        );
        assert_eq!(
            unknown_parameter::<&str>("x", &[]),
            "unknown query parameter `x`: none is taken here"
        );
        assert!(unknown_member(&"x".repeat(10_000), &known).len() < 200);
    }
}
