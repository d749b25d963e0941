"""Who may be sent back to the queue: plugins that nominate candidates and change nothing."""
