"""The routes of the console: pages, the API, the stream of changes, and what is said where something is wrong."""
