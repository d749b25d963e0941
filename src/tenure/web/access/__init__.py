"""What stands before the pages: connections, senders, rights, and what a request asks for."""
