"""WCAG 2.2: how far two colours are apart."""

from __future__ import annotations

TEXT, MARK = 4.5, 3.0  # level AA: contrast of text, and of graphical objects


def luminance(colour):
    parts = [each / 255 for each in colour]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
