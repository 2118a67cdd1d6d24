#!/usr/bin/env python3
"""Computes the cases of vectors.json with exact fractions, independently of the Rust code.

    python3 crates/gw-money/tests/vectors.py > crates/gw-money/tests/vectors.json

The output depends on nothing but this file. No float is used.
"""

import json
import random
import re
from fractions import Fraction

WORD = 2**256
SATURATION = 2**512
PRICE_LIMIT = 10**36
THRESHOLD_LIMIT = 10**23
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)

chance = random.Random("gw-money")


def half_even(value):
    """The nearest integer to a fraction that is not negative, a half to the even one."""
    floor = value.numerator // value.denominator
    rest = value - floor
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and floor % 2 == 1):
        return floor + 1
    return floor


def plain(mantissa, scale):
    """The decimal text of mantissa / 10^scale."""
    digits = str(mantissa).rjust(scale + 1, "0")
    whole, places = digits[: len(digits) - scale], digits[len(digits) - scale :].rstrip("0")
    return f"{whole}.{places}" if places else whole


# Values and thresholds.


def worth(name, tokens, threshold):
    """tokens: triples of units, decimals and price mantissa; threshold: a mantissa."""
    for units, decimals, price in tokens:
        assert 0 <= units < WORD and 0 <= decimals <= 77 and 1 <= price < PRICE_LIMIT, name
    assert 0 <= threshold <= THRESHOLD_LIMIT, name
    value = sum((Fraction(u * m, 10 ** (d + 18)) for u, d, m in tokens), Fraction(0))
    places = max((d for _, d, _ in tokens), default=0) + 18
    saturated = value * 10**places >= SATURATION
    return {
        "name": name,
        "tokens": [{"units": str(u), "decimals": d, "price": plain(m, 18)} for u, d, m in tokens],
        "threshold": plain(threshold, 8),
        "is_below": value < Fraction(threshold, 10**8),
        "fiat": None if saturated else plain(half_even(value * 10**8), 8),
    }


def spec_vectors():
    """The vectors of rule 21."""
    one = 10**18
    yield worth("rule 21: 31 million units of 6 places", [(31 * 10**6, 6, 2908 * 10**16)], 90148 * 10**6)
    yield worth("rule 21: a wei short of a half", [(499999999999999999, 18, 2000 * one)], 1000 * 10**8)
    yield worth("rule 21: a token of 77 places", [(10**77, 77, one)], 10**8)
    yield worth("rule 21: one wei, threshold 0", [(1, 18, 2000 * one)], 0)


def around_thresholds():
    """For all decimals: a value exactly at a threshold, then one unit and one threshold step away from it."""
    for decimals in range(78):
        while True:
            factor, rest = chance.randrange(1, 10**6), chance.randrange(1, 10**9)
            shift = chance.randrange(0, 30)
            threshold, price = factor * rest, factor * 10**shift
            power = decimals + 10 - shift
            if power >= 0 and rest * 10**power + 1 < WORD and price < PRICE_LIMIT:
                break
        units = rest * 10**power
        yield worth(f"{decimals} decimals, at the threshold", [(units, decimals, price)], threshold)
        yield worth(f"{decimals} decimals, a unit below", [(units - 1, decimals, price)], threshold)
        yield worth(f"{decimals} decimals, a unit above", [(units + 1, decimals, price)], threshold)
        yield worth(f"{decimals} decimals, threshold a step up", [(units, decimals, price)], threshold + 1)
        yield worth(f"{decimals} decimals, threshold a step down", [(units, decimals, price)], threshold - 1)


