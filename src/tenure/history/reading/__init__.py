"""What is made of records: statements, stories, what there was at a moment, and replays."""
