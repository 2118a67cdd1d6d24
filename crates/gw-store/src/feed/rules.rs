//! The feed's decisions as pure functions, so that `gw-models` checks the protocol with the functions that run it (HD23
//! E-1, E-4).

use gw_types::Epoch;

/// Relation of the database's head to the last seen epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Succession {
    /// The seen epoch is the head.
    Same,
    /// The head continues the seen history.
    Later,
    /// The head is an older epoch: another database, or a restored one.
    WentBack,
    /// The head belongs to another history: the seen epoch has another stamp there, or is unknown.
    Another,
}

/// Compares a head with the last seen epoch and its stamp. `recorded` is the stamp that the database has for the seen
/// epoch: the head's own if the numbers are equal.
pub fn succession<S: PartialEq>(seen: Epoch, stamp: S, head: Epoch, recorded: Option<S>) -> Succession {
    if head < seen {
        Succession::WentBack
    } else if recorded != Some(stamp) {
        Succession::Another
    } else if head == seen {
        Succession::Same
    } else {
        Succession::Later
    }
}

/// Whether change rows, in the order of their epochs, cover every step after `from` up to `to`. Every epoch has at
/// least one change row, so each row belongs to the epoch of the row before it or to the next one. `None` is an invalid
/// epoch.
pub fn is_gapless(from: Epoch, to: Epoch, rows: impl IntoIterator<Item = Option<Epoch>>) -> bool {
    let mut last = from;
    for epoch in rows {
        match epoch {
            Some(epoch) if epoch > from && epoch == last => {}
            Some(epoch) if epoch.0 == last.0.saturating_add(1) => last = epoch,
            Some(_) | None => return false,
        }
    }
    last == to
}

/// Whether a head may still be trusted: `confirmed` is when the query that confirmed it was sent, 0 if none did. All
/// three in the same unit of uptime.
pub const fn is_fresh(confirmed: u64, now: u64, stale_after: u64) -> bool {
    confirmed != 0 && now.saturating_sub(confirmed) < stale_after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hd23_e1_every_step_is_told_or_none_is_applied() {
        let rows = |epochs: &[u64]| epochs.iter().map(|epoch| Some(Epoch(*epoch))).collect::<Vec<_>>();
        for (epochs, whole) in [
            (&[4, 4, 5][..], true),
            (&[4, 5, 5, 5], true),
            (&[3, 4, 5], false),
            (&[5], false),
            (&[4], false),
            (&[4, 6], false),
            (&[5, 4], false),
            (&[], false),
        ] {
            assert_eq!(is_gapless(Epoch(3), Epoch(5), rows(epochs)), whole, "{epochs:?}");
        }
        assert!(
            !is_gapless(Epoch(3), Epoch(4), [None, Some(Epoch(4))]),
            "a number that is no epoch"
        );
        assert!(is_gapless(Epoch(3), Epoch(3), []));
    }

    #[test]
    fn hd23_e1_a_number_alone_names_no_epoch() {
        let seen = |head, recorded| succession(Epoch(3), 'c', Epoch(head), recorded);
        assert_eq!(seen(3, Some('c')), Succession::Same);
        assert_eq!(seen(4, Some('c')), Succession::Later);
        assert_eq!(seen(2, None), Succession::WentBack);
        assert_eq!(
            (seen(3, Some('x')), seen(4, Some('x'))),
            (Succession::Another, Succession::Another)
        );
        assert_eq!(
            seen(4, None),
            Succession::Another,
            "an epoch the database has forgotten"
        );
    }
}
