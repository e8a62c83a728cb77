"""What all pages have in common: their frame, their numbers as text, and what their scripts share."""
