"""The page of ranks over time: schedules and recorded programs."""
