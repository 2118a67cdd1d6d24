//! The price of a token (CO-14).

use crate::support::{
    ALICE, COIN,
    facts::{NOW, World, payment, price},
    units,
};
use gw_money::{Currency, Price};
use gw_transfer_rules::{
    Token,
    prices::{FeedId, KnownPrice, PriceSource, UnknownPrice},
};
use gw_types::{Seconds, Timestamp};

const TOKEN: Token = Token::Contract(COIN);

fn find(world: &World, token: Token, currency: Currency) -> Result<KnownPrice, UnknownPrice> {
    world.with_facts(|facts, now| facts.org.find_price(&facts.system.prices, token, currency, now))
}

fn mantissa(world: &World, token: Token) -> Option<Price> {
    find(world, token, Currency::USD).ok().map(|known| known.price)
}

/// CO-14: a manual row gives its price in the currency, and never another one.
#[test]
fn co14_a_price_in_another_currency_is_never_used() {
    let world = World::default().priced_in(TOKEN, 6, &[(Currency::USD, price(1)), (Currency::EUR, price(2))]);
    assert_eq!(
        find(&world, TOKEN, Currency::EUR).map(|known| known.price),
        Ok(price(2))
    );
    assert_eq!(
        find(&world, TOKEN, Currency::USD).map(|known| known.source),
        Ok(PriceSource::Manual)
    );
    let unknown = Err(UnknownPrice::NoPriceIn(Currency::AED));
    assert_eq!(find(&world, TOKEN, Currency::AED), unknown);
    assert_eq!(
        find(&World::default().priced_in(TOKEN, 6, &[]), TOKEN, Currency::AED),
        unknown
    );
}

/// CO-14: a row with a feed id takes the feed's price in the currency, with the row's decimals, or none.
#[test]
fn co14_a_row_of_the_feed_has_the_price_of_the_feed() {
    let world = World::default()
        .fed(TOKEN, 6, "tether")
        .feed_price("tether", Currency::USD, price(3), NOW);
    let known = find(&world, TOKEN, Currency::USD).unwrap();
    assert_eq!((known.price, known.decimals.get()), (price(3), 6));
    let id = FeedId::new("tether");
    let source = PriceSource::Feed {
        id: id.clone(),
        updated_at: NOW,
    };
    assert_eq!(known.source, source);
    let unknown = Err(UnknownPrice::NoFeedPrice(id.clone(), Currency::EUR));
    assert_eq!(find(&world, TOKEN, Currency::EUR), unknown);
    let unknown = Err(UnknownPrice::NoFeedPrice(id, Currency::USD));
    assert_eq!(
        find(&World::default().fed(TOKEN, 6, "tether"), TOKEN, Currency::USD),
        unknown
    );
}

/// CO-14: without a row the native coin has the price of its feed, and no other token has one. A row of the native coin
/// wins.
#[test]
fn co14_only_the_native_coin_has_a_price_without_a_row() {
    let world = World::default();
    let known = find(&world, Token::Native, Currency::USD).unwrap();
    assert_eq!((known.price, known.decimals.get()), (price(2000), 18));
    assert_eq!(find(&world, TOKEN, Currency::USD), Err(UnknownPrice::NoRow));
    assert_eq!(
        mantissa(&world.priced(Token::Native, 18, price(5)), Token::Native),
        Some(price(5))
    );
    let stale = World::default().priced_in(Token::Native, 18, &[]);
    assert_eq!(mantissa(&stale, Token::Native), None, "the row hides the feed");
}

/// CO-14: a price of the feed is stale when it is older than the threshold; zero: never. A time from the future is
/// stale by the same measure.
#[test]
fn co14_a_stale_price_is_unknown() {
    let world = |staleness: u32, age: i64| {
        let at = Timestamp::from_micros(NOW.micros() - age);
        let mut world = World::default().feed_price("ethereum", Currency::USD, price(2000), at);
        world.staleness = Seconds(staleness);
        world
    };
    let second = 1_000_000;
    for (staleness, age, is_known) in [
        (900, 0, true),
        (900, 900 * second, true),
        (900, 900 * second + 1, false),
        (0, i64::from(u32::MAX) * second, true),
        (900, -900 * second, true),
        (900, -900 * second - 1, false),
    ] {
        let found = find(&world(staleness, age), Token::Native, Currency::USD);
        assert_eq!(found.is_ok(), is_known, "{staleness} {age}");
        let stale = UnknownPrice::Stale(FeedId::new("ethereum"));
        assert!(is_known || found == Err(stale));
    }
    // Manual prices do not age.
    let manual = world(900, i64::from(u32::MAX)).priced(TOKEN, 0, price(1));
    assert_eq!(mantissa(&manual, TOKEN), Some(price(1)));
}

/// CO-11: the currency of the organization values its transfers, and that of the system if it sets none (CO-4).
#[test]
fn co4_co11_the_currency_of_the_organization_decides() {
    let world = |currency, system| {
        let mut world = World::default().priced_in(TOKEN, 0, &[(Currency::USD, price(1)), (Currency::AED, price(4))]);
        world.currency = system;
        world.change_config(|config| config.currency = currency)
    };
    let paid = payment(TOKEN, units(300));
    for (currency, system, exceeds) in [
        (Some(Currency::USD), Currency::AED, false),
        (Some(Currency::AED), Currency::USD, true),
        (None, Currency::USD, false),
        (None, Currency::AED, true),
    ] {
        let decision = world(currency, system).decide(&paid);
        assert_eq!(!decision.verdict.passes(), exceeds, "{currency:?} {system:?}");
        assert_eq!(decision.log.unwrap().currency, currency.unwrap_or(system));
    }
    assert_eq!(paid.parties()[1].address, ALICE);
}
