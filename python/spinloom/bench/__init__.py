"""`spinloom bench layout`: rows, peers, measurement and report of the layout floor's speed."""
