//! Names that are none, beside the known one they are nearest to.

/// The longest name that is compared and repeated.
const LONGEST: usize = 64;

/// The text for a member that a body does not have.
pub(crate) fn unknown_member<N: AsRef<str>>(name: &str, known: &[N]) -> String {
    unknown("member", name, known)
}

/// The text for a parameter that a query does not have.
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

/// How many characters have to be put in, taken out or exchanged (Levenshtein).
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
