"""One of each thing that can be added to veilmeter."""
