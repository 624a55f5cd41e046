"""The use cases, one file per promise to users. They know ports and domain values only; every door calls these."""
