"""The page of a message's life."""
