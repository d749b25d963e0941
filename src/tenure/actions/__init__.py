"""One file per action of the cycle; an action never imports another."""
