"""Predictions: recorded programs and schedules under other ways and on other machines."""