def uneven_prices():
    """Prices with all digits, where no amount is exactly at the threshold."""
    for number in range(60):
        decimals = chance.randrange(0, 78)
        price = chance.randrange(1, 10 ** chance.randrange(1, 37))
        threshold = chance.randrange(1, 10 ** chance.randrange(1, 24))
        units = min(threshold * 10 ** (decimals + 10) // price, WORD - 2)
        yield worth(f"uneven {number}, below or at", [(units, decimals, price)], threshold)
        yield worth(f"uneven {number}, a unit more", [(units + 1, decimals, price)], threshold)


def rounding_edges():
    """Amounts of money half-way between two numbers of 8 places, and one unit beside."""
    for number in range(30):
        decimals = chance.randrange(0, 60)
        shift = chance.randrange(0, 9)
        odd = 2 * chance.randrange(0, 10**6) + 1
        units, price = odd * 10 ** (decimals + 9 - shift), 5 * 10**shift
        for step in (-1, 0, 1):
            yield worth(f"rounding {number}, {step} units", [(units + step, decimals, price)], 0)


def bounds():
    """The ends of all ranges."""
    top, dear = WORD - 1, PRICE_LIMIT - 1
    for decimals in (0, 1, 18, 76, 77):
        for price in (1, 10**18, dear):
            for threshold in (0, 1, THRESHOLD_LIMIT):
                name = f"{decimals} decimals at price {plain(price, 18)}, threshold {plain(threshold, 8)}"
                yield worth(f"largest amount, {name}", [(top, decimals, price)], threshold)
                yield worth(f"one unit, {name}", [(1, decimals, price)], threshold)
                yield worth(f"nothing, {name}", [(0, decimals, price)], threshold)
    yield worth("no tokens, threshold 0", [], 0)
    yield worth("no tokens, smallest threshold", [], 1)


def sums():
    """Several tokens."""
    top, dear, one = WORD - 1, PRICE_LIMIT - 1, 10**18
    yield worth(
        "three parts make the threshold",
        [(5 * 10**17, 18, 1200 * one), (200 * 10**6, 6, one), (200, 0, one)],
        1000 * 10**8,
    )
    yield worth(
        "three parts, a wei short",
        [(5 * 10**17 - 1, 18, 1200 * one), (200 * 10**6, 6, one), (200, 0, one)],
        1000 * 10**8,
    )
    yield worth("a crumb of 77 places completes the sum", [(999, 0, one), (10**77, 77, one)], 1000 * 10**8)
    yield worth("a crumb of 77 places is missing", [(999, 0, one), (10**77 - 1, 77, one)], 1000 * 10**8)
    yield worth("the largest sum saturates", [(top, 0, dear), (1, 77, 1)], THRESHOLD_LIMIT)
    yield worth("saturation in the other order", [(1, 77, 1), (top, 0, dear)], THRESHOLD_LIMIT)
    yield worth("saturation between small ones", [(1, 0, 1), (top, 0, dear), (1, 77, 1), (5, 6, one)], THRESHOLD_LIMIT)
    # The second token multiplies the first numerator by 10^77.
    units = SATURATION // 10**78
    yield worth("the last sum of 512 bits", [(units, 0, 10), (1, 77, 1)], THRESHOLD_LIMIT)
    yield worth("the first sum beyond 512 bits", [(units + 1, 0, 10), (1, 77, 1)], THRESHOLD_LIMIT)
    for number in range(40):
        tokens = []
        for _ in range(chance.randrange(2, 7)):
            decimals = chance.randrange(0, 78)
            price = chance.randrange(1, 10 ** chance.randrange(1, 25))
            units = chance.randrange(0, min(WORD, 10 ** chance.randrange(1, decimals + 8)))
            tokens.append((units, decimals, price))
        value = sum((Fraction(u * m, 10 ** (d + 18)) for u, d, m in tokens), Fraction(0))
        nearest = min(half_even(value * 10**8), THRESHOLD_LIMIT - 1)
        for threshold in (max(nearest - 1, 0), nearest, nearest + 1):
            yield worth(f"sum {number} against {plain(threshold, 8)}", tokens, threshold)


# Texts of numbers.


def read(text):
    """The fraction of a text, or the kind of its fault."""
    if not text:
        return "empty"
    if len(text) > 100:
        return "too_long"
    match = NUMBER.fullmatch(text)
    if not match:
        return "malformed"
    exponent = int((match.group(3) or "e0")[1:])
    if abs(exponent) > 400:
        return "exponent"
    mantissa = Fraction(text[: match.start(3)] if match.group(3) else text)
    return mantissa * Fraction(10) ** exponent


def manual(text):
    number = read(text)
    if isinstance(number, str):
        return number
    scaled = number * 10**18
    if number <= 0:
        return "not_positive"
    # A number with both faults counts as having too many places.
    if scaled.denominator != 1:
        return "too_many_places"
    return "too_large" if scaled >= PRICE_LIMIT else str(scaled)


def feed(text):
    number = read(text)
    if isinstance(number, str):
        return number
    if number <= 0:
        return "unknown"
    scaled = half_even(number * 10**18)
    if scaled == 0:
        return "unknown"
    return "too_large" if scaled >= PRICE_LIMIT else str(scaled)


def threshold(text):
    number = read(text)
    if isinstance(number, str):
        return number
    if number < 0:
        return "negative"
    scaled = number * 10**8
    if scaled.denominator != 1:
        return "too_many_places"
    return "too_large" if scaled > THRESHOLD_LIMIT else str(scaled)


def texts():
    yield from """
        0 -0 0.0 0e5 1 1.0 1.50 01 1. .5 +1 -1 - -- 1e 1e+ e5 1e5 1E5 1e+5 1e-5 1e05 1.5e3 1.5e-3 0x10 1_000 1,5
        NaN nan Inf inf Infinity -Infinity null true 1/2 1.2.3 1e1.5 1e1e1 ١٢
        0.000000000000000001 0.0000000000000000001 0.0000000000000000005 0.00000000000000000050000000001
        0.0000000000000000015 0.0000000000000000025 0.0000000000000000024999 5e-19 5.1e-19 15e-19 25e-19 1e-18 1e-19
        999999999999999999.999999999999999999 999999999999999999.9999999999999999994
        999999999999999999.9999999999999999995 1e18 1000000000000000000 999999999999999999e0
        0.00000001 0.000000001 0.00000001000000 1000000000000000 1000000000000000.00000001 1e15 1e16 10e14 0.1e16
        999999999999999.99999999 1e400 1e401 1e-400 1e-401 1e99999999999999999999 -1e400 0e400 0e401 29.08 901.48
        1234.56000000000 -0.00000001 100e-10 12345678.123456789
    """.split()
    yield from ("", " ", " 1", "1 ", "1\n", "\t1", "1 000")
    yield "0." + "0" * 97 + "1"
    yield "0." + "0" * 98 + "1"
    yield "1" + "0" * 99
    yield "1" + "0" * 100
    yield "9" * 100
    yield "1." + "0" * 98
    yield "9" * 96 + "e-90"
    for _ in range(100):
        digits = str(chance.randrange(1, 10 ** chance.randrange(1, 30)))
        if chance.randrange(2):
            digits += "." + str(chance.randrange(0, 10 ** chance.randrange(1, 25)))
        if chance.randrange(2):
            digits += f"e{chance.randrange(-30, 20)}"
        yield digits


# Currencies: code and places of the minor unit, as listed by the maintenance agency of ISO 4217.

CURRENCIES = {
    0: "bif clp djf gnf isk jpy kmf krw pyg rwf ugx uyi vnd vuv xaf xof xpf",
    3: "bhd iqd jod kwd lyd omr tnd",
    4: "clf uyw",
    None: "xag xau xba xbb xbc xbd xdr xpd xpt xsu xts xua xxx",
    2: "aed aud brl cad chf cny eur gbp hkd inr mga mru mxn nok nzd pln sek sgd try usd ves xad xcg zar zwg",
}


def lines(key, cases):
    body = ",\n".join("    " + json.dumps(case, ensure_ascii=True) for case in cases)
    return f'  "{key}": [\n{body}\n  ]'


def main():
    values = [
        case
        for part in (spec_vectors, around_thresholds, uneven_prices, rounding_edges, bounds, sums)
        for case in part()
    ]
    numbers = [
        {"text": text, "manual": manual(text), "feed": feed(text), "threshold": threshold(text)} for text in texts()
    ]
    currencies = [{"code": code, "digits": digits} for digits, codes in CURRENCIES.items() for code in codes.split()]
    parts = [lines("worth", values), lines("numbers", numbers), lines("currencies", currencies)]
    print("{\n" + ",\n".join(parts) + "\n}")


main()
