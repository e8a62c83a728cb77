"""Quantities are read exactly."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinloom.common import units


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (units.parse_time, "33.4 ns", 33_400),
        (units.parse_time, "7us", 7_000_000),
        (units.parse_rate, "37.25 ps/B", Fraction(149, 4)),
        (units.parse_rate, "15 GB/s", Fraction(200, 3)),
        (units.parse_rate, "50 GiB/s", Fraction(10**12, 50 * 2**30)),
        (units.parse_rate, "200 Gibit/s", Fraction(8 * 10**12, 200 * 2**30)),
        (units.parse_rate, "8125/512 ps/B", Fraction(8125, 512)),
        (units.parse_frequency, "3.4 GHz", 3_400_000_000),
        (units.parse_bytes, "4 MiB", 4 * 2**20),
        (units.parse_bytes, "15kB", 15_000),
        (units.parse_bytes, "612", 612),
        (units.parse_cycles, "1 cycle", 1),
        (units.parse_rational, "0.2", Fraction(1, 5)),
    ],
)
def test_reads_exactly(parse, text, value):
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (units.parse_time, "0.5 ps"),
        (units.parse_time, "5"),
        (units.parse_time, "-5 ns"),
        (units.parse_time, "5 parsecs"),
        (units.parse_rate, "50 GiB"),
        (units.parse_rate, "0 GB/s"),
        (units.parse_rate, "0 ps/B"),
        (units.parse_frequency, "800 MiHz"),
        (units.parse_bytes, "1.5 B"),
        (units.parse_bytes, "KiB"),
        (units.parse_count, "32 cores"),
        (units.parse_rational, "1/0"),
    ],
)
def test_refuses(parse, text):
    with pytest.raises(ValueError, match=r"accepted forms|whole number|must|denominator|zero"):
        parse(text)


@given(st.integers(0, 10**18), st.sampled_from(sorted(units.TIME_PS)))
def test_time_is_number_times_unit(number, unit):
    assert units.parse_time(f"{number} {unit}") == number * units.TIME_PS[unit]


@given(st.integers(1, 10**12), st.sampled_from(sorted(units.SCALE)))
def test_a_bandwidth_and_its_rate_are_inverse(number, scale):
    assert units.parse_rate(f"{number} {scale}B/s") * number * units.SCALE[scale] == units.PS_PER_SECOND


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (98304, "96 KiB"), (90804, "88.68 KiB")]
)
def test_prints_bytes(count, text):
    assert units.format_bytes(count) == text


@pytest.mark.parametrize(("ps", "text"), [(999, "999 ps"), (33_400, "33.4 ns"), (1_500_000, "1.5 us")])
def test_prints_time(ps, text):
    assert units.format_time(ps) == text
