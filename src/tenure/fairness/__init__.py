"""Fair share: how much of the cluster each queue is due."""
