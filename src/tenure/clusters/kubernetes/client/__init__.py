"""Asking the API server: access, requests, leader election, and watches."""
