"""Programs that make the test vectors of spec/vectors; they share no code with any SDK."""
